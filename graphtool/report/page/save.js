// Pictures of the page: what is drawn onto a canvas, written as SVG, and that as PNG.
const BAR = 34, SHARP = 2, LARGEST = 12000; // px of title and legend; pixels per px; pixels of a side
const HIDDEN_CHARACTERS = /[\0-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const SVG = "svg"; // the element

function safe(text) { // one line of text: what would act or hide is written as its escape
  return String(text).replace(HIDDEN_CHARACTERS,
    c => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function markup(text) {
  return safe(text).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
}

function tint(name, colour) { // an attribute; a transparent colour as readers of SVG 1.1 know it
  if (!/^#[0-9a-f]{8}$/i.test(colour)) return `${name}="${colour}"`;
  return `${name}="${colour.slice(0, 7)}" ${name}-opacity="${(parseInt(colour.slice(7), 16) / 255).toFixed(3)}"`;
}

class SvgPen { // the part of a canvas's context that `fresh` calls
  constructor() {
    this.parts = [];
    this.dash = [];
    this.beginPath();
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  setTransform(a, b, c, d, e, f) {
    this.parts.push(`${this.parts.length ? "</g>" : ""}<g transform="matrix(${[a, b, c, d, e, f].map(fixed)})">`);
  }

  clearRect() {}

  beginPath() { this.path = ""; }

  moveTo(x, y) { this.put("M", x, y); }

  lineTo(x, y) { this.put(this.path ? "L" : "M", x, y); }

  bezierCurveTo(...points) { this.put("C", ...points); }

  put(letter, ...points) {
    this.path += letter + points.map(fixed).join(" ");
    this.at = points.slice(-2);
  }

  arcTo(x1, y1, x2, y2, radius) { // a round corner at the first point
    const [x0, y0] = this.at, a = Math.hypot(x0 - x1, y0 - y1), b = Math.hypot(x2 - x1, y2 - y1);
    const cosine = a && b ? ((x0 - x1) * (x2 - x1) + (y0 - y1) * (y2 - y1)) / (a * b) : 1;
    if (Math.abs(cosine) > 0.9999) return this.lineTo(x1, y1);
    const cut = Math.min(radius / Math.tan(Math.acos(cosine) / 2), a, b);
    this.lineTo(x1 + (x0 - x1) * cut / a, y1 + (y0 - y1) * cut / a);
    this.put("Q", x1, y1, x1 + (x2 - x1) * cut / b, y1 + (y2 - y1) * cut / b);
  }

  rect(x, y, w, h) { this.path += `M${fixed(x)} ${fixed(y)}h${fixed(w)}v${fixed(h)}h${fixed(-w)}z`; }

  roundRect(x, y, w, h, r) {
    const arc = (dx, dy) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
    this.path += `M${fixed(x + r)} ${fixed(y)}h${fixed(w - 2 * r)}${arc(r, r)}v${fixed(h - 2 * r)}`
      + `${arc(-r, r)}h${fixed(2 * r - w)}${arc(-r, -r)}v${fixed(2 * r - h)}${arc(r, -r)}z`;
  }

  fill() { this.parts.push(`<path d="${this.path}" ${tint("fill", this.fillStyle)}/>`); }

  setLineDash(dash) { this.dash = dash; }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash}"` : "";
    this.parts.push(`<path d="${this.path}" fill="none" ${tint("stroke", this.strokeStyle)} stroke-width="${fixed(this.lineWidth)}"${dash}/>`);
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  words(text, x, y, most, look) {
    const [, slant, weight, size, family] = /^(italic )?(\d+ )?([\d.]+)px (.*)$/.exec(this.font);
    const tight = most > 0 && this.measureText(text).width > most
      ? ` textLength="${fixed(most)}" lengthAdjust="spacingAndGlyphs"` : "";
    this.parts.push(`<text x="${fixed(x)}" y="${fixed(y)}" font-family="${family}" font-size="${size}"`
      + `${weight ? ` font-weight="${weight.trim()}"` : ""}${slant ? ' font-style="italic"' : ""}`
      + `${tight} ${look} xml:space="preserve">${markup(text)}</text>`);
  }

  fillText(text, x, y, most) { this.words(text, x, y, most, tint("fill", this.fillStyle)); }

  strokeText(text, x, y, most) {
    this.words(text, x, y, most, `fill="none" ${tint("stroke", this.strokeStyle)} stroke-width="${this.lineWidth}" stroke-linejoin="round"`);
  }
}

function fixed(x) { return String(Math.round(x * 100) / 100); }

function svg(w, h, title, body, more = "") {
  const holder = document.createElement("div"); // knows the name of the namespace, an address
  holder.innerHTML = `<${SVG}/>`;
  return `<${SVG} xmlns="${holder.firstChild.namespaceURI}" width="${fixed(w)}" height="${fixed(h)}" `
    + `viewBox="0 0 ${fixed(w)} ${fixed(h)}" role="img"${more}><title>${markup(title)}</title>`
    + `<rect width="100%" height="100%" fill="${colours.back}"/>${body}</svg>\n`;
}

function graphPicture(p, whole) { // the graph as it is open, with its title and what colours mean
  const root = p.root(), pen = new SvgPen();
  const [w, h] = whole ? [root.w + 40, root.h + 40] : p.size();
  const view = whole ? {k: 1, x: 20 - root.x, y: 20 - root.y} : p.view;
  const wide = Math.max(w, 320), all = h + 2 * BAR;
  const q = Object.assign(Object.create(p), {pen, saved: true, view: {...view, y: view.y + BAR}});
  fresh(q, 1, wide, all);
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.fillStyle = colours.back;
  pen.beginPath();
  pen.rect(0, 0, wide, BAR);
  pen.rect(0, all - BAR, wide, BAR);
  pen.fill();
  pen.fillStyle = colours.text;
  pen.font = "600 15px system-ui, sans-serif";
  pen.fillText(shorten(p.section.name, Math.floor(wide / 8)), 12, 23, wide - 24);
  legend(p, pen, all - BAR + 10);
  return {text: svg(wide, all, p.section.name, `${pen.parts.join("")}</g>`), w: wide, h: all};
}

function legendRows(p) { // the colours of the nodes that are drawn, and what they mean
  if (heat) return [["heat", `${HEATS[heat]}: the more, the stronger`]];
  const kinds = new Set([...p.boxes.values()].filter(b => typeof b.item === "number")
    .map(b => p.graph.nodes[b.item].kind));
  const rows = [...kinds].filter(kind => colours[kind]).map(kind => [kind, kind]);
  if ([...p.boxes.values()].some(b => typeof b.item === "string" && !b.open))
    rows.push(["back", "a module"]);
  for (const mark of new Set(Object.values(p.section.changes || {})))
    rows.push([colours[mark] ? mark : "changed", mark]);
  return rows;
}

function legend(p, pen, y) {
  let x = 12;
  pen.font = "11px system-ui, sans-serif";
  for (const [colour, words] of legendRows(p)) {
    pen.beginPath();
    pen.roundRect(x, y, 14, 14, 3);
    pen.fillStyle = colours[colour];
    pen.fill();
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.stroke();
    pen.fillStyle = colours.text;
    pen.fillText(words, x + 20, y + 11);
    x += 36 + pen.measureText(words).width;
  }
}

function sheetPicture(section) { // its plots, one below the other
  let y = 40, wide = 320;
  const parts = [...$("sheet").querySelectorAll("figure > svg")].map(chart => {
    const [, , w, h] = (chart.getAttribute("viewBox") || "0 0 600 400").split(/\s+/).map(Number);
    const copy = chart.cloneNode(true);
    for (const [k, v] of Object.entries({x: 12, y, width: w, height: h})) copy.setAttribute(k, v);
    y += h + 20;
    wide = Math.max(wide, w + 24);
    return new XMLSerializer().serializeToString(copy);
  });
  const head = `<text x="12" y="24" font-family="system-ui, sans-serif" font-size="15" font-weight="600" fill="${colours.text}">${markup(section.name)}</text>`;
  return {text: svg(wide, y, section.name, head + parts.join(""),
    ` color="${colours.text}" font-family="system-ui, sans-serif"`), w: wide, h: y};
}

function png({text, w, h}) { // a promise of the same picture in pixels
  const url = URL.createObjectURL(new Blob([text], {type: "image/svg+xml"})), image = new Image();
  const scale = Math.min(SHARP, LARGEST / Math.max(w, h));
  return new Promise((done, fail) => {
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(h * scale);
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(blob => blob ? done(blob) : fail(new Error("too large for a PNG")), "image/png");
    };
    image.onerror = () => fail(new Error("the browser can't draw the picture"));
    image.src = url;
  }).finally(() => URL.revokeObjectURL(url));
}

async function save(kind, whole) {
  $("saves").open = false;
  const section = pane ? pane.section : shownTab.section;
  const picture = pane ? graphPicture(pane, whole) : sheetPicture(section);
  try {
    const blob = kind === "png" ? await png(picture) : new Blob([picture.text], {type: "image/svg+xml"});
    const link = made("a", "", {download: `${fileStem(section.name)}.${kind}`});
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    say(`${link.download} saved`);
  } catch (error) { say(`Not saved: ${error.message}`); }
}

function fileStem(name) {
  return safe(name).replace(/\.(graph\.json|program\.json|onnx|pt2|gt|mlir|json)\b/, "")
    .replace(/[^\w.-]+/g, "_").replace(/^[._]+/, "").slice(0, 80) || "graph";
}

let silence = 0;

function say(text) { // for a few seconds, and to screen readers
  $("said").textContent = text;
  clearTimeout(silence);
  silence = setTimeout(() => { $("said").textContent = ""; }, 4000);
}
