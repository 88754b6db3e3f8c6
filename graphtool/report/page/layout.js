"use strict";
// The graph is laid out from the layers that the page comes with: only sizes are added up here.
const page = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const canvas = $("canvas"), pen = canvas.getContext("2d");
const GAP = 26, ROW = 46, PAD = 16, HEAD = 24, HIGH = 34, MOST = 400, FAR = 0.2;
let now = null, view = {x: 0, y: 0, k: 1}, chosen = null, found = new Set(), stale = true;
let colours = {}, boxes = new Map(), routes = [], glide = null;

function read() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["back", "text", "faint", "line", "edge", "accent", "module", "compute",
    "shape", "memory", "control", "data", "input", "output", "added", "removed", "changed"])
    colours[name] = style.getPropertyValue("--" + name).trim();
  stale = true;
}

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
    x.path = new Map(x.bends.map(([a, b, ...rest]) => [a + ">" + b, rest]));
  }
  for (const [a, b] of g.edges) { g.next[a].push(b); g.before[b].push(a); }
  let shown = g.groups[0].children.length; // open what fits the first look
  for (const x of g.groups.slice(1)) {
    if (!g.byKey.get(x.parent).open || shown + x.children.length > 90) continue;
    x.open = true;
    shown += x.children.length;
  }
}

function thin(item) { // a bend of an edge, or a port where one enters or leaves a module
  return typeof item === "string" && item[0] !== "m";
}

function label(g, item) {
  if (typeof item === "number") return g.nodes[item].name;
  const x = g.byKey.get(item);
  return `${x.name}  (${x.size} nodes)`;
}

function sized(g, item) {
  if (thin(item)) return {w: 8, h: 8};
  const x = typeof item === "string" ? g.byKey.get(item) : null;
  if (!x || !x.open) {
    const name = label(g, item), op = x ? "" : g.nodes[item].op;
    return {w: Math.min(240, Math.max(70, 7.2 * Math.max(name.length, op.length) + 20)), h: HIGH};
  }
  const places = new Map();
  let y = HEAD + PAD, low = 0, high = 0, room = ROW;
  const rows = x.layers.map(layer => layer.map(([one]) => sized(g, one)));
  const wide = rows.flat().filter(s => s.w > 8).map(s => s.w + GAP).sort((a, b) => a - b);
  const unit = wide[Math.floor(0.8 * wide.length)] || ROW; // what 72 of the layout stands for
  for (const [number, layer] of x.layers.entries()) {
    const sizes = rows[number];
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
    layer.forEach(([one], i) => {
      const left = xs[i] - drift;
      const {w, h} = thin(one) ? {w: 8, h: tall} : sizes[i]; // a bend is as tall as its layer
      places.set(one, {x: left, y: y + (tall - h) / 2, ...sizes[i], w, h});
      low = Math.min(low, left);
      high = Math.max(high, left + sizes[i].w);
    });
    room = layer.every(([one]) => thin(one)) ? ROW / 3 : ROW;
    y += tall + room;
  }
  for (const p of places.values()) p.x += PAD - low;
  return {w: Math.max(high - low + 2 * PAD, 7.2 * label(g, item).length + 2 * PAD),
    h: y - room + PAD, places};
}

function layout() {
  const g = now.graph, root = g.groups[0].key;
  boxes = new Map();
  const put = (item, size, x, y, depth) => {
    boxes.set(item, {item, x, y, w: size.w, h: size.h, depth, open: !!size.places});
    if (!size.places) return;
    for (const [one, p] of size.places) {
      if (thin(one))
        boxes.set(item + one, {bend: true, x: x + p.x, y: y + p.y, w: p.w, h: p.h});
      else put(one, p, x + p.x, y + p.y, depth + 1);
    }
  };
  put(root, sized(g, root), 0, 0, 0);
  const seen = new Set();
  routes = [];
  for (const [a, b, text, at, x, y] of g.edges) {
    if (!boxes.get(at)?.open) continue;
    const from = visible(a), to = visible(b), key = from + ">" + to;
    if (from === to || seen.has(key)) continue;
    seen.add(key);
    const s = boxes.get(from), t = boxes.get(to);
    const points = [[s.x + s.w / 2, s.y + s.h],
      ...climb(g, a, at).flatMap(([key, item]) => bends(g, key, item, "po" + a)),
      ...bends(g, at, x, y).slice(0, -1),
      ...climb(g, b, at).reverse().flatMap(([key, item]) => bends(g, key, "pi" + a, item, true)),
      [t.x + t.w / 2, t.y]];
    const ys = points.map(p => p[1]), xs = points.map(p => p[0]);
    routes.push({from, to, text, points, top: Math.min(...ys) - 30, bottom: Math.max(...ys) + 30,
      left: Math.min(...xs) - 60, right: Math.max(...xs) + 60});
  }
  stale = true;
}

function climb(g, item, top) { // the modules around a node below `top`, with what it is in each
  const out = [];
  for (let key = g.home.get(item); key !== top; key = g.home.get(key)) {
    out.push([key, item]);
    item = key;
  }
  return out;
}

function bends(g, key, from, to, first = false) { // the points of an edge within an open module
  if (!boxes.get(key)?.open) return [];
  const path = g.byKey.get(key).path;
  const way = path.get(from + ">" + to) || (path.get(to + ">" + from) || []).slice().reverse();
  return (first ? [from, ...way] : [...way, to]).map(n => boxes.get(thin(n) ? key + n : n))
    .flatMap(q => [[q.x + q.w / 2, q.y], [q.x + q.w / 2, q.y + q.h]]);
}

function visible(item) {
  const g = now.graph;
  let rep = item;
  for (let key = g.home.get(item); key !== undefined; key = g.home.get(key))
    if (!g.byKey.get(key).open) rep = key;
  return rep;
}
