// Wires the page: drawing → network → answer, and examples → training → curve.
import { load } from "./model/index.js";
import { curve } from "./curve.js";
import { paint, Pen } from "./pen.js";

const PIXELS = 64, CLASSES = 10;
const STEPS = 100, RATE = 2e-3, OWN = 32, KNOWN = 32; // of a training; images of each kind in a batch
const FRAME = 12; // ms of training between two pictures
const RUNS = 20; // whose mean is the time of one

const at = (id) => document.getElementById(id);
const own = []; // { image, digit }
const losses = [];
let model, known, test;

/** The images of a file: for each one its digit, then ink from 0 to 16. */
async function images(file) {
  const answer = await fetch(file);
  if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
  const bytes = new Uint8Array(await answer.arrayBuffer()), out = [];
  for (let i = 0; i < bytes.length; i += 1 + PIXELS) {
    out.push({ digit: bytes[i], image: Float32Array.from(
      bytes.subarray(i + 1, i + 1 + PIXELS), (v) => v / 16) });
  }
  return out;
}

/** The logits of images. */
function predict(some) {
  const image = new Float32Array(some.length * PIXELS);
  some.forEach((x, i) => image.set(x, i * PIXELS));
  return model.predict({ image }, { batch: some.length }).logits.data;
}

const best = (scores) => scores.indexOf(Math.max(...scores));

function softmax(scores) {
  const most = Math.max(...scores), powers = Array.from(scores, (s) => Math.exp(s - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((p) => p / sum);
}

function look() {
  const image = pen.image;
  paint(at("small"), image);
  const shares = image ? softmax(predict([image])) : Array(CLASSES).fill(0);
  const first = image ? best(shares) : -1;
  at("answer").textContent = image ? first : "–";
  [...at("scores").children].forEach((row, i) => {
    row.className = i === first ? "best" : "";
    row.children[1].style.width = `${100 * shares[i]}%`;
    row.children[2].textContent = `${Math.round(100 * shares[i])} %`;
  });
  for (const button of at("digits").children) button.disabled = !image;
}

/** How long one image takes, and how many of the test images are right. */
function measure() {
  const start = performance.now();
  for (let i = 0; i < RUNS; i++) predict([test[i].image]);
  at("time").textContent =
    `${((performance.now() - start) / RUNS).toFixed(2)} ms for one image.`;
  const logits = predict(test.map(({ image }) => image));
  const right = test.filter(({ digit }, i) =>
    best(logits.subarray(i * CLASSES, (i + 1) * CLASSES)) === digit).length;
  at("accuracy").textContent =
    `Of ${test.length} digits of other people that it never learns from, ${right} are right.`;
}

function teach(digit) {
  const image = pen.image;
  if (!image) return;
  own.push({ image, digit });
  pen.clear();
  list();
}

function list() {
  at("examples").replaceChildren(...own.map((example) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const canvas = Object.assign(document.createElement("canvas"),
      { width: 8, height: 8, className: "ink" });
    paint(canvas, example.image);
    button.type = "button";
    button.setAttribute("aria-label", `Remove this example of a ${example.digit}`);
    button.title = "Remove";
    button.append(canvas, `${example.digit}`);
    button.addEventListener("click", () => {
      own.splice(own.indexOf(example), 1);
      list();
    });
    item.append(button);
    return item;
  }));
  at("train").disabled = !own.length;
  at("none").hidden = own.length > 0;
}

/** The image, moved by at most one pixel along both axes; what comes in is blank. */
function moved(image) {
  const [dx, dy] = [0, 0].map(() => Math.floor(3 * Math.random()) - 1);
  return image.map((_, i) => {
    const x = i % 8 - dx, y = Math.floor(i / 8) - dy;
    return x >= 0 && x < 8 && y >= 0 && y < 8 ? image[8 * y + x] : 0;
  });
}

const some = (from, count) =>
  Array.from({ length: count }, () => from[Math.floor(from.length * Math.random())]);

function step() {
  const batch = own.length > OWN ? some(own, OWN) : [...own];
  if (at("mix").checked) batch.push(...some(known, KNOWN));
  const image = new Float32Array(batch.length * PIXELS);
  batch.forEach((e, i) => image.set(moved(e.image), i * PIXELS));
  const y = BigInt64Array.from(batch, ({ digit }) => BigInt(digit));
  losses.push(model.step({ image, y, lr: RATE }, { batch: batch.length }).loss.data[0]);
}

function train() {
  const end = losses.length + STEPS;
  at("train").disabled = at("reset").disabled = true;
  const frame = () => {
    const start = performance.now();
    do step(); while (losses.length < end && performance.now() - start < FRAME);
    curve(at("curve"), losses);
    at("loss").textContent = `Loss after ${losses.length} steps: ${losses.at(-1).toFixed(3)}, ` +
      `${losses[0].toFixed(3)} at first.`;
    look();
    if (losses.length < end) {
      requestAnimationFrame(frame);
      return;
    }
    at("train").disabled = !own.length;
    at("reset").disabled = false;
    measure();
  };
  frame();
}

function reset() {
  model.reset();
  losses.length = 0;
  at("curve").replaceChildren();
  at("loss").textContent = "No step yet: the curve of the loss appears here.";
  at("reset").disabled = true;
  look();
  measure();
}

function build() {
  for (let digit = 0; digit < CLASSES; digit++) {
    const row = document.createElement("li");
    row.append(...["span", "i", "span"].map((name) => document.createElement(name)));
    row.firstChild.textContent = digit;
    at("scores").append(row);
    const button = Object.assign(document.createElement("button"),
      { type: "button", textContent: digit });
    button.addEventListener("click", () => teach(digit));
    at("digits").append(button);
  }
  at("clear").addEventListener("click", () => pen.clear());
  at("train").addEventListener("click", train);
  at("reset").addEventListener("click", reset);
  at("pen").addEventListener("keydown", (event) => {
    if (/^[0-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      teach(Number(event.key));
    }
  });
}

const pen = new Pen(at("pen"), () => { if (model) look(); });
build();
try {
  const code = new Uint8Array(await (await fetch("model/digits.wasm")).arrayBuffer());
  at("size").textContent = `${Math.round(code.length / 1024)} KB with its weights`;
  [model, known, test] = await Promise.all(
    [load({ "digits.wasm": code }), images("known.bin"), images("test.bin")]);
  look();
  measure();
  document.body.dataset.ready = "";
} catch (error) {
  at("trouble").textContent = `The page cannot start: ${error.message}`;
  at("trouble").hidden = false;
}
