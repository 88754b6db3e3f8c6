"use strict";
// The graph is laid out from the layers that the page comes with: only sizes are added up here.
const page = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
let aspect = 1.5; // of the pane that is laid out: its width over its height
const LINE = 12; // of a box, for each value that it reads without an edge
const GAP = 26, ROW = 46, PAD = 16, HEAD = 24, HIGH = 34, MOST = 400, FAR = 0.2, STUBS = 4;
const LEGIBLE = 0.5, CLEAR = 0.75; // of the size of letters
const FIRST = 64; // boxes of the first look
const FEW_BOXES = 30; // that are shown however small
const CARDS = 6; // px of the cards below a module that stands for parts alike
const COUNTS = new Intl.NumberFormat("en");
const SHORT = 700; // a chain that is one column

function prepare(section) {
  const g = section.graph;
  if (!g || g.byKey) return;
  g.byKey = new Map(g.groups.map(x => [x.key, x]));
  g.home = new Map();
  g.next = g.nodes.map(() => []);
  g.before = g.nodes.map(() => []);
  for (const x of g.groups) {
    x.children = [];
    x.open = x.parent === null;
    for (const layer of x.layers) for (const [item] of layer) {
      if (thin(item)) continue;
      g.home.set(item, x.key);
      x.children.push(item);
    }
    x.rank = new Map(x.layers.flatMap((layer, i) => layer.map(([item]) => [item, i])));
    x.path = new Map(x.bends.map(([a, b, ...rest]) => [a + ">" + b, rest]));
  }
  alike(g);
  g.typed = new Map(); // how long the types are that leave a module
  for (const [a, b, text] of g.edges) {
    g.next[a].push(b);
    g.before[b].push(a);
    const around = new Set(homes(g, b));
    for (const key of homes(g, a).filter(key => !around.has(key)))
      g.typed.set(key, Math.max(g.typed.get(key) || 0, text.length));
  }
  g.parts = within(g, section.parts, marks => marks.includes("first") ? "first" : "later");
  g.changes = within(g, section.changes, (marks, size) =>
    marks.length < size || new Set(marks).size > 1 ? "changed" : marks[0]);
  let shown = g.groups[0].children.length; // open what fits the first look, modules like others
  for (let level = [g.groups[0]]; level.length;) {
    const next = level.flatMap(x => x.children.filter(c => typeof c === "string"))
      .map(key => g.byKey.get(key));
    const more = next.reduce((sum, x) => sum + x.children.length, 0);
    if (shown + more > FIRST || g.groups[0].grid) break;
    for (const x of next) x.open = true;
    shown += more;
    level = next;
  }
}

function within(g, marks, joined) { // for each module with marked nodes, its own mark
  const held = new Map();
  for (const [i, x] of marks ? g.nodes.entries() : [])
    if (marks[x.name]) for (const key of homes(g, i))
      held.set(key, [...held.get(key) || [], marks[x.name]]);
  return new Map([...held].map(([key, all]) => [key, joined(all, g.byKey.get(key).size)]));
}

function homes(g, item) { // the modules around it, the innermost first
  const out = [];
  for (let key = g.home.get(item); key !== undefined; key = g.home.get(key)) out.push(key);
  return out;
}

let hiding = false; // ops that only change shapes

function hidden(g, item) {
  return hiding && typeof item === "number" && g.nodes[item].kind === "shape";
}

function thin(item) { // a bend of an edge, or a port where one enters or leaves a module
  return typeof item === "string" && item[0] !== "m";
}

function label(g, item) {
  if (typeof item === "number") return g.nodes[item].name;
  const x = g.byKey.get(item);
  const count = COUNTS.format(x.size), {alike} = x, nodes = `node${x.size === 1 ? "" : "s"}`;
  if (alike?.count * alike?.size === x.size) return `${titled(x)}  (${alike.count} × ${alike.size} ${nodes})`;
  return `${titled(x)}  (${count} ${nodes}${alike ? `, ${alike.count} × ${alike.size} alike` : ""})`;
}

