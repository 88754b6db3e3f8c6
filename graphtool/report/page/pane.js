// A pane shows one graph: its canvas, what of it is in view, what is chosen and marked.
let panes = [], pane = null; // all that are shown, and the one that the keys are for

class Pane {
  constructor(section, titled) {
    prepare(section);
    this.section = section;
    this.graph = section.graph;
    this.canvas = made("canvas", undefined, {tabindex: 0, role: "application",
      "aria-label": `Graph ${section.name}. Arrows walk along edges, Enter opens a module, `
        + "plus and minus zoom, 0 shows everything."});
    this.element = made("div", undefined, {class: "pane"});
    this.titled = titled; // one of several stages
    this.told = made("small", "", {"aria-live": "polite"});
    if (titled) {
      const head = made("h2", `${section.name} `);
      head.append(this.told);
      this.element.append(head);
    }
    const frame = made("div");
    this.map = made("canvas", undefined, {class: "map", "aria-hidden": "true"});
    frame.append(this.canvas, this.map);
    this.element.append(frame);
    this.pen = this.canvas.getContext("2d");
    this.view = {x: 0, y: 0, k: 1};
    this.chosen = this.glide = null;
    this.found = new Set();
    this.kin = new Set(); // what the chosen node of another pane is here
    this.stale = true;
    this.aspect = 1.5;
    this.touched = false; // the user has moved it
    layout(this);
    listen(this);
    steer(this);
  }

  root() { return this.boxes.get(this.graph.groups[0].key); }

  size() { return [this.canvas.clientWidth, this.canvas.clientHeight]; }

  fit(b = this.root(), most = 1) {
    const [w, h] = this.size(), k = Math.min(most, (w - 40) / b.w, (h - 40) / b.h);
    this.aim({k, x: w / 2 - k * (b.x + b.w / 2), y: h / 2 - k * (b.y + b.h / 2)});
  }

  start() {
    const [w, h] = this.size();
    this.aspect = Math.min(2, Math.max(0.4, w / h || 1));
    layout(this);
    if (!this.titled) this.simplify(w, h);
    const b = this.root(), k = this.graph.narrow ? Math.min(1.1, (w - 16) / b.w) : scale(w, h, b);
    this.view = {k, x: w / 2 - k * (b.x + b.w / 2), y: Math.max(20, (h - k * b.h) / 2)};
    this.stale = true;
  }

  simplify(w, h) { // closes the largest modules of nodes, and those like it, while words are small
    const few = () => [...this.boxes.values()].filter(b => !b.open && !b.bend).length <= FEW_BOXES;
    while (!few() && scale(w, h, this.root()) < CLEAR) {
      const open = this.graph.groups.filter(x => x.open && x.parent !== null && x.children.length
        && x.children.every(c => typeof c === "number") && this.boxes.get(x.key));
      if (!open.length) return;
      const area = x => this.boxes.get(x.key).w * this.boxes.get(x.key).h;
      const most = open.reduce((a, b) => area(b) > area(a) ? b : a);
      for (const x of open)
        if (x.parent === most.parent && x.size === most.size) x.open = false;
      layout(this);
    }
  }

  aim(to) {
    this.touched = true;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.view = to;
    else this.glide = {from: {...this.view}, to, begun: performance.now()};
    this.stale = true;
  }

  step() {
    const t = Math.min(1, (performance.now() - this.glide.begun) / 160), e = t * (2 - t);
    const {from, to} = this.glide;
    for (const n of ["x", "y", "k"]) this.view[n] = from[n] + e * (to[n] - from[n]);
    if (t === 1) this.glide = null;
    this.stale = true;
  }

  zoom(factor, x = this.size()[0] / 2, y = this.size()[1] / 2) {
    this.glide = null;
    this.touched = true;
    const v = this.view, k = Math.min(4, Math.max(0.01, v.k * factor));
    this.view = {k, x: x - (x - v.x) * k / v.k, y: y - (y - v.y) * k / v.k};
    this.stale = true;
  }

