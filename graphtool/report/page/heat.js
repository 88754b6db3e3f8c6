// Colours nodes by a number of each: arithmetic, weights, a profile's time, or the user's own.
const HEATS = {flops: "FLOPs", held: "bytes of weights"}, PARTS = ["flops", "held", "us"]; // of a sum
const STEPS = 15; // shades
let heat = ""; // by kind

function addNumbers(section) { // a kernel's number is divided among its nodes, in equal parts
  const all = section.graph.nodes, byName = new Map(all.map((n, i) => [n.name, i]));
  for (const [key, title, rows] of section.numbers || []) {
    HEATS[key] = title;
    for (const [names, value] of rows) {
      const exact = names.length === 1 ? byName.get(names[0]) : undefined;
      const nodes = (exact === undefined ? carriers(section, names) : [exact]).map(i => all[i]);
      for (const n of nodes) n[key] = (n[key] || 0) + value / nodes.length;
    }
  }
  section.numbers = [];
}

function amount(g, item) { // of a node, or all nodes of a module
  return members(g, item).reduce((sum, i) => sum + (g.nodes[i][heat] || 0), 0);
}

function heatSums(p) { // the number of each item that is drawn, the largest of them, and their sum
  if (p.heatSums?.boxes === p.boxes && p.heatSums.heat === heat) return p.heatSums;
  const g = p.graph, of = new Map();
  for (const i of g.nodes.keys()) {
    const item = visible(g, i);
    of.set(item, (of.get(item) || 0) + (g.nodes[i][heat] || 0));
  }
  const all = [...of.values()];
  p.heatSums = {boxes: p.boxes, heat, of, most: all.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
    sum: all.reduce((a, b) => a + b, 0)};
  return p.heatSums;
}

function shade(p, item) { // a colour over that of the page; none where there is nothing
  const {of, most} = heatSums(p), part = most ? Math.ceil(STEPS * Math.sqrt(Math.abs(of.get(item) || 0) / most)) : 0;
  return part ? colours.heat + (part * 17).toString(16).padStart(2, "0") : "";
}

function share(p, item) { // in words
  const {of, sum} = heatSums(p), value = of.get(item) || 0, part = sum ? 100 * value / sum : 0;
  if (!PARTS.includes(heat)) return value ? String(Number(value.toPrecision(3))) : "";
  return part ? `${part < 0.1 ? "< 0.1" : part.toPrecision(part < 99.5 ? 2 : 3)} %` : "";
}

function listColours(section) { // the numbers that there are
  if (section.graph) addNumbers(section);
  $("heat").replaceChildren(made("option", "Colour: kind", {value: ""}), ...Object.keys(HEATS).filter(
    x => section.graph?.nodes.some(n => n[x])).map(x => made("option", `Colour: ${HEATS[x]}`, {value: x})));
  if (![...$("heat").children].some(x => x.value === heat)) heat = "";
  $("heat").value = heat;
}

function colourBy(name) {
  heat = name;
  for (const p of panes) p.stale = true;
  if (pane) describe(pane.chosen);
  remember();
}
