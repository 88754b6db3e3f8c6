// A drawing: strokes by pointer or keys, and what the network reads of them, 8 by 8 numbers.
const SIDE = 8; // pixels of the input
const FINE = 4; // dots along a pixel
const DOTS = SIDE * FINE;
const WIDTH = 4; // of a stroke, in dots: as wide as those of the network's examples
const STEP = 1 / 16; // what an arrow key moves
const SHOWN = 0.07; // the width of a stroke on the page

/** Draws strokes of points in 0 … 1, which `place` maps to the canvas. */
function trace(context, strokes, width, place) {
  context.lineWidth = width;
  context.lineCap = context.lineJoin = "round";
  for (const stroke of strokes) {
    context.beginPath();
    stroke.forEach((point, i) => context[i ? "lineTo" : "moveTo"](...place(point)));
    if (stroke.length === 1) context.lineTo(...place(stroke[0]));
    context.stroke();
  }
}

/** The share of ink in each pixel, in steps of 1/16; null without a stroke. The drawing is centred
 * and as large as fits. */
export function pixels(strokes) {
  const points = strokes.flat();
  if (!points.length) return null;
  const low = [0, 1].map((k) => Math.min(...points.map((p) => p[k])));
  const size = [0, 1].map((k) => Math.max(...points.map((p) => p[k])) - low[k]);
  const scale = (DOTS - WIDTH) / Math.max(...size, 1 / DOTS);
  const place = (point) => [0, 1].map((k) => DOTS / 2 + (point[k] - low[k] - size[k] / 2) * scale);
  const context = Object.assign(document.createElement("canvas"), { width: DOTS, height: DOTS })
    .getContext("2d");
  trace(context, strokes, WIDTH, place);
  const ink = context.getImageData(0, 0, DOTS, DOTS).data;
  const out = new Float32Array(SIDE * SIDE);
  for (let i = 0; i < DOTS * DOTS; i++) {
    const row = Math.floor(i / DOTS / FINE), column = Math.floor(i % DOTS / FINE);
    out[row * SIDE + column] += ink[4 * i + 3] / 255;
  }
  return out.map((sum) => Math.round(sum) / (FINE * FINE));
}

/** Paints 8 by 8 numbers on a canvas of that size. */
export function paint(canvas, image) {
  const context = canvas.getContext("2d"), data = context.createImageData(SIDE, SIDE);
  image?.forEach((v, i) => { data.data[4 * i + 3] = Math.round(255 * v); });
  context.putImageData(data, 0, 0);
}

/** The drawing on a canvas; `changed` is called after each change. */
export class Pen {
  #canvas; #changed; #strokes = []; #down = false; #at = [0.5, 0.5]; #keys = false;

  constructor(canvas, changed) {
    this.#canvas = canvas;
    this.#changed = changed;
    canvas.addEventListener("pointerdown", (e) => this.#start(e));
    canvas.addEventListener("pointermove", (e) => this.#move(e));
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => { this.#down = false; });
    }
    canvas.addEventListener("keydown", (e) => this.#key(e));
    canvas.addEventListener("blur", () => { this.#keys = this.#down = false; this.#draw(); });
  }

  get image() {
    return pixels(this.#strokes);
  }

  clear() {
    this.#strokes = [];
    this.#down = false;
    this.#draw();
    this.#changed();
  }

  #point(event) {
    const box = this.#canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  #start(event) {
    if (event.button) return;
    event.preventDefault(); // no selection of text
    this.#canvas.focus({ preventScroll: true });
    this.#canvas.setPointerCapture(event.pointerId);
    this.#keys = false;
    this.#down = true;
    this.#strokes.push([this.#point(event)]);
    this.#after();
  }

  #move(event) {
    if (!this.#down || this.#keys) return;
    const between = event.getCoalescedEvents?.() ?? [];
    this.#strokes.at(-1).push(...(between.length ? between : [event]).map((e) => this.#point(e)));
    this.#after();
  }

  #key(event) {
    const moves = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP],
      ArrowDown: [0, STEP] };
    if (event.key in moves) {
      this.#at = this.#at.map((x, k) => Math.min(1, Math.max(0, x + moves[event.key][k])));
      if (this.#keys && this.#down) this.#strokes.at(-1).push([...this.#at]);
    } else if (event.key === " ") {
      this.#down = !this.#down;
      if (this.#down) this.#strokes.push([[...this.#at]]);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.#strokes = [];
      this.#down = false;
    } else {
      return;
    }
    event.preventDefault();
    this.#keys = true;
    this.#after();
  }

  #after() {
    this.#draw();
    this.#changed();
  }

  #draw() {
    const { width } = this.#canvas, context = this.#canvas.getContext("2d");
    const place = (point) => point.map((x) => x * width);
    context.clearRect(0, 0, width, width);
    trace(context, this.#strokes, SHOWN * width, place);
    if (!this.#keys) return;
    context.lineWidth = this.#down ? 8 : 3; // a ring where the pen of the keys is
    context.beginPath();
    context.arc(...place(this.#at), SHOWN * width, 0, 7);
    context.stroke();
  }
}
