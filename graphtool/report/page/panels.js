// The outline, the panel of details, and the sheets of plots and tables.
function made(tag, text, more = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  for (const [k, v] of Object.entries(more)) e.setAttribute(k, v);
  return e;
}

function describe(item) {
  const side = $("detail");
  side.replaceChildren();
  if (item === null || item === undefined) {
    const pre = made("pre", now.lines.join("\n"));
    side.append(made("h2", now.name), pre);
    return;
  }
  const g = now.graph, list = made("dl");
  const row = (name, value) => { if (value && value.length) list.append(made("dt", name),
    ...[].concat(value).map(v => made("dd", v))); };
  side.append(made("h2", label(g, item)));
  if (typeof item === "number") {
    const n = g.nodes[item];
    row("op", n.op); row("type", n.type); row("operands", n.inputs); row("attributes", n.attrs);
    row("source", [n.at, n.text].filter(Boolean)); row("kernel of", n.fused); row("kernel, and what it was chosen over", n.rivals);
    row("made by", n.history); row("change", now.changes && now.changes[n.name]);
    row("read by", g.next[item].map(i => g.nodes[i].name));
  } else {
    const counts = new Map();
    const count = key => { for (const c of g.byKey.get(key).children) {
      if (typeof c === "string") count(c);
      else counts.set(g.nodes[c].op, (counts.get(g.nodes[c].op) || 0) + 1);
    } };
    count(item);
    row("ops", [...counts].sort((a, b) => b[1] - a[1]).map(([op, n]) => `${n} × ${op}`));
  }
  side.append(list);
}

function tree() {
  const g = now.graph, box = $("outline");
  const branch = key => g.byKey.get(key).children.slice(0, MOST).map(item => {
    const group = typeof item === "string", li = made("li", undefined,
      {role: "treeitem", "data-item": item, "aria-selected": String(item === chosen), tabindex: -1});
    const line = made("span", group ? g.byKey.get(item).name
      : g.nodes[item].name.split(".").at(-1));
    line.title = label(g, item);
    line.append(" ", made("small", group ? String(g.byKey.get(item).size) : g.nodes[item].op));
    line.onclick = () => choose(item);
    line.ondblclick = () => group && toggle(item);
    li.append(line);
    if (group) {
      const open = g.byKey.get(item).open;
      li.setAttribute("aria-expanded", String(open));
      if (open) {
        const inner = made("ul", undefined, {role: "group"});
        inner.append(...branch(item));
        li.append(inner);
      }
    }
    return li;
  });
  box.replaceChildren(...branch(g.groups[0].key));
  box.firstElementChild?.setAttribute("tabindex", "0");
}

function sheet(section) {
  const box = $("sheet");
  box.replaceChildren(made("h2", section.name));
  for (const svg of section.charts) {
    const holder = made("figure", undefined, {style: "margin:0"});
    holder.innerHTML = svg;
    box.append(holder);
  }
  if (section.lines.length) box.append(made("pre", section.lines.join("\n")));
  if (section.table) {
    const table = made("table"), head = made("tr");
    head.append(...section.table.head.map(x => made("th", x)));
    table.append(head, ...section.table.rows.map(cells => {
      const tr = made("tr");
      tr.append(...cells.map(x => made("td", x)));
      return tr;
    }));
    box.append(table);
  }
}

function show(tab) {
  now = tab.section;
  const drawn = tab.part === "graph";
  document.querySelector("main").classList.toggle("sheet", !drawn);
  for (const b of $("tabs").children)
    b.setAttribute("aria-selected", String(b.tab === tab));
  if (!drawn) return sheet(now);
  prepare(now);
  chosen = null;
  describe(null);
  layout();
  tree();
  start();
}

function seek(text) {
  const g = now.graph, words = text.toLowerCase().split(/\s+/).filter(Boolean);
  found = new Set();
  if (!g || !words.length) { stale = true; return []; }
  const hits = [];
  g.nodes.forEach((n, i) => {
    const all = `${n.name} ${n.op} ${n.type || ""} ${n.at || ""}`.toLowerCase();
    if (words.every(w => all.includes(w))) hits.push(i);
  });
  for (const i of hits) found.add(visible(i));
  stale = true;
  return hits;
}
