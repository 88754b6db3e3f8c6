// Draws what is in view onto the canvas, when something has changed.
function paint() {
  requestAnimationFrame(paint);
  if (glide) step();
  if (!stale || !now || !now.graph) return;
  stale = false;
  const ratio = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
  if (canvas.width !== w * ratio || canvas.height !== h * ratio) {
    canvas.width = w * ratio;
    canvas.height = h * ratio;
  }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  pen.setTransform(ratio * view.k, 0, 0, ratio * view.k, ratio * view.x, ratio * view.y);
  const left = -view.x / view.k, top = -view.y / view.k;
  const right = left + w / view.k, bottom = top + h / view.k;
  const inside = b => b.x < right && b.x + b.w > left && b.y < bottom && b.y + b.h > top;
  for (const b of boxes.values()) if (b.open && inside(b)) frame(b);
  if (view.k < FAR) return far(inside, left, top, right, bottom);
  pen.lineWidth = 1.2;
  for (const r of routes)
    if (r.left < right && r.right > left && r.top < bottom && r.bottom > top) edge(r);
  for (const b of boxes.values()) if (!b.open && !b.bend && inside(b)) node(b);
}

function far(inside, left, top, right, bottom) { // too small for words: a path for each colour
  pen.strokeStyle = colours.edge;
  pen.lineWidth = 1 / view.k / 2;
  pen.beginPath();
  for (const r of routes) {
    if (r.left > right || r.right < left || r.top > bottom || r.bottom < top) continue;
    pen.moveTo(...r.points[0]);
    pen.lineTo(...r.points.at(-1));
  }
  pen.stroke();
  const paths = new Map();
  for (const b of boxes.values()) {
    if (b.open || b.bend || !inside(b)) continue;
    const kind = typeof b.item === "number" ? now.graph.nodes[b.item].kind : "faint";
    const colour = b.item === chosen || found.has(b.item) ? colours.accent : colours[kind];
    if (!paths.has(colour)) paths.set(colour, new Path2D());
    paths.get(colour).rect(b.x, b.y, b.w, b.h);
  }
  for (const [colour, path] of paths) {
    pen.fillStyle = colour || colours.compute;
    pen.fill(path);
  }
}

function frame(b) {
  pen.fillStyle = colours.module;
  round(b, 10);
  pen.fill();
  outline(b, colours.line);
  if (view.k * 13 < 5 || b.depth === 0) return;
  pen.fillStyle = colours.faint;
  pen.font = "600 12px system-ui, sans-serif";
  pen.fillText(label(now.graph, b.item), b.x + 10, b.y + 17, b.w - 20);
}

function node(b) {
  const g = now.graph, x = typeof b.item === "number" ? g.nodes[b.item] : null;
  pen.fillStyle = x ? colours[x.kind] || colours.compute : colours.back;
  round(b, 6);
  pen.fill();
  const change = x && now.changes && now.changes[x.name];
  outline(b, change ? colours[change] || colours.changed : colours.line, change ? 3 : 1);
  if (view.k * 12 < 5) return;
  pen.fillStyle = colours.text;
  pen.font = x ? "600 12px system-ui, sans-serif" : "italic 600 12px system-ui, sans-serif";
  pen.fillText(x ? x.op : label(g, b.item), b.x + 8, b.y + (x ? 14 : 21), b.w - 16);
  if (!x) return;
  pen.fillStyle = colours.faint;
  pen.font = "10px ui-monospace, monospace";
  pen.fillText(x.name, b.x + 8, b.y + 27, b.w - 16);
}

function outline(b, colour, width = 1) {
  const on = b.item === chosen, hit = found.has(b.item), nodes = now.graph.nodes;
  const kernel = typeof chosen === "number" && nodes[chosen].fused;
  const mate = kernel && typeof b.item === "number" && nodes[b.item].fused === kernel;
  pen.strokeStyle = on || hit || mate ? colours.accent : colour;
  pen.lineWidth = on ? 3 : hit || mate ? 2 : width;
  if (mate && !on) pen.setLineDash([5, 3]); // computed by the same kernel as the chosen node
  pen.stroke();
  pen.setLineDash([]);
}

function round(b, r) {
  pen.beginPath();
  pen.roundRect(b.x, b.y, b.w, b.h, r);
}

function edge(r) {
  const on = chosen !== null && (r.from === chosen || r.to === chosen);
  pen.strokeStyle = on ? colours.accent : colours.edge;
  pen.beginPath();
  pen.moveTo(...r.points[0]);
  for (let i = 1; i < r.points.length; i++) {
    const [x0, y0] = r.points[i - 1], [x1, y1] = r.points[i], bend = Math.max(12, (y1 - y0) / 2);
    pen.bezierCurveTo(x0, y0 + bend, x1, y1 - bend, x1, y1);
  }
  pen.stroke();
  const [x, y] = r.points.at(-1);
  pen.fillStyle = pen.strokeStyle;
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(x - 4, y - 7);
  pen.lineTo(x + 4, y - 7);
  pen.fill();
  if (on && r.text && view.k > 0.5) {
    const [a, b] = r.points[0];
    pen.font = "10px ui-monospace, monospace";
    pen.fillStyle = colours.accent;
    pen.fillText(r.text, a + 6, b + 14);
  }
}
