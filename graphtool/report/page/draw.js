// Draws what is in view onto each pane's canvas, when something has changed.
let colours = {};
const COLOURS = ["back", "panel", "text", "faint", "line", "edge", "accent", "module", "compute", "shape",
  "memory", "control", "data", "arithmetic", "heat", "input", "output", "added", "removed", "changed", "kin"];

function read() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) colours[name] = style.getPropertyValue("--" + name).trim();
  for (const p of panes) p.stale = true;
}

function paint() {
  requestAnimationFrame(paint);
  for (const p of panes) {
    if (p.glide) p.step();
    if (!p.stale) continue;
    draw(p);
    overview(p);
  }
}

const MUCH = 3000, AGE = 3000, REST = 120; // what is in view; ms
const LONG = 700, NEAR = 0.8, FEW = 200; // an edge; where and of how many edges types can be read

function draw(p) { // much of it is moved as a picture, and drawn anew now and then, and at rest
  p.stale = false;
  const {canvas, pen, view, held} = p, now = performance.now();
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  const moved = held && {k: view.k / held.k, x: view.x - view.k / held.k * held.x,
    y: view.y - view.k / held.k * held.y};
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
  } else if (held && now - held.at < AGE && now - p.begun < AGE
    && moved.k < 1.6 && moved.k > 0.6 && Math.abs(moved.x) < 0.7 * w && Math.abs(moved.y) < 0.7 * h
    && (view.x !== held.x || view.y !== held.y || view.k !== held.k)) {
    const {k, x, y} = moved;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(held.picture, x * ratio, y * ratio, canvas.width * k, canvas.height * k);
    clearTimeout(p.rest);
    p.rest = setTimeout(() => { p.held = null; p.stale = true; }, REST);
    return;
  }
  p.begun = now;
  const count = fresh(p, ratio, w, h);
  p.held = null;
  if (count < MUCH) return;
  const picture = held?.picture || document.createElement("canvas");
  picture.width = canvas.width;
  picture.height = canvas.height;
  picture.getContext("2d").drawImage(canvas, 0, 0);
  p.held = {...view, picture, at: now};
}

function fresh(p, ratio, w, h) { // draws what is in view, and returns how much that is
  const {pen, view} = p;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  pen.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * view.x, ratio * view.y);
  const left = -view.x / view.k, top = -view.y / view.k;
  const right = left + w / view.k, bottom = top + h / view.k;
  const inside = b => b.x < right && b.x + b.w > left && b.y < bottom && b.y + b.h > top;
  const frames = [...p.boxes.values()].filter(b => b.open && inside(b));
  const tiny = view.k < FAR && !p.saved;
  if (tiny) flat(p, frames);
  else for (const b of frames) frame(p, b);
  const routes = p.routes.filter(
    r => r.left < right && r.right > left && r.top < bottom && r.bottom > top);
  if (tiny) far(p, inside, routes);
  else {
    pen.lineWidth = 1.2;
    p.few = routes.length < FEW || p.saved;
    const typed = new Set(); // an edge's type stands once where a node's edges leave it
    for (const r of routes) edge(p, r);
    for (const r of routes) edgeType(p, r, typed);
    for (const b of p.boxes.values()) if (!b.open && !b.bend && inside(b)) node(p, b);
    for (const b of frames) title(p, b);
  }
  return routes.length;
}

function far(p, inside, routes) { // too small for words: a path for each colour
  const {pen} = p;
  pen.strokeStyle = colours.edge;
  pen.lineWidth = 1 / p.view.k / 2;
  pen.beginPath();
  for (const r of routes) {
    const bent = routes.length < MUCH || r.bottom - r.top > LONG || r.right - r.left > LONG;
    let before = -Infinity;
    pen.moveTo(r.points[0][0], r.points[0][1]);
    for (const [x, y, gutter] of r.points) {
      if (gutter !== undefined && y < before) {
        pen.lineTo(gutter, before + 14);
        pen.lineTo(gutter, y - 18);
      }
      if (bent) pen.lineTo(x, y);
      before = y;
    }
    const [x, y] = r.points.at(-1);
    pen.lineTo(x, y);
  }
  pen.stroke();
  const paths = new Map(); // boxes by their colour
  for (const b of p.boxes.values()) {
    if (b.open || b.bend || !inside(b)) continue;
    const kind = typeof b.item === "number" ? p.graph.nodes[b.item].kind : "faint";
    const colour = b.item === p.chosen || p.found.has(b.item) ? colours.accent
      : p.kin.has(b.item) ? colours.kin : heat ? shade(p, b.item) || colours.line : colours[kind];
    if (!paths.has(colour)) paths.set(colour, []);
    paths.get(colour).push(b);
  }
  for (const [colour, boxes] of paths) {
    pen.fillStyle = colour || colours.compute;
    pen.beginPath();
    for (const b of boxes) pen.rect(b.x, b.y, b.w, b.h);
    pen.fill();
  }
}

