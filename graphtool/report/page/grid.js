// A training step: forward down the left, gradients up beside it, updates at the right edge.
const GUTTER = 56, SLIM = 26, CELL = 112, BACKWARD = 1; // between columns, and in a narrow pane;
// the width of a closed cell there; the column that is read upwards
const COLUMN_NAMES = ["forward", "gradients", "update"];

function gridded(g, x) { // as `sized`: a row for each module, as high as its highest cell
  const gutter = g.narrow ? SLIM : GUTTER;
  const rows = x.layers.map(layer => layer.map(([one, at]) => {
    const size = sized(g, one);
    return {one, at, size: g.narrow && !size.places ? {...size, w: Math.min(CELL, size.w)} : size};
  }));
  const cells = rows.flat(), count = 1 + Math.max(...cells.map(c => c.at)), places = new Map();
  const wide = Array.from({length: count}, (_, at) =>
    Math.max(0, ...cells.filter(c => c.at === at).map(c => c.size.w)));
  const left = wide.map((_, at) => PAD + gutter / 2 + wide.slice(0, at).reduce(
    (sum, w) => sum + w + gutter, 0));
  let top = HEAD + PAD;
  for (const [row, found] of rows.entries()) {
    const tall = Math.max(...found.map(c => c.size.h));
    for (const {one, at, size} of found)
      places.set(one, {...size, x: left[at] + (wide[at] - size.w) / 2, y: top + (tall - size.h) / 2,
        cell: {row, at, top, bottom: top + tall, left: left[at] - gutter / 2,
          right: left[at] + wide[at] + gutter / 2, alone: new Set(rows.flatMap(
            (r, i) => r.some(c => c.at === at) ? [i] : []))}});
    top += tall + ROW;
  }
  return {w: left.at(-1) + wide.at(-1) + gutter / 2 + PAD, h: top - ROW + PAD, places,
    columns: left.map((x, at) => [x, wide[at]])};
}

function offset(cell, x, y) {
  return {...cell, top: cell.top + y, bottom: cell.bottom + y, left: cell.left + x,
    right: cell.right + x};
}

function rises(p, item) { // it is read from the bottom to the top
  const b = p.boxes.get(item), key = p.graph.home.get(item);
  return b?.cell ? b.cell.at === BACKWARD : !!p.graph.byKey.get(key)?.rises;
}

function between(a, b, [x0], [x1]) { // the corners of an edge in the gaps of rows and columns
  const up = a.at === BACKWARD, into = b.at === BACKWARD;
  const rows = [a.row, b.row].sort((p, q) => p - q);
  const clear = ![...a.alone].some(row => rows[0] < row && row < rows[1]);
  const gap = (up ? a.row : a.row + 1) === (into ? b.row + 1 : b.row);
  const straight = a.at === b.at && clear && (b.row < a.row) === up && a.row !== b.row;
  if (straight && !(gap && Math.abs(x1 - x0) > GUTTER)) return [];
  const share = (0.3 + 0.2 * a.at) * ROW; // edges from different columns side by side
  const y0 = up ? a.top - ROW + share : a.bottom + share;
  const y1 = into ? b.bottom + share : b.top - ROW + share;
  if (gap) return [[x0, y0], [x1, y0]].map(corner);
  const side = b.at > a.at ? b.left : b.at < a.at ? a.left : a.at === BACKWARD ? a.right : a.left;
  const x = side + 6 * (a.at - 1);
  return [[x0, y0], [x, y0], [x, y1], [x1, y1]].map(corner);
}

function corner([x, y]) { return [x, y, undefined, true]; }
