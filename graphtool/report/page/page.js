// Tabs, and what the keys do.
function activate(p) { // the keys, the outline and the details are for this pane from now on
  if (pane === p) return;
  pane = p;
  for (const q of panes) q.element.classList.toggle("on", panes.length > 1 && q === p);
  describe(p.chosen);
  tree();
}

function choose(item, go = true) {
  const p = pane;
  p.chosen = item;
  p.stale = true;
  if (item !== null && item !== undefined) {
    p.reveal([item]);
  }
  mark(item === null ? [] : members(p.graph, item).flatMap(i => called(p.graph.nodes[i])), p);
  describe(item); // on a narrow screen the details take room from the graph
  if (item !== null && item !== undefined && (go || innerWidth <= 760)) p.show(item);
  remember();
  if (item !== null && item !== undefined) unfold(item);
  for (const li of document.querySelectorAll("#outline [role=treeitem]"))
    li.setAttribute("aria-selected", String(li.dataset.item === String(item)));
  document.querySelector("#outline [aria-selected=true]")?.scrollIntoView({block: "nearest"});
}

function walk(key) {
  const g = pane.graph, chosen = pane.chosen;
  if (chosen === null) return choose(g.groups[0].children[0]);
  const links = (lists, back) => {
    if (typeof chosen === "number") return lists[chosen];
    return g.edges.filter(e => visible(g, e[back ? 1 : 0]) === chosen).map(e => e[back ? 0 : 1]);
  };
  const near = {ArrowDown: () => links(g.next, false), ArrowUp: () => links(g.before, true),
    ArrowRight: () => sibling(1), ArrowLeft: () => sibling(-1)}[key]();
  const to = near.map(x => visible(g, x)).find(x => x !== chosen);
  if (to !== undefined) choose(to);
}

function sibling(by) {
  const all = pane.graph.byKey.get(pane.graph.home.get(pane.chosen))?.children || [];
  const next = all[all.indexOf(pane.chosen) + by];
  return next === undefined ? [] : [next];
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  read();
}

function swap() { // on a narrow screen the outline and the figures are in place of the graph
  const on = document.querySelector("main").classList.toggle("outline");
  $("list").setAttribute("aria-pressed", String(on));
}

function plain() { // ops that only change shapes, drawn as a bend of the edge through them
  hiding = !hiding;
  $("plain").setAttribute("aria-pressed", String(hiding));
  for (const p of panes) layout(p);
  if (pane) tree();
  remember();
}

function remember() { // a link to the page as it is
  const kept = new URLSearchParams();
  const tab = tabs.findIndex((_, i) => $("tabs").children[i].getAttribute("aria-selected") === "true");
  if (tab > 0) kept.set("tab", tabs[tab].part === "stages" ? "stages" : tab);
  if (hiding) kept.set("plain", 1);
  if (heat) kept.set("heat", heat);
  const item = pane ? pane.chosen : null;
  if (item !== null && item !== undefined)
    kept.set("at", typeof item === "number" ? pane.graph.nodes[item].name : item);
  try { history.replaceState(null, "", String(kept) ? `#${kept}` : "#"); } catch { /* in a frame */ }
}

function recall() { // what a link says
  const kept = new URLSearchParams(location.hash.slice(1)), tab = kept.get("tab") || "0";
  if (kept.get("theme")) document.documentElement.dataset.theme = kept.get("theme");
  if (!!kept.get("plain") !== hiding) plain();
  heat = kept.get("heat") || "";
  show(tab === "stages" ? tabs.find(t => t.part === tab) || tabs[0] : tabs[Number(tab)] || tabs[0]);
  read();
  if (!pane) return;
  if (kept.get("open")) pane.every(true);
  const at = kept.get("at"), i = pane.graph.nodes.findIndex(n => n.name === at);
  if (i >= 0) choose(i); else if (pane.graph.byKey.has(at)) choose(at);
  if (kept.get("find")) {
    $("search").value = kept.get("find");
    found(0);
  }
}

let shownTab = null;

function show(tab) {
  shownTab = tab;
  const drawn = tab.part !== "sheet", main = document.querySelector("main");
  main.classList.toggle("sheet", !drawn);
  for (const b of $("tabs").children) {
    b.setAttribute("aria-selected", String(b.tab === tab));
    b.setAttribute("tabindex", b.tab === tab ? 0 : -1);
  }
  if (drawn) listColours(tab.section || {});
  $("saves").hidden = !drawn && !tab.section.charts.length;
  for (const b of $("saves").querySelectorAll("[data-whole]")) b.hidden = !drawn;
  pane = null;
  panes = [];
  $("graphs").replaceChildren();
  const enable = on => ["search", "fit", "open", "close", "plain", "list", "heat"].forEach(
    name => { $(name).disabled = !on; });
  enable(drawn);
  if (!drawn) return sheet(tab.section);
  if (tab.part === "stages") beside(tab.shown);
  else {
    panes = [new Pane(tab.section, false)];
    $("graphs").replaceChildren(panes[0].element);
  }
  if (panes.length) activate(panes[0]); // first, as the panel of details takes room
  else { // of the stages, only C is shown
    enable(false);
    $("saves").hidden = true;
    for (const name of ["outline", "detail"]) $(name).replaceChildren();
  }
  for (const p of panes) p.start();
  remember();
}