function flat(p, frames) { // modules too small for round corners
  const {pen} = p;
  pen.fillStyle = colours.module;
  for (const b of frames) pen.fillRect(b.x, b.y, b.w, b.h);
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const b of frames) pen.rect(b.x, b.y, b.w, b.h);
  pen.stroke();
  for (const b of frames) if (b.item === p.chosen || p.found.has(b.item) || p.kin.has(b.item)) frame(p, b);
}

function frame(p, b) {
  const {pen} = p;
  pen.fillStyle = colours.module;
  round(pen, b, 10);
  pen.fill();
  outline(p, b, colours.line);
}

function cards(p, b) { // behind a module that stands for parts alike
  const {pen} = p;
  pen.fillStyle = colours.back;
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  for (const by of [CARDS, CARDS / 2]) {
    round(pen, {...b, x: b.x + by, y: b.y + by}, 6);
    pen.fill();
    pen.stroke();
  }
}

function headings(p, b) { // of the columns of a training step
  const {pen} = p;
  pen.font = "600 12px system-ui, sans-serif";
  pen.fillStyle = colours.faint;
  b.columns.forEach(([x, w], at) => {
    const text = COLUMN_NAMES[at];
    pen.fillText(text, b.x + x + Math.max(0, (w - pen.measureText(text).width) / 2), b.y + 22);
  });
}

function title(p, b) { // above the edges that enter the module
  const {pen} = p, name = shorten(boxed(p.graph, b.item), 120);
  if (b.columns) headings(p, b);
  if (p.view.k * 13 < 5 || b.depth === 0) return;
  pen.font = "600 12px system-ui, sans-serif";
  const text = clear(pen, b, name, shorten(titled(p.graph.byKey.get(b.item)), 60));
  pen.strokeStyle = colours.panel;
  pen.lineWidth = 5;
  pen.lineJoin = "round";
  pen.strokeText(...text);
  pen.fillStyle = colours.faint;
  pen.fillText(...text);
}

function clear(pen, b, whole, short) { // a title beside the edges that enter: text, x, y, room
  const ends = [...b.ports].sort((a, c) => a - c).map(x => [x - 4, x + 6]);
  const gaps = [...ends, [b.x + b.w - 6]].map(([end], i) => {
    const from = i ? ends[i - 1][1] : b.x + 10;
    return [from, end - from];
  });
  for (const text of [whole, short]) {
    const gap = gaps.find(([, room]) => room >= pen.measureText(text).width);
    if (gap) return [text, gap[0], b.y + 17, gap[1]];
  }
  const [x, room] = gaps.reduce((a, c) => c[1] > a[1] ? c : a);
  return [short, x, b.y + 17, room];
}

function node(p, b) {
  const {pen, graph: g} = p, x = typeof b.item === "number" ? g.nodes[b.item] : null;
  if (!x && g.byKey.get(b.item).alike) cards(p, b);
  pen.fillStyle = x && !heat ? colours[x.kind] || colours.compute : colours.back;
  round(pen, b, 6);
  pen.fill();
  const hot = heat && shade(p, b.item), brief = heat ? share(p, b.item) : x?.brief;
  if (hot) {
    pen.fillStyle = hot;
    pen.fill();
  }
  const change = !p.titled && (x ? p.section.changes?.[x.name] : g.changes.get(b.item));
  const part = x ? p.section.parts?.[x.name] : g.parts.get(b.item);
  if (part) outline(p, b, ...part === "first" ? [colours.removed, 5] : [colours.changed, 2]);
  else if (p.section.parts) outline(p, b, colours.line);
  else outline(p, b, change ? colours[change] || colours.changed : colours.line, change ? 3 : 1);
  if (p.view.k * 12 < 5) return;
  pen.fillStyle = colours.text;
  pen.font = x ? "600 12px system-ui, sans-serif" : "italic 600 12px system-ui, sans-serif";
  pen.fillText(fitting(x ? x.op : boxed(g, b.item), b.w - 16, BOLD), b.x + 8, b.y + (x || brief ? 14 : 21), b.w - 16);
  const head = x && brief ? pen.measureText(`${x.op} `).width : 0;
  pen.fillStyle = colours.faint;
  pen.font = "10px ui-monospace, monospace";
  if (x) pen.fillText(fitting(named(x), b.w - 16), b.x + 8, b.y + 27, b.w - 16);
  if (brief && b.w - 16 - head > 20)
    pen.fillText(heat ? brief : fitting(brief, b.w - 16 - head), b.x + 8 + head, b.y + (x ? 14 : 27), b.w - 16 - head);
  reads(p, b);
}

