// Colours nodes by a number of each: arithmetic, weights, or the time that a profile measured.
const HEATS = {flops: "FLOPs", held: "bytes of weights", us: "µs"}, STEPS = 15; // shades
let heat = ""; // by kind

function timed(section) { // a kernel's time is divided among its nodes, in equal parts
  for (const [names, us] of section.times || []) {
    const nodes = carriers(section, names);
    for (const i of nodes) section.graph.nodes[i].us = (section.graph.nodes[i].us || 0) + us / nodes.length;
  }
  section.times = undefined;
}

function amount(g, item) { // of a node, or all nodes of a module
  return members(g, item).reduce((sum, i) => sum + (g.nodes[i][heat] || 0), 0);
}

function heats(p) { // the number of each item that is drawn, the largest of them, and their sum
  if (p.heats?.boxes === p.boxes && p.heats.heat === heat) return p.heats;
  const g = p.graph, of = new Map();
  for (const i of g.nodes.keys()) {
    const item = visible(g, i);
    of.set(item, (of.get(item) || 0) + (g.nodes[i][heat] || 0));
  }
  const all = [...of.values()];
  p.heats = {boxes: p.boxes, heat, of, most: all.reduce((a, b) => Math.max(a, b), 0),
    sum: all.reduce((a, b) => a + b, 0)};
  return p.heats;
}

function shade(p, item) { // a colour over that of the page; none where there is nothing
  const {of, most} = heats(p), part = most ? Math.ceil(STEPS * Math.sqrt((of.get(item) || 0) / most)) : 0;
  return part ? colours.heat + (part * 17).toString(16).padStart(2, "0") : "";
}

function share(p, item) { // in words
  const {of, sum} = heats(p), part = sum ? 100 * (of.get(item) || 0) / sum : 0;
  return part ? `${part < 0.1 ? "< 0.1" : part.toPrecision(part < 99.5 ? 2 : 3)} %` : "";
}

function offer(section) { // the numbers that there are
  if (section.graph) timed(section);
  $("heat").replaceChildren(made("option", "Colour: kind", {value: ""}), ...Object.keys(HEATS).filter(
    x => section.graph?.nodes.some(n => n[x])).map(x => made("option", `Colour: ${HEATS[x]}`, {value: x})));
  if (![...$("heat").children].some(x => x.value === heat)) heat = "";
  $("heat").value = heat;
}

function warm(name) {
  heat = name;
  for (const p of panes) p.stale = true;
  if (pane) describe(pane.chosen);
  remember();
}