function boxed(g, item) { // the words of a box; in a narrow training step the column says the rest
  const x = typeof item === "string" ? g.byKey.get(item) : null;
  return x && g.narrow && x.parent === g.groups[0].key
    ? x.name.replace(/ (gradient|update)$/, "") : label(g, item);
}

function alike(g) { // the modules with the same ops in the same tree, and how many are in a module
  const kinds = new Map();
  const kind = x => {
    const words = x.children.map(c => typeof c === "number" ? g.nodes[c].op : `m${kind(g.byKey.get(c))}`);
    const key = words.join(",");
    if (!kinds.has(key)) kinds.set(key, kinds.size);
    x.kind = kinds.get(key);
    const counts = new Map();
    for (const c of x.children) if (typeof c === "string") {
      const inner = g.byKey.get(c);
      counts.set(inner.kind, {count: (counts.get(inner.kind)?.count || 0) + 1, size: inner.size});
    }
    const most = [...counts.values()].reduce((a, b) => b.count > a.count ? b : a, {count: 0});
    if (most.count > 2 && 2 * most.count >= x.children.length) x.alike = most;
    return x.kind;
  };
  kind(g.groups[0]);
}

function titled(x) { // a module: its name, and the author's class
  return x.class ? `${x.name} · ${x.class}` : x.name;
}

function named(n) { // a node; one that is all of a module stands for it
  if (!n.class) return n.name;
  return `${n.name === `${n.module}.${n.op}` ? n.module : n.name} · ${n.class}`;
}

function sized(g, item) {
  if (thin(item) || hidden(g, item)) return {w: 8, h: 8};
  const x = typeof item === "string" ? g.byKey.get(item) : null;
  if (!x || !x.open) {
    const name = x ? boxed(g, item) : named(g.nodes[item]), n = x ? {op: ""} : g.nodes[item];
    const head = n.op.length + (n.brief ? n.brief.length + 1 : 0);
    const w = Math.min(240, Math.max(70, 7.2 * Math.max(name.length, head) + 20));
    const type = x ? g.typed?.get(item) || 0
      : g.nodes[item].op === "output" ? 0 : (g.nodes[item].type || "").length;
    const more = LINE * Math.min(STUBS, g.stubs?.get(item)?.length || 0);
    return {w, h: HIGH + more, over: Math.max(0, 6 + 6.1 * Math.min(type, 30) - w / 2)};
  }
  if (x.grid) return gridded(g, x);
  const rows = x.layers.map(layer => layer.map(([one]) => sized(g, one)));
  const wide = rows.flat().filter(s => s.w > 8).map(s => s.w + GAP).sort((a, b) => a - b);
  const unit = wide[Math.floor(0.8 * wide.length)] || ROW; // what 72 of the layout stands for
  const lines = x.layers.map((layer, i) => line(g, layer, rows[i], unit));
  lines.forEach((l, i) => { if (l.thin || lines[i + 1]?.thin) l.room = ROW / 3; });
  const places = new Map();
  let left = PAD, high = 0;
  for (const [number, column] of (x.rises ? [lines] : columns(lines)).entries()) {
    const low = Math.min(...column.map(l => l.low)), gutter = number ? left - GAP : undefined;
    let y = HEAD + PAD;
    for (const [i, l] of column.entries()) {
      for (const s of l.items) places.set(s.one, {...s.size, x: left + s.left - low,
        y: y + (l.tall - s.h) / 2, w: s.w, h: s.h, gutter: i ? undefined : gutter});
      y += l.tall + l.room;
    }
    left += Math.max(...column.map(l => l.high)) - low + 2 * GAP;
    high = Math.max(high, y - column.at(-1).room);
  }
  for (const {one} of lines.at(-1).items) { // edges leave at the border, below the longest column
    const place = places.get(one);
    if (String(one).startsWith(x.rises ? "pi" : "po")) place.y = high - place.h;
  }
  return {w: Math.max(left - 2 * GAP + PAD, 7.2 * label(g, item).length + 2 * PAD),
    h: high + PAD, places, rises: x.rises};
}

