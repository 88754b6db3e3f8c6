// The outline, the panel of details, and the sheets of plots and tables.
const HITS = 100, EARLY = 400; // lines in the list of hits; rows of the outline that are made at once

function readable(text) { // lines of text, without marks that turn it or hide
  return String(text).split(/([\n\t])/).map((part, i) => i % 2 ? part : safe(part)).join("");
}

function made(tag, text, more = {}) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = readable(text);
  for (const [k, v] of Object.entries(more)) e.setAttribute(k, v);
  return e;
}

function linkTo(item, text = label(pane.graph, item)) {
  const b = made("button", text, {type: "button", class: "link"});
  b.onclick = () => choose(item);
  return b;
}

function crumbs(g, item) { // the modules around it, the outermost first
  const line = made("span");
  for (const key of homes(g, item).slice(0, -1).reverse())
    line.append(line.firstChild ? " › " : "", linkTo(key, titled(g.byKey.get(key))));
  return line;
}

function describe(item) {
  const side = $("detail"), now = pane.section, g = pane.graph;
  side.replaceChildren();
  side.classList.toggle("chosen", item !== null && item !== undefined);
  if (item === null || item === undefined) {
    side.append(made("h2", now.name));
    const first = Object.entries(now.parts || {}).find(([, part]) => part === "first");
    if (first) {
      const i = g.nodes.findIndex(n => n.name === first[0]);
      const told = made("p", "The first value that parts, in red: ");
      told.append(i >= 0 ? linkTo(i) : first[0]);
      side.append(told);
    }
    side.append(facts(now.lines), ends(g), meanings(), help());
    return;
  }
  const list = made("dl");
  const row = (name, value) => { if (value && value.length) list.append(made("dt", name),
    ...[].concat(value).map(v => {
      const dd = made("dd");
      dd.append(v instanceof Node ? v : readable(v));
      return dd;
    })); };
  side.append(made("h2", label(g, item)), acts(g, item));
  if (typeof item === "number") {
    const n = g.nodes[item];
    const [doc, ...roles] = g.ops?.[n.op] || [];
    row("op", [n.op, doc].filter(Boolean));
    row("module", n.module || n.class ? around(g, item) : ""); row("in", homes(g, item).length > 1 && [crumbs(g, item)]);
    row("type", n.type); row("attributes", n.attrs);
    if (heat) row(HEATS[heat], measure(g, item));
    let at = 0; // lines that begin with a space are about the weight above
    row("operands", (n.inputs || []).map(x => x[0] === " " ? x : operand(g, x, roles[at++])));
    row("source", [n.at, n.text].filter(Boolean)); row("kernel of", n.fused);
    row("kernel, and what it was chosen over", n.rivals); row("made by", n.history);
    row("change", now.changes && now.changes[n.name]);
    row("error", now.errors && now.errors[n.name]);
    row("read by", g.next[item].slice(0, HITS).map(i => linkTo(i)));
  } else {
    const counts = new Map();
    for (const i of members(g, item))
      counts.set(g.nodes[i].op, (counts.get(g.nodes[i].op) || 0) + 1);
    const x = g.byKey.get(item), like = g.groups.filter(y => y !== x && y.kind === x.kind);
    row("in", homes(g, item).length > 1 && [crumbs(g, item)]);
    if (heat) row(HEATS[heat], measure(g, item));
    row("modules alike", like.slice(0, 12).map(y => linkTo(y.key, pathOf(g)(y))).concat(
      like.length > 12 ? [`and ${like.length - 12} more`] : []));
    row("ops", [...counts].sort((a, b) => b[1] - a[1]).map(([op, n]) => `${n} × ${op}`));
  }
  elsewhere(now, item, list);
  side.append(list);
}

function operand(g, x, role) { // a node, or the words of a weight or a number
  const line = made("span");
  if (role) line.append(made("small", `${role} `));
  line.append(...typeof x === "number" ? [linkTo(x), `: ${readable(g.nodes[x].type || "")}`] : [readable(x)]);
  return line;
}

function meanings() { // the colours that the graph has
  const list = made("div", undefined, {class: "legend"});
  for (const [colour, words] of legendRows(pane)) {
    const line = made("span", words);
    line.prepend(made("i", "", {style: `background: var(--${colour})`}));
    list.append(line);
  }
  return list;
}