const MONO = 6.02, BOLD = 7; // px of a letter, about

function fitting(text, room, letter = MONO) { // its end says most: the middle gives way
  return shorten(text, Math.max(3, Math.floor(room / letter * (letter === MONO ? 1 : 1.12))));
}

function shorten(text, most) {
  const clean = safe(text.length > 4 * most ? text.slice(0, 2 * most) + text.slice(-2 * most) : text);
  if (clean.length <= most) return clean;
  const end = Math.ceil((most - 1) * 0.6);
  return `${clean.slice(0, most - 1 - end)}…${clean.slice(clean.length - end)}`;
}

function reads(p, b) { // a line for each value that comes without an edge
  const {pen, graph: g} = p, all = g.stubs.get(b.item) || [];
  const shown = all.length > STUBS ? all.slice(0, STUBS - 1) : all;
  const lines = shown.map(a => `${g.nodes[a].name.split(".").at(-1)} ↗`);
  if (all.length > STUBS) lines.push(`${all.length - shown.length} more ↗`);
  lines.map(text => fitting(text, b.w - 16)).forEach((text, i) => {
    const on = b.item === p.chosen || visible(g, all[i]) === p.chosen;
    pen.fillStyle = on ? colours.accent : colours.faint;
    pen.fillText(text, b.x + 8, b.y + HIGH - 7 + LINE * (i + 1), b.w - 16);
  });
}

function outline(p, b, colour, width = 1) {
  const {pen} = p, nodes = p.graph.nodes;
  const on = b.item === p.chosen, hit = p.found.has(b.item), kin = p.kin.has(b.item);
  const kernel = typeof p.chosen === "number" && nodes[p.chosen].fused;
  const mate = kernel && typeof b.item === "number" && nodes[b.item].fused === kernel;
  pen.strokeStyle = on || hit || mate ? colours.accent : kin ? colours.kin : colour;
  pen.lineWidth = on || kin ? 3 : hit || mate ? 2 : width;
  if (mate && !on && !kin) pen.setLineDash([5, 3]); // in the same kernel as the chosen node
  pen.stroke();
  pen.setLineDash([]);
}

function round(pen, b, r) {
  pen.beginPath();
  pen.roundRect(b.x, b.y, b.w, b.h, r);
}

function edge(p, r) {
  const {pen} = p, on = p.chosen !== null && (r.from === p.chosen || r.to === p.chosen);
  pen.strokeStyle = on ? colours.accent : colours.edge;
  pen.beginPath();
  pen.moveTo(r.points[0][0], r.points[0][1]);
  const turn = way => { // straight lines with round corners
    for (let n = 1; n < way.length; n++)
      pen.arcTo(way[n - 1][0], way[n - 1][1], way[n][0], way[n][1], 8);
    pen.lineTo(...way.at(-1).slice(0, 2));
  };
  for (let i = 1; i < r.points.length; i++) {
    const [x0, y0] = r.points[i - 1], [x1, y1, gutter, square] = r.points[i];
    const half = (y1 - y0) / 2, bend = y1 < y0 && (r.up || r.leaves) ? Math.min(-12, half)
      : Math.max(12, half);
    if (square) { // through the gaps of a grid
      const end = r.points.findIndex((q, n) => n > i && !q[3]);
      turn(r.points.slice(i, end + 1));
      i = end;
    } else if (gutter !== undefined && y1 < y0) // up between two columns
      turn([[x0, y0 + 14], [gutter, y0 + 14], [gutter, y1 - 18], [x1, y1 - 18], [x1, y1]]);
    else pen.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }
  pen.stroke();
  const [x, y] = r.points.at(-1);
  if (r.through) return; // the edge goes on
  pen.fillStyle = pen.strokeStyle;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - 4, y + (r.up ? 7 : -7));
  pen.lineTo(x + 4, y + (r.up ? 7 : -7));
  pen.fill();
}

function edgeType(p, r, typed) { // the type of what an edge passes on
  const {pen} = p, on = p.chosen !== null && (r.from === p.chosen || r.to === p.chosen);
  const near = p.view.k >= NEAR && p.few && !typed.has(r.from);
  if (!r.text || !(near || on && p.view.k > 0.5)) return;
  typed.add(r.from);
  const [a, b] = r.points[0];
  pen.font = "10px ui-monospace, monospace";
  pen.fillStyle = on ? colours.accent : colours.faint;
  pen.strokeStyle = colours.panel; // an edge behind the words does not strike them out
  pen.lineWidth = 3;
  const words = [shorten(r.text, 80), a + 6, r.leaves ? b - 5 : b + 11];
  pen.strokeText(...words);
  pen.fillText(...words);
}
