"""The page of `view` in Chromium: first paint, and frames a second while it moves; or pictures.

The graph is as large as `--nodes` says: the layers of a transformer, by their names.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import graphtool
from benchmarks import browser, tables, work
from graphtool.cli.viewing import page_sections
from graphtool.report.page import page

LOADS = 5
SECONDS = 3
LEAST = 55  # frames a second; the screen shows 60
STEPS: tuple[tuple[str, str, tuple[str, ...], dict[str, Any]], ...] = (
    ("norm.sqr", "mul", ("x", "x"), {}),
    ("norm.mean", "reduce_mean", ("norm.sqr",), {"axes": (2,)}),
    ("norm.root", "sqrt", ("norm.mean",), {}), ("norm.out", "div", ("x", "norm.root"), {}),
    ("attn.q", "tanh", ("norm.out",), {}), ("attn.k", "sin", ("norm.out",), {}),
    ("attn.v", "cos", ("norm.out",), {}),
    ("attn.k.t", "transpose", ("attn.k",), {"perm": (0, 2, 1)}),
    ("attn.scores", "matmul", ("attn.q", "attn.k.t"), {}),
    ("attn.weights", "softmax", ("attn.scores",), {"axis": 2}),
    ("attn.heads", "matmul", ("attn.weights", "attn.v"), {}),
    ("attn.out", "add", ("x", "attn.heads"), {}), ("mlp.up", "exp", ("attn.out",), {}),
    ("mlp.gate", "sigmoid", ("mlp.up",), {}), ("mlp.act", "mul", ("mlp.up", "mlp.gate"), {}),
    ("mlp.down", "tanh", ("mlp.act",), {}), ("out", "add", ("attn.out", "mlp.down"), {}))
HEAD = ("page", "first paint s", "graph drawn s", "pan frames/s", "zoom frames/s",
        "slowest frame ms")
DRAWN = """const text = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (...words) {
  text.apply(this, words);
  CanvasRenderingContext2D.prototype.fillText = text;
  requestAnimationFrame(() => { window.drawn_at = performance.now(); });
};"""
FRAMES = """new Promise(done => {
  const canvas = pane.canvas, box = canvas.getBoundingClientRect(), times = [];
  const x = box.left + box.width / 2, y = box.top + box.height / 2;
  const send = (type, event, more) => canvas.dispatchEvent(new event(type, {
    bubbles: true, cancelable: true, clientX: x, clientY: y, pointerId: 1, ...more}));
  canvas.setPointerCapture = () => {};
  if (MOVE) send("pointerdown", PointerEvent, {});
  const frame = now => {
    times.push(now);
    const t = times.length;
    if (now - times[0] > 1000 * SECONDS) {
      if (MOVE) send("pointerup", PointerEvent, {});
      return done(times);
    }
    if (MOVE) send("pointermove", PointerEvent, {
      clientX: x + 150 * Math.sin(t / 20), clientY: y + 300 * Math.sin(t / 37)});
    else send("wheel", WheelEvent, {deltaY: 40 * Math.cos(t / 30)});
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--picture", nargs=3, metavar=("PAGE", "FRAGMENT", "PNG"),
                        help="only take a picture of a page, such as "
                        "view.html theme=dark view.png")


def main(options: argparse.Namespace) -> int:
    """1 if the page shows its graph after a second or more, or draws fewer than LEAST frames a
    second."""
    if options.picture:
        file, fragment, out = options.picture
        with browser.tab(0.8) as tab:
            tab.open(Path(file), fragment)
            Path(out).write_bytes(_smaller(tab.picture()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        graph, file = Path(folder) / "layers.graph.json", Path(folder) / "page.html"
        module = layers(options.nodes)
        graphtool.write(module, graph)
        file.write_text(page("layers", page_sections([str(graph)])))
        load = os.getloadavg()[0]
        rows = [measured(file, name, fragment)
                for name, fragment in (("modules closed", ""), ("modules open", "open=1"))]
        size = file.stat().st_size
    text = report(rows, f"{len(module.graph.nodes):,} nodes, {size / 1e6:.1f} MB", load,
                  options.command_line)
    work.results("page.md").write_text(text)
    print(f"{text}\n{work.results('page.md')} written")
    return int(rows[0]["drawn"] >= 1 or any(min(r["pan"], r["zoom"]) < LEAST for r in rows))


def _smaller(png: bytes) -> bytes:
    """The picture with 256 colours, where there is PIL."""
    if find_spec("PIL") is None:
        return png
    from PIL import Image
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256).save(out, "PNG", optimize=True)
    return out.getvalue()


def layers(nodes: int) -> Any:
    """A graph of at least so many nodes, without weights."""
    g = graphtool.Graph()
    x = g.add_input("x", "f32[1,16,64]")
    for i in range(-(-nodes // len(STEPS))):
        made = {"x": x}
        for name, op, operands, attrs in STEPS:
            made[name] = g.add_op(op, *(made[n] for n in operands), name=f"layers.{i}.{name}",
                                  **attrs)
        x = made[STEPS[-1][0]]
    g.add_output(x)
    return g.module()


def measured(file: Path, name: str, fragment: str) -> dict[str, Any]:
    """Seconds to the first paint and until the graph is drawn, medians of LOADS; frames a second
    while it moves."""
    paints, drawn = [], []
    for _ in range(LOADS):
        with browser.tab() as tab:
            tab.ask("Page.addScriptToEvaluateOnNewDocument", source=DRAWN)
            tab.open(file, fragment)
            paints.append(tab.value(f"{browser.PAINTED}[0].startTime") / 1000)
            drawn.append(tab.value("drawn_at") / 1000)
    with browser.tab() as tab:
        tab.open(file, fragment)
        tab.value(browser.REST)
        times = {move: tab.value(FRAMES.replace("MOVE", str(int(move == "pan"))).replace(
            "SECONDS", str(SECONDS))) for move in ("pan", "zoom")}
    rates = {move: 1000 * (len(t) - 1) / (t[-1] - t[0]) for move, t in times.items()}
    slowest = max(b - a for t in times.values() for a, b in pairwise(t))
    return {"name": name, "paint": statistics.median(paints),
            "drawn": statistics.median(drawn), **rates, "slowest": slowest}


def report(rows: list[dict[str, Any]], graph: str, load: float, command: str) -> str:
    """Markdown: a row for each state of the page."""
    stamp = work.stamp()
    return "\n".join([
        "# The page of view", "",
        f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores, load {load:.1f}; {graph}; "
        f"Chromium without a GPU. Command: `{command}`.", "",
        tables.markdown(HEAD, [
            [r["name"], f"{r['paint']:.2f}", f"{r['drawn']:.2f}",
             *(f"{r[n]:.0f}" for n in ("pan", "zoom", "slowest"))] for r in rows])])