function help() { // the keys
  const box = made("details"), table = made("table");
  table.append(...KEYS.map(([key, words]) => {
    const tr = made("tr");
    tr.append(made("th", key, {scope: "row"}), made("td", words));
    return tr;
  }));
  box.append(made("summary", "Keys (?)"), table);
  box.id = "help";
  return box;
}

function along(g, item, lists) { // the nodes of an item, and all that `lists` lead to from them
  const seen = new Set(members(g, item)), queue = [...seen];
  while (queue.length) for (const i of lists[queue.pop()]) if (!seen.has(i)) {
    seen.add(i);
    queue.push(i);
  }
  return seen;
}

function trace(lists, words) { // marks all nodes before the chosen one, or all after it
  const g = pane.graph, item = pane.chosen;
  if (item === null || item === undefined) return;
  const all = along(g, item, lists);
  marked([...all]);
  say(`${words} ${COUNTS.format(all.size - members(g, item).length)} nodes`);
}

function marked(items) {
  pane.found = new Set(items.map(i => visible(pane.graph, i)));
  pane.stale = true;
}

function measure(g, item) {
  const value = amount(g, item);
  return PARTS.includes(heat) ? `${COUNTS.format(value)}  ${share(pane, item)}` : String(value);
}

function pathOf(g) { // the names of the modules around a module, and its own
  return x => [...homes(g, x.key).slice(0, -1).map(key => g.byKey.get(key).name).reverse(),
    titled(x)].join(".");
}

function acts(g, item) { // what can be done with what is chosen, for fingers too
  const bar = made("div", undefined, {class: "acts"});
  const act = (text, done) => {
    const b = made("button", text, {type: "button"});
    b.onclick = done;
    bar.append(b);
    return b;
  };
  const name = typeof item === "number" ? g.nodes[item].name : pathOf(g)(g.byKey.get(item)).split(" · ")[0];
  act("Copy name", () => copy(name));
  if (typeof item === "string" && g.byKey.get(item).parent !== null) {
    const b = act(g.byKey.get(item).open ? "Close module" : "Open module", () => {
      pane.toggle(item);
      b.textContent = g.byKey.get(item).open ? "Close module" : "Open module";
    });
  }
  act("Centre", () => pane.centre(item));
  act("Needs", keys.i).title = "Mark all that it depends on (i)";
  act("Feeds", keys.u).title = "Mark all that depends on it (u)";
  const like = typeof item === "string" ? g.groups.filter(x => x.kind === g.byKey.get(item).kind) : [];
  if (like.length > 1) act(`Mark ${like.length} alike`, () => marked(like.map(x => x.key)));
  return bar;
}

