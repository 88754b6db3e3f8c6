// The search: what it finds, the list of hits, and the way from one hit to the next.
function seek(text, at = -1) { // the nodes with all words, marked and listed; `at` is the chosen one
  if (!pane) return [];
  const g = pane.graph, words = text.toLowerCase().split(/\s+/).filter(Boolean), fits = matcher(text, words);
  const hits = words.length ? [...g.nodes.keys()].filter(i => fits(searchText(g, i))) : [];
  pane.found = new Set(hits.map(i => visible(g, i)));
  pane.stale = true;
  const count = COUNTS.format(hits.length);
  $("count").textContent = !words.length ? "" : !hits.length ? "nothing found"
    : at < 0 ? `${count} found` : `${at + 1} of ${count}`;
  const from = Math.max(0, Math.min(at - 5, hits.length - HITS));
  $("hits").replaceChildren(...hits.slice(from, from + HITS).map((i, n) => {
    const li = made("li"), b = made("button", g.nodes[i].name, {type: "button", class: "link",
      "aria-current": String(from + n === at)});
    b.append(" ", made("small", g.nodes[i].op));
    b.onclick = () => found(from + n);
    li.append(b);
    return li;
  }));
  $("hits").hidden = !hits.length || document.activeElement !== $("search");
  return hits;
}

function matcher(text, words) { // all of the words, or the regular expression behind re:
  if (!text.startsWith("re:")) return all => words.every(w => all.includes(w));
  try {
    const pattern = new RegExp(text.slice(3), "im");
    return all => pattern.test(all);
  } catch { return () => false; } // it is not typed to its end
}

function searchText(g, i) { // the words of a node and of its weights, a line each
  const n = g.nodes[i];
  n.searchText ??= [n.name, n.op, around(g, i), n.type, n.at, ...(n.inputs || []).filter(
    x => typeof x === "string" && x[0] !== " ")].filter(Boolean).join("\n").toLowerCase();
  return n.searchText;
}

function found(n) { // go to a hit
  const text = $("search").value, hits = seek(text);
  if (!hits.length) return;
  choose(hits[n % hits.length]);
  seek(text, n % hits.length);
}