const KEYS = [["arrows", "along edges, to neighbours"], ["Enter", "open or close a module"],
  ["/", "search"], ["+ - 0", "zoom, show everything"], ["e c", "expand, collapse all"],
  ["i u", "mark what it depends on, what uses it"], ["s", "hide shape ops"], ["h", "colours"], ["d", "light or dark"],
  ["o", "outline, in a narrow window"], ["Escape", "choose nothing"]];
const keys = {
  "/": () => $("search").focus(), "0": () => pane.fit(), "+": () => pane.zoom(1.25),
  "=": () => pane.zoom(1.25), "-": () => pane.zoom(0.8), e: () => pane.every(true),
  c: () => pane.every(false), d: theme, s: plain, o: swap,
  i: () => trace(pane.graph.before, "It depends on"), u: () => trace(pane.graph.next, "It is used by"),
  h: () => { const all = $("heat"); all.selectedIndex = (all.selectedIndex + 1) % all.length; colourBy(all.value); },
  "?": () => { choose(null); $("help").open = true; $("help").scrollIntoView(); },
  Escape: () => { choose(null); seek(""); $("search").value = ""; },
  Enter: () => typeof pane.chosen === "string" && pane.toggle(pane.chosen)};
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const at = event.target;
  if (at.closest("#saves") && event.key === "Escape") {
    $("saves").open = false;
    $("saves").firstElementChild.focus();
    return;
  }
  if (at === $("search")) {
    if (event.key === "Escape" && pane) { keys.Escape(); pane.canvas.focus(); }
    return;
  }
  if (at.role === "tab" && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
    const by = event.key === "ArrowRight" ? 1 : tabs.length - 1;
    const next = $("tabs").children[([...$("tabs").children].indexOf(at) + by) % tabs.length];
    next.click();
    next.focus();
    return;
  }
  if (at.closest("#outline") && climbTree(event)) return;
  const pressed = event.key === "Enter" || event.key === " " || event.key.startsWith("Arrow");
  if (at.closest("button, select, summary, .scroll, #detail, #sheet") && pressed) return;
  if (!pane) {
    if (event.key === "d") theme();
    return;
  }
  if (event.key.startsWith("Arrow")) { walk(event.key); event.preventDefault(); }
  else if (keys[event.key]) { keys[event.key](); event.preventDefault(); }
});
let turn = 0;
$("search").addEventListener("input", () => { turn = 0; seek($("search").value); });
$("search").addEventListener("keydown", event => { if (event.key === "Enter") found(turn++); });
$("search").addEventListener("focus", () => seek($("search").value));
document.addEventListener("pointerdown", event => {
  if (!event.target.closest("#finder")) $("hits").hidden = true;
  if (!event.target.closest("#saves")) $("saves").open = false;
});
$("fit").onclick = () => pane.fit();
$("open").onclick = () => pane.every(true);
$("close").onclick = () => pane.every(false);
$("list").onclick = swap;
$("plain").onclick = plain;
$("theme").onclick = theme;
$("heat").onchange = () => colourBy($("heat").value);
for (const b of $("saves").querySelectorAll("button"))
  b.onclick = () => save(b.dataset.kind, !!b.dataset.whole);
tips();

if (matchMedia("(prefers-color-scheme: dark)").matches)
  document.documentElement.dataset.theme = "dark";
const tabs = page.sections.flatMap(section => [
  ...(section.graph ? [{section, part: "graph", name: section.name}] : []),
  ...(section.graph && !section.charts.length ? [] : [{section, part: "sheet",
    name: section.graph ? `${section.name}: memory` : section.name}])]);
if (stages.length > 1 && stages.some(s => s.graph)) {
  const graphs = stages.filter(s => s.graph), code = stages.filter(s => !s.graph);
  tabs.push({part: "stages", name: "stages side by side",
    shown: new Set([...new Set([graphs[0], graphs.at(-1)]), ...code.slice(-1)])});
}
for (const tab of tabs) {
  const b = made("button", tab.name, {role: "tab", type: "button", "aria-controls": "stage"});
  b.tab = tab;
  b.onclick = () => show(tab);
  $("tabs").append(b);
}
document.querySelector("header").classList.toggle("many", tabs.length > 4);
recall();
addEventListener("hashchange", recall);
requestAnimationFrame(paint);
