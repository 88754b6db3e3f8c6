// The curve of the loss as lines of an SVG.
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 34, RIGHT = 312, TOP = 10, BOTTOM = 124; // of the plot, in the SVG's viewBox

function part(name, attributes, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

/** Draws the losses of all steps so far, from 0 up. */
export function curve(svg, losses) {
  const most = Math.max(...losses, 0.1), last = Math.max(losses.length, 2) - 1;
  const x = (i) => LEFT + (RIGHT - LEFT) * i / last;
  const y = (loss) => BOTTOM - (BOTTOM - TOP) * loss / most;
  const points = losses.map((loss, i) => `${x(i).toFixed(1)},${y(loss).toFixed(1)}`).join(" ");
  svg.replaceChildren(
    part("path", { class: "axis", d: `M${LEFT},${TOP}V${BOTTOM}H${RIGHT}` }),
    part("text", { x: LEFT - 5, y: TOP + 8, "text-anchor": "end" }, most.toFixed(1)),
    part("text", { x: LEFT - 5, y: BOTTOM, "text-anchor": "end" }, "0"),
    part("text", { x: LEFT, y: BOTTOM + 16 }, "step 1"),
    part("text", { x: RIGHT, y: BOTTOM + 16, "text-anchor": "end" }, `${losses.length}`),
    part("polyline", { class: "loss", points }));
}