  at(event) {
    const r = this.canvas.getBoundingClientRect(), v = this.view;
    const x = (event.clientX - r.left - v.x) / v.k, y = (event.clientY - r.top - v.y) / v.k;
    let hit = null;
    for (const b of this.boxes.values())
      if (!b.bend && b.x <= x && x <= b.x + b.w && b.y <= y && y <= b.y + b.h
        && b.depth > (hit ? hit.depth : 0)) hit = b;
    return hit ? hit.item : null;
  }

  toggle(key) {
    const x = this.graph.byKey.get(key), before = this.boxes.get(key), v = this.view;
    if (!x || x.parent === null) return;
    x.open = !x.open;
    layout(this);
    const b = this.boxes.get(key);
    if (before && b) { v.x += (before.x - b.x) * v.k; v.y += (before.y - b.y) * v.k; }
    tree();
  }

  reveal(items) { // opens the modules around them
    const g = this.graph;
    let changed = false;
    for (const item of items)
      for (let key = g.home.get(item); key !== undefined; key = g.home.get(key)) {
        const x = g.byKey.get(key);
        changed ||= !x.open;
        x.open = true;
      }
    if (changed) { layout(this); if (this === pane) tree(); }
  }

  show(...items) { // moves to all of them, or the first if there is no room, if not in view
    const v = this.view, k = Math.max(v.k, 0.7), [w, h] = this.size();
    const all = items.map(item => this.boxes.get(item));
    const around = union(all), b = around.w * k < w && around.h * k < h ? around : all[0];
    const x = b.x * v.k + v.x, y = b.y * v.k + v.y;
    if (x < 0 || y < 0 || x + b.w * v.k > w || y + b.h * v.k > h || v.k < 0.35)
      this.aim({k, x: w / 2 - k * (b.x + b.w / 2), y: h / 2 - k * (b.y + b.h / 2)});
  }

  centre(item) {
    this.reveal([item]);
    const b = this.boxes.get(visible(this.graph, item));
    if (b) this.fit(b);
  }

  every(open) {
    for (const x of this.graph.groups) x.open = open || x.parent === null;
    layout(this);
    tree();
    this.fit();
  }
}

function union(boxes) { // the smallest box around them
  const x = Math.min(...boxes.map(b => b.x)), y = Math.min(...boxes.map(b => b.y));
  return {x, y, w: Math.max(...boxes.map(b => b.x + b.w)) - x,
    h: Math.max(...boxes.map(b => b.y + b.h)) - y};
}

function listen(p) {
  let drag = null, wide = 0; // between two fingers
  const {canvas} = p, fingers = new Map();
  canvas.addEventListener("focus", () => activate(p));
  canvas.addEventListener("pointerdown", event => {
    activate(p);
    drag = {x: event.clientX, y: event.clientY, moved: false};
    fingers.set(event.pointerId, event);
    wide = 0;
    p.glide = null;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!drag) return;
    fingers.set(event.pointerId, event);
    if (fingers.size === 2) {
      const [a, b] = [...fingers.values()], r = canvas.getBoundingClientRect();
      const now = Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
      if (wide) p.zoom(now / wide, (a.clientX + b.clientX) / 2 - r.left,
        (a.clientY + b.clientY) / 2 - r.top);
      wide = now;
      drag.moved = true;
      return;
    }
    const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 3) return;
    drag = {x: event.clientX, y: event.clientY, moved: true};
    p.touched = true;
    p.view.x += dx;
    p.view.y += dy;
    p.stale = true;
  });
  canvas.addEventListener("pointerup", event => {
    if (drag && !drag.moved) choose(p.at(event), false);
    drag = null;
    fingers.delete(event.pointerId);
  });
  canvas.addEventListener("pointercancel", event => {
    drag = null;
    fingers.delete(event.pointerId);
  });
  canvas.addEventListener("dblclick", event => {
    const item = p.at(event);
    if (typeof item === "string") p.toggle(item);
  });
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const r = canvas.getBoundingClientRect();
    p.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)),
      event.clientX - r.left, event.clientY - r.top);
  }, {passive: false});
  new ResizeObserver(() => {
    p.stale = true;
    if (!p.touched && p.chosen === null) p.start();
  }).observe(canvas);
}