function line(g, layer, sizes, unit) { // a layer from left to right
  const tall = Math.max(...sizes.map(s => s.h));
  let right = -Infinity, drift = 0;
  const xs = layer.map(([, at], i) => {
    const want = at / 72 * unit - sizes[i].w / 2;
    const left = Math.max(want, right + GAP);
    right = left + sizes[i].w;
    drift += left - want;
    return left;
  });
  drift /= xs.length;
  const items = layer.map(([one], i) => { // a bend is as tall as its layer
    const {w, h} = thin(one) ? {w: 8, h: tall} : sizes[i];
    return {one, left: xs[i] - drift, w, h, size: sizes[i]};
  });
  return {items, tall, room: ROW, thin: layer.every(([one]) => thin(one) || hidden(g, one)),
    low: items[0].left, high: Math.max(...items.map(s => s.left + s.w + (s.size.over || 0)))}; // with its type
}

function columns(lines) { // a long chain goes on at the top of the next column
  const total = lines.reduce((sum, l) => sum + l.tall + l.room, 0);
  const width = Math.max(...lines.map(l => l.high)) - Math.min(...lines.map(l => l.low)) + 2 * GAP;
  if (total < SHORT) return [lines];
  const most = Math.min(Math.sqrt(aspect * total / width) + 1.5, Math.floor(lines.length / 2));
  let best = [lines], least = Math.max(total, width / aspect);
  for (let count = 2; count <= most; count++) for (const more of [1, 1.15]) {
    const made = parts(lines, more * total / count, count); // a tall row may end the first
    const across = made.reduce((sum, part) => sum + 2 * GAP
      + Math.max(...part.map(l => l.high)) - Math.min(...part.map(l => l.low)), 0);
    const down = Math.max(...made.map(part => part.reduce((sum, l) => sum + l.tall + l.room, 0)));
    const size = Math.max(down, across / aspect);
    if (size < (best.length === count ? 1 : 0.9) * least) [best, least] = [made, size];
  }
  return best;
}

function parts(lines, high, count) { // of about equal heights, broken where few edges pass
  const out = [[]];
  let y = 0;
  const cuts = [...Array(count - 1).keys()].map(() => ({cost: Infinity}));
  for (const [i, l] of lines.entries()) {
    for (const k of new Set([Math.floor(y / high) - 1, Math.ceil(y / high) - 1])) {
      const cost = Math.abs(y / high - k - 1) + 0.04 * (l.items.length - 1);
      if (i > 1 && cuts[k] && cost < cuts[k].cost) cuts[k] = {cost, i};
    }
    y += l.tall + l.room;
  }
  for (const [i, l] of lines.entries()) {
    if (cuts.some(cut => cut.i === i)) out.push([]);
    out.at(-1).push(l);
  }
  return out;
}

