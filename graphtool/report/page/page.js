// What the mouse and the keys do.
function fit(b = boxes.get(now.graph.groups[0].key), most = 1) {
  const w = canvas.clientWidth, h = canvas.clientHeight;
  const k = Math.min(most, (w - 40) / b.w, (h - 40) / b.h);
  aim({k, x: w / 2 - k * (b.x + b.w / 2), y: h / 2 - k * (b.y + b.h / 2)});
}

function start() { // the whole width and the top, where the whole would be too small to read
  const b = boxes.get(now.graph.groups[0].key), w = canvas.clientWidth, h = canvas.clientHeight;
  const k = Math.min(1.1, Math.max((w - 40) / b.w, 0.3), Math.max((h - 40) / b.h, 0.8));
  view = {k, x: w / 2 - k * (b.x + b.w / 2), y: Math.max(20, (h - k * b.h) / 2)};
}

function aim(to) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) { view = to; stale = true; return; }
  glide = {from: {...view}, to, begun: performance.now()};
}

function step() {
  const t = Math.min(1, (performance.now() - glide.begun) / 160), e = t * (2 - t);
  for (const n of ["x", "y", "k"]) view[n] = glide.from[n] + e * (glide.to[n] - glide.from[n]);
  if (t === 1) glide = null;
  stale = true;
}

function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  glide = null;
  const k = Math.min(4, Math.max(0.01, view.k * factor));
  view = {k, x: x - (x - view.x) * k / view.k, y: y - (y - view.y) * k / view.k};
  stale = true;
}

function at(event) {
  const r = canvas.getBoundingClientRect();
  const x = (event.clientX - r.left - view.x) / view.k, y = (event.clientY - r.top - view.y) / view.k;
  let hit = null;
  for (const b of boxes.values())
    if (!b.bend && b.x <= x && x <= b.x + b.w && b.y <= y && y <= b.y + b.h
      && b.depth > (hit ? hit.depth : 0)) hit = b;
  return hit ? hit.item : null;
}

function toggle(key) {
  const g = now.graph, x = g.byKey.get(key), before = boxes.get(key);
  if (!x || x.parent === null) return;
  x.open = !x.open;
  layout();
  const b = boxes.get(key);
  if (before && b) { view.x += (before.x - b.x) * view.k; view.y += (before.y - b.y) * view.k; }
  tree();
}

function reveal(item) {
  const g = now.graph;
  let changed = false;
  for (let key = g.home.get(item); key !== undefined; key = g.home.get(key)) {
    const x = g.byKey.get(key);
    changed ||= !x.open;
    x.open = true;
  }
  if (changed) { layout(); tree(); }
}

function choose(item, go = true) {
  chosen = item;
  stale = true;
  if (item !== null && item !== undefined) {
    reveal(item);
    const b = boxes.get(item), k = Math.max(view.k, 0.7);
    const sx = b.x * view.k + view.x, sy = b.y * view.k + view.y;
    const out = sx < 0 || sy < 0 || sx + b.w * view.k > canvas.clientWidth
      || sy + b.h * view.k > canvas.clientHeight;
    if (go && out) aim({k, x: canvas.clientWidth / 2 - k * (b.x + b.w / 2),
      y: canvas.clientHeight / 2 - k * (b.y + b.h / 2)});
  }
  describe(item);
  for (const li of document.querySelectorAll("#outline [role=treeitem]"))
    li.setAttribute("aria-selected", String(li.dataset.item === String(item)));
  document.querySelector("#outline [aria-selected=true]")?.scrollIntoView({block: "nearest"});
}

function walk(key) {
  const g = now.graph;
  if (chosen === null) return choose(g.groups[0].children[0]);
  const links = (lists, back) => {
    if (typeof chosen === "number") return lists[chosen];
    return g.edges.filter(e => visible(e[back ? 1 : 0]) === chosen).map(e => e[back ? 0 : 1]);
  };
  const near = {ArrowDown: () => links(g.next, false), ArrowUp: () => links(g.before, true),
    ArrowRight: () => sibling(1), ArrowLeft: () => sibling(-1)}[key]();
  const to = near.map(visible).find(x => x !== chosen);
  if (to !== undefined) choose(to);
}

function sibling(by) {
  const all = now.graph.byKey.get(now.graph.home.get(chosen))?.children || [];
  const next = all[all.indexOf(chosen) + by];
  return next === undefined ? [] : [next];
}

function everyGroup(open) {
  for (const x of now.graph.groups) x.open = open || x.parent === null;
  layout();
  tree();
  fit();
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  read();
}

const keys = {
  "/": () => $("search").focus(), "0": () => fit(), "+": () => zoom(1.25), "=": () => zoom(1.25),
  "-": () => zoom(0.8), e: () => everyGroup(true), c: () => everyGroup(false), d: theme,
  Escape: () => { choose(null); seek(""); $("search").value = ""; },
  Enter: () => typeof chosen === "string" && toggle(chosen)};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("search")) {
    if (event.key === "Escape") { keys.Escape(); canvas.focus(); }
    return;
  }
  if (event.target.tagName === "BUTTON" && event.key === "Enter") return;
  if (!now.graph || document.querySelector("main").classList.contains("sheet")) {
    if (event.key === "d") theme();
    return;
  }
  if (event.key.startsWith("Arrow")) { walk(event.key); event.preventDefault(); }
  else if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
});
let turn = 0;
$("search").addEventListener("input", () => { turn = 0; seek($("search").value); });
$("search").addEventListener("keydown", event => {
  if (event.key !== "Enter") return;
  const hits = seek($("search").value);
  if (hits.length) choose(hits[turn++ % hits.length]);
  seek($("search").value);
});
let drag = null;
canvas.addEventListener("pointerdown", event => {
  drag = {x: event.clientX, y: event.clientY, moved: false};
  glide = null;
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 3) return;
  drag = {x: event.clientX, y: event.clientY, moved: true};
  view.x += dx;
  view.y += dy;
  stale = true;
});
canvas.addEventListener("pointerup", event => {
  if (drag && !drag.moved) choose(at(event), false);
  drag = null;
});
canvas.addEventListener("dblclick", event => {
  const item = at(event);
  if (typeof item === "string") toggle(item);
});
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const r = canvas.getBoundingClientRect();
  zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)),
    event.clientX - r.left, event.clientY - r.top);
}, {passive: false});
$("fit").onclick = () => fit();
$("open").onclick = () => everyGroup(true);
$("close").onclick = () => everyGroup(false);
$("theme").onclick = theme;
new ResizeObserver(() => { stale = true; }).observe(canvas);

if (matchMedia("(prefers-color-scheme: dark)").matches)
  document.documentElement.dataset.theme = "dark";
const tabs = page.sections.flatMap(section => [
  ...(section.graph ? [{section, part: "graph", name: section.name}] : []),
  ...(section.graph && !section.charts.length ? [] : [{section, part: "sheet",
    name: section.graph ? `${section.name}: memory` : section.name}])]);
for (const tab of tabs) {
  const b = made("button", tab.name, {role: "tab", type: "button"});
  b.tab = tab;
  b.onclick = () => show(tab);
  $("tabs").append(b);
}
const start_of = new URLSearchParams(location.hash.slice(1));
read();
show(tabs[Number(start_of.get("tab") || 0)] || tabs[0]);
if (start_of.get("theme")) { document.documentElement.dataset.theme = start_of.get("theme"); read(); }
if (start_of.get("open")) everyGroup(true);
if (start_of.get("find")) { $("search").value = start_of.get("find");
  const hits = seek($("search").value); if (hits.length) choose(hits[0]); }
requestAnimationFrame(paint);