async function copy(text) {
  try { await navigator.clipboard.writeText(text); }
  catch { // a file has no clipboard in some browsers
    const field = made("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say("Name copied");
}

function ends(g) { // the inputs and outputs of the model
  const list = made("dl");
  for (const op of ["input", "output"]) {
    const all = [...g.nodes.keys()].filter(i => g.nodes[i].op === op);
    if (all.length) list.append(made("dt", all.length > 1 ? `${all.length} ${op}s` : op));
    for (const i of all.slice(0, HITS)) {
      const dd = made("dd");
      dd.append(linkTo(i), " ", made("small", g.nodes[i].type || ""));
      list.append(dd);
    }
    if (all.length > HITS) list.append(made("dd", `and ${all.length - HITS} more`));
  }
  return list;
}

function around(g, item) { // the module that a node is in, with its path and its class
  const n = g.nodes[item], modules = homes(g, item).slice(0, -1).map(key => g.byKey.get(key));
  const path = n.module || modules.map(x => x.name).reverse().join(".");
  return [path, n.class || modules[0]?.class].filter(Boolean).join(" · ");
}

function facts(lines) { // `name    value` in two columns, other lines over both
  const list = made("dl", undefined, {class: "facts"});
  for (const line of lines) {
    const row = /^(\S.*?) {2,}(.*)$/.exec(line);
    list.append(...row ? [made("dt", row[1]), made("dd", row[2])]
      : [made("dd", line, {class: "wide"})]);
  }
  return list;
}

let early = 0, later = null; // rows that may still be made at once; what waits until it is in view

function tree() {
  early = EARLY;
  later?.disconnect();
  later = new IntersectionObserver(
    seen => { for (const x of seen) if (x.isIntersecting) fill(x.target); }, {root: $("side"), rootMargin: "400px"});
  const box = $("outline");
  box.replaceChildren(...branch(pane.graph.groups[0].key));
  box.firstElementChild?.setAttribute("tabindex", "0");
}

function fill(list) { // the rows of an open module in the outline
  if (!list || list.firstChild) return;
  later.unobserve(list);
  list.style.minHeight = "";
  list.append(...branch(list.parentElement.dataset.item));
}

function unfold(item) { // the rows down to an item
  for (const key of homes(pane.graph, item).reverse())
    fill($("outline").querySelector(`[data-item="${key}"] > ul`));
}

function branch(key) {
  const g = pane.graph, items = g.byKey.get(key).children.filter(x => !hidden(g, x)).slice(0, MOST);
  early -= items.length;
  return items.map(item => {
    const group = typeof item === "string", li = made("li", undefined, {role: "treeitem",
      "data-item": item, "aria-selected": String(item === pane.chosen), tabindex: -1});
    const line = made("span", group ? titled(g.byKey.get(item))
      : named(g.nodes[item]).split(g.nodes[item].class ? /\.(?=[^.]* · )/ : /[./]/).at(-1));
    line.title = label(g, item);
    line.append(" ", made("small", group ? String(g.byKey.get(item).size) : g.nodes[item].op));
    line.onclick = () => choose(item);
    line.ondblclick = () => group && pane.toggle(item);
    li.append(line);
    if (group) {
      const open = g.byKey.get(item).open;
      li.setAttribute("aria-expanded", String(open));
      if (open) {
        const inner = made("ul", undefined, {role: "group"});
        li.append(inner);
        if (early > 0) fill(inner);
        else {
          inner.style.minHeight = `${1.45 * g.byKey.get(item).children.length}em`;
          later.observe(inner);
        }
      }
    }
    return li;
  });
}

function climbTree(event) { // arrows in the outline, as a tree of the platform has them
  const li = event.target.closest("[role=treeitem]");
  if (!li) return false;
  fill(li.querySelector(":scope > ul"));
  const all = [...$("outline").querySelectorAll("[role=treeitem]")], at = all.indexOf(li);
  const item = li.dataset.item[0] === "m" ? li.dataset.item : Number(li.dataset.item);
  const open = li.getAttribute("aria-expanded");
  const again = () => $("outline").querySelector(`[data-item="${item}"]`);
  const move = to => { if (!to) return;
    all.forEach(x => x.setAttribute("tabindex", -1));
    to.setAttribute("tabindex", 0); to.focus(); };
  switch (event.key) {
    case "ArrowDown": move(all[at + 1]); break;
    case "ArrowUp": move(all[at - 1]); break;
    case "Home": move(all[0]); break;
    case "End": move(all.at(-1)); break;
    case "ArrowRight":
      if (open === "false") { pane.toggle(item); move(again()); }
      else if (open) move(li.querySelector("[role=treeitem]"));
      break;
    case "ArrowLeft":
      if (open === "true") { pane.toggle(item); move(again()); }
      else move(li.parentElement.closest("[role=treeitem]"));
      break;
    case "Enter": case " ": choose(item); move(again()); break;
    default: return false;
  }
  event.preventDefault();
  return true;
}

function sheet(section) {
  const box = $("sheet");
  box.replaceChildren(made("h2", section.name));
  const charts = made("div", undefined, {class: "charts"});
  for (const svg of section.charts) {
    const holder = made("figure");
    holder.innerHTML = svg;
    charts.append(holder);
  }
  box.append(charts);
  if (section.lines.length) box.append(section.kind === "graph" ? facts(section.lines)
    : made("pre", section.lines.join("\n")));
  if (section.table) {
    const table = made("table"), head = made("tr");
    head.append(...section.table.head.map(x => made("th", x, {scope: "col"})));
    table.append(head, ...section.table.rows.map(cells => {
      const tr = made("tr");
      tr.append(...cells.map(x => made("td", x)));
      return tr;
    }));
    box.append(table);
  }
  if (section.kernels?.length) {
    box.append(made("h2", "C of each kernel"));
    box.append(...section.kernels.map((_, i) => kernel(section, i)));
  }
}

function tips() { // a plot's words about what the mouse is over
  const tip = $("tip");
  $("sheet").addEventListener("pointermove", event => {
    const of = event.target.closest("svg [aria-label]")?.getAttribute("aria-label");
    const words = event.target.closest("[role=graphics-symbol]") && of;
    tip.hidden = !words;
    if (!words) return;
    tip.textContent = words;
    tip.style.left = `${Math.min(event.clientX + 12, innerWidth - 320)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  });
  $("sheet").addEventListener("pointerleave", () => { tip.hidden = true; });
}