function layout(p) {
  const g = p.graph, root = g.groups[0].key;
  g.narrow = !!g.groups[0].grid && p.aspect < 0.8;
  aspect = p.aspect;
  p.boxes = new Map();
  stub(g);
  const put = (item, size, x, y, depth, gutter) => {
    if (hidden(g, item)) {
      p.boxes.set(item, {bend: true, x, y, w: size.w, h: size.h, gutter});
      return;
    }
    const ports = [];
    p.boxes.set(item, {item, x, y, w: size.w, h: size.h, depth, gutter, ports, open: !!size.places,
      ...(size.columns ? {columns: size.columns} : {})});
    if (!size.places) return;
    for (const [one, s] of size.places) {
      const gutter = s.gutter === undefined ? undefined : x + s.gutter;
      if (thin(one)) { // a port reaches to the border of its module
        const high = one[0] === "p" && (one[1] === "i") !== !!size.rises;
        const up = high ? s.y : 0, down = one[0] === "p" && !high ? size.h - s.y - s.h : 0;
        p.boxes.set(item + one, {bend: true, x: x + s.x, y: y + s.y - up, w: s.w,
          h: s.h + up + down, gutter});
        if (up) ports.push(x + s.x + s.w / 2);
      }
      else put(one, s, x + s.x, y + s.y, depth + 1, gutter);
      if (s.cell && p.boxes.get(one)) p.boxes.get(one).cell = offset(s.cell, x, y);
    }
  };
  put(root, sized(g, root), 0, 0, 0);
  const seen = new Set();
  p.routes = [];
  for (const [a, b, text, at, x, y] of g.edges) {
    if (!p.boxes.get(at)?.open) continue; // as of those without a module, which are not drawn
    const from = visible(g, a), to = visible(g, b), key = from + ">" + to;
    if (from === to || seen.has(key)) continue;
    seen.add(key);
    const s = p.boxes.get(from), t = p.boxes.get(to), {rank, grid} = g.byKey.get(at);
    const back = !grid && rank.get(x) > rank.get(y); // between modules that read each other
    const up = back && to === y || rises(p, to), leaves = back && from === x || rises(p, from);
    const under = typeof from === "string" && !s.open && g.byKey.get(from).alike ? CARDS : 0;
    const outer = [[s.x + s.w / 2, leaves ? s.y : s.y + s.h + under], ...climb(g, a, at).flatMap(
      ([key, item]) => bends(p, key, item, "po" + a, false, g.byKey.get(key).rises))];
    const inner = [...climb(g, b, at).reverse().flatMap(
      ([key, item]) => bends(p, key, "pi" + a, item, true, g.byKey.get(key).rises)),
      [t.x + t.w / 2, up !== hidden(g, to) ? t.y + t.h : t.y]];
    let way;
    if (grid) way = between(p.boxes.get(x).cell, p.boxes.get(y).cell, outer.at(-1), inner[0]);
    else {
      way = bends(p, at, x, y, false, back);
      inner[0] = [inner[0][0], inner[0][1], way.at(-2)[2]]; // in place of the middle of the module
      way = way.slice(0, -2);
    }
    const points = [...outer, ...way, ...inner];
    const ys = points.map(q => q[1]), xs = points.flatMap(q => q[2] ? [q[0], q[2]] : [q[0]]);
    p.routes.push({from, to, text, points, up, leaves, through: hidden(g, to), top: Math.min(...ys) - 30,
      bottom: Math.max(...ys) + 30, left: Math.min(...xs) - 60, right: Math.max(...xs) + 60});
  }
  p.stale = true;
}

function stub(g) { // for each box, the nodes that it reads without an edge
  const drawn = new Set(), held = new Map();
  for (const [a, b, , at] of g.edges)
    if (at !== undefined) drawn.add(a + ">" + visible(g, b));
  for (const [a, b, , at] of g.edges) {
    if (at !== undefined) continue;
    const to = visible(g, b);
    if (visible(g, a) === to || drawn.has(a + ">" + to)) continue;
    if (!held.has(to)) held.set(to, new Set());
    held.get(to).add(a);
  }
  g.stubs = new Map([...held].map(([to, nodes]) => [to, [...nodes]]));
}

function scale(w, h, b) { // all of it, or the whole width and the top, if all is too small to read
  const across = (w - 40) / b.w, down = (h - 40) / b.h, all = Math.min(across, down);
  if (all >= LEGIBLE) return Math.min(1.1, all);
  return Math.min(1.1, Math.max(across, 0.3), Math.max(down, 0.8));
}

function climb(g, item, top) { // the modules around a node below `top`, with what it is in each
  const out = [];
  for (let key = g.home.get(item); key !== top; key = g.home.get(key)) {
    out.push([key, item]);
    item = key;
  }
  return out;
}

// the points of an edge within an open module; upwards if it goes back
function bends(p, key, from, to, first = false, back = false) {
  if (!p.boxes.get(key)?.open) return [];
  const path = p.graph.byKey.get(key).path;
  const way = path.get(from + ">" + to) || (path.get(to + ">" + from) || []).slice().reverse();
  return (first ? [from, ...way] : [...way, to]).map(n => p.boxes.get(thin(n) ? key + n : n))
    .flatMap(q => back ? [[q.x + q.w / 2, q.y + q.h], [q.x + q.w / 2, q.y]]
      : [[q.x + q.w / 2, q.y, q.gutter], [q.x + q.w / 2, q.y + q.h]]);
}

function visible(g, item) { // the item itself, or the outermost closed module around it
  let rep = item;
  for (let key = g.home.get(item); key !== undefined; key = g.home.get(key))
    if (!g.byKey.get(key).open) rep = key;
  return rep;
}
