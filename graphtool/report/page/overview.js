// A small picture of the whole graph in a corner, while only a part of it is in view.
const SMALL = 168, FLAT = 0.7, LEAST = 240; // px of its width at most; its height over its width at
// most; px of the height of a pane that has one

function overview(p) { // after each drawing; its boxes are drawn again only if they changed
  const b = p.root(), v = p.view, [w, h] = p.size(), small = p.map;
  const most = Math.min(SMALL, w / 3), k = Math.min(most / b.w, FLAT * most / b.h);
  small.hidden = h < LEAST || v.x + v.k * b.x > -1 && v.y + v.k * b.y > -1
    && v.x + v.k * (b.x + b.w) < w + 1 && v.y + v.k * (b.y + b.h) < h + 1;
  if (small.hidden) return;
  const ratio = devicePixelRatio || 1, drawn = [p.boxes, p.chosen, p.found, p.kin, colours.back, heat, k, ratio];
  if (!p.mapped || drawn.some((x, i) => x !== p.mapped.drawn[i]))
    p.mapped = {drawn, k, picture: miniature(p, b, k * ratio)};
  const {picture} = p.mapped, pen = small.getContext("2d");
  if (small.width !== picture.width || small.height !== picture.height) {
    small.width = picture.width;
    small.height = picture.height;
    small.style.width = `${picture.width / ratio}px`;
    small.style.height = `${picture.height / ratio}px`;
  }
  pen.clearRect(0, 0, small.width, small.height);
  pen.drawImage(picture, 0, 0);
  const s = k * ratio / v.k; // of a px of the view in a pixel here
  pen.strokeStyle = colours.accent;
  pen.lineWidth = 1.5 * ratio;
  pen.strokeRect(...[-v.x * s - b.x * k * ratio, -v.y * s - b.y * k * ratio].map(
    x => Math.max(pen.lineWidth / 2, x)), Math.min(w * s, small.width), Math.min(h * s, small.height));
}

function miniature(p, b, k) { // the boxes alone, in pixels
  const picture = document.createElement("canvas"), pen = picture.getContext("2d");
  picture.width = Math.max(1, Math.ceil(b.w * k));
  picture.height = Math.max(1, Math.ceil(b.h * k));
  pen.setTransform(k, 0, 0, k, -b.x * k, -b.y * k);
  pen.fillStyle = colours.module;
  for (const x of p.boxes.values()) if (x.open) pen.fillRect(x.x, x.y, x.w, x.h);
  far(Object.assign(Object.create(p), {pen, view: {k}}), () => true, []);
  return picture;
}

function steer(p) { // a press or a drag there moves the view
  const go = event => {
    const r = p.map.getBoundingClientRect(), b = p.root(), v = p.view, [w, h] = p.size();
    p.glide = null;
    p.touched = true;
    v.x = w / 2 - v.k * (b.x + (event.clientX - r.left) / p.mapped.k);
    v.y = h / 2 - v.k * (b.y + (event.clientY - r.top) / p.mapped.k);
    p.stale = true;
  };
  p.map.addEventListener("pointerdown", event => {
    p.map.setPointerCapture(event.pointerId);
    go(event);
  });
  p.map.addEventListener("pointermove", event => { if (event.buttons) go(event); });
}
