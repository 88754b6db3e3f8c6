// What a node is in the other stages: nodes and kernels that carry one of the model's names of it.
const stages = page.sections.filter(s => s.graph || s.kernels);

function index(section) { // names to numbers of nodes or kernels; `under` has those derived of it
  if (section.exact) return section;
  section.exact = new Map();
  section.under = new Map();
  const put = (map, name, i) => map.has(name) ? map.get(name).push(i) : map.set(name, [i]);
  (section.graph ? section.graph.nodes : section.kernels).forEach((x, i) => {
    for (const name of called(x)) {
      put(section.exact, name, i);
      for (let at = name.lastIndexOf("."); at > 0; at = name.lastIndexOf(".", at - 1))
        put(section.under, name.slice(0, at), i);
    }
  });
  return section;
}

function called(x) { return x.of || [x.name]; }

function carriers(section, names) { // `conv` is in what has the name conv, or conv.1
  const {exact, under} = index(section), out = new Set();
  for (const name of names) {
    for (const i of [...exact.get(name) || [], ...under.get(name) || []]) out.add(i);
    for (let at = name.lastIndexOf("."); at > 0; at = name.lastIndexOf(".", at - 1))
      for (const i of exact.get(name.slice(0, at)) || []) out.add(i);
  }
  return [...out].sort((a, b) => a - b);
}

function members(g, item) { // the nodes of a module and below; of a node, itself
  if (typeof item === "number") return [item];
  return g.byKey.get(item).children.flatMap(x => members(g, x));
}

function became(section, item, other) { // [what it is there, whether only its readers are there]
  const g = section.graph, mine = members(g, item);
  const found = carriers(other, mine.flatMap(i => called(g.nodes[i])));
  if (found.length || typeof item !== "number") return [found, false];
  return [carriers(other, g.next[item].flatMap(i => called(g.nodes[i]))), true];
}

function mark(names, from) { // in each pane but `from`, and in the C
  for (const p of panes) {
    p.told.textContent = "";
    if (p === from) { p.kin = new Set(); continue; }
    const items = names.length ? carriers(p.section, names) : [];
    if (items.length <= MOST) p.reveal(items);
    p.kin = new Set(items.map(i => visible(p.graph, i)));
    p.chosen = null;
    if (names.length) p.told.textContent = items.length ? items.slice(0, 4).map(
      i => p.graph.nodes[i].name).join(", ") + (items.length > 4 ? ", …" : "") : "nothing of it";
    if (p.kin.size) p.show(...p.kin);
    p.stale = true;
  }
  for (const box of document.querySelectorAll(".pane.code")) {
    const there = new Set(names.length ? carriers(box.section, names) : []);
    let first = null;
    [...box.querySelectorAll("details")].forEach((d, i) => {
      d.classList.toggle("kin", there.has(i));
      if (from !== box) d.open = there.has(i);
      if (there.has(i) && !first) first = d;
    });
    if (first && from !== box) first.scrollIntoView({block: "start"});
  }
}

function kernel(section, i) { // a kernel with its lines of C, made when it is opened
  const x = section.kernels[i], c = section.code[x.kernel], box = made("details");
  const head = made("summary", `${x.kernel} `);
  head.append(made("small", [x.plan, x.label || x.where].filter(Boolean).join(" · ")));
  box.append(head);
  box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector("pre") || !c) return;
    box.append(made("small", `${c.file}:${c.line}`), lines(section, i, c));
  });
  return box;
}

function lines(section, i, c) { // a click on a line marks the nodes that it is of
  const pre = made("pre", undefined, {tabindex: 0, role: "button",
    title: "A click or Enter marks the nodes of this kernel"});
  const mine = () => {
    const names = called(section.kernels[i]);
    if (panes.length) { mark(names, pre.closest(".code") || pane); return; }
  };
  c.text.split("\n").forEach((line, n) => {
    const code = made("code", line + "\n");
    code.dataset.line = c.line + n;
    pre.append(code);
  });
  pre.addEventListener("click", () => !String(getSelection()) && mine());
  pre.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.stopPropagation(); mine(); }
  });
  return pre;
}

function codePane(section) {
  const box = made("div", undefined, {class: "pane code", role: "region",
    "aria-label": `C of ${section.name}`});
  box.section = section;
  box.append(made("h2", `${section.name}: C`));
  const list = made("div", undefined, {class: "scroll"});
  list.append(...section.kernels.map((_, i) => kernel(section, i)));
  box.append(list);
  return box;
}

function elsewhere(section, item, list) { // rows for the panel of details
  for (const other of stages) {
    if (other === section) continue;
    const [found, readers] = became(section, item, other);
    list.append(made("dt", `in ${other.name}` + (readers && found.length
      ? ", as a part of what reads it" : "")));
    if (!found.length) list.append(made("dd", "nothing of its own"));
    for (const i of found.slice(0, 12)) {
      const dd = made("dd");
      if (other.graph) {
        const n = other.graph.nodes[i], link = made("button", n.name, {type: "button",
          class: "link"});
        link.append(" ", made("small", n.op));
        link.onclick = () => goTo(other, i);
        dd.append(link);
      } else dd.append(kernel(other, i));
      list.append(dd);
    }
    if (found.length > 12) list.append(made("dd", `and ${found.length - 12} more`));
  }
}

function goTo(section, i) { // to a node of another stage: in its pane, or on its own tab
  const there = panes.find(p => p.section === section);
  if (there) activate(there);
  else show(tabs.find(t => t.section === section && t.part === "graph"));
  choose(i);
  pane.canvas.focus();
}

function beside(shown) { // the stages side by side
  const bar = made("div", undefined, {class: "bar", role: "group", "aria-label": "Stages shown"});
  for (const s of stages) {
    const b = made("button", s.name, {type: "button", "aria-pressed": String(shown.has(s))});
    b.onclick = () => {
      if (!shown.delete(s)) shown.add(s);
      if (shown.size) show(tabs.find(t => t.part === "stages")); else shown.add(s);
    };
    bar.append(b);
  }
  const row = made("div", undefined, {class: "row"});
  panes = [];
  for (const s of stages.filter(x => shown.has(x))) {
    if (!s.graph) { row.append(codePane(s)); continue; }
    panes.push(new Pane(s, true));
    row.append(panes.at(-1).element);
  }
  $("graphs").replaceChildren(bar, row);
}
