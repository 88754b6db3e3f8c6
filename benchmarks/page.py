"""The page of `view` in Chromium: bytes, first picture, and frames while it moves; or pictures.

Six models from 14 to 17,000 nodes. With --netron and --model-explorer, the programs of these two
viewers, they are measured beside it.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import browser, page_models, tables, viewers, work

LOADS = 3
SECONDS = 3
MOST = 33.4  # ms of a frame in the median: 30 frames a second
HEAD = ("model", "view s", "of which CPU s", "page KB", "first paint s", "graph drawn s",
        "pan ms", "zoom ms", "open all s", "pan ms, open", "zoom ms, open")
BESIDE = ("model", "viewer", "MB loaded", "picture at rest s", "pan ms", "zoom ms")
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
OPENED = """new Promise(done => {
  const begun = performance.now();
  pane.every(true);
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begun)));
})"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default=",".join(page_models.MODELS),
                        help="some of the models, with commas: %(default)s")
    parser.add_argument("--netron", type=Path, help="the program of this name, to measure it too")
    parser.add_argument("--model-explorer", type=Path,
                        help="the program of this name, with its extension for ONNX")
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each page")
    parser.add_argument("--picture", nargs=3, metavar=("PAGE", "FRAGMENT", "PNG"),
                        help="only take a picture of a page, such as "
                        "view.html theme=dark view.png")


def main(options: argparse.Namespace) -> int:
    """1 if half of the frames of a page take more than MOST."""
    if options.picture:
        file, fragment, out = options.picture
        with browser.tab(0.8) as tab:
            tab.open(Path(file), fragment)
            Path(out).write_bytes(_smaller(tab.picture()))
        return 0
    rows, beside = [], []
    load = os.getloadavg()[0]
    others = {"netron": options.netron, "model-explorer": options.model_explorer}
    with tempfile.TemporaryDirectory() as folder:
        for name in _names(options.only):
            model = page_models.MODELS[name](Path(folder))
            file = Path(folder) / "page.html"
            rows.append({"name": name} | written(model, file) | measured(file))
            print(rows[-1], flush=True)
            if not any(others.values()):
                continue
            beside.append({"name": name, "viewer": "view"} | viewers.measured(
                file.resolve().as_uri(), _picture(options, name, "view")))
            for viewer, program in others.items():
                if program is None:
                    continue
                with viewers.served(viewer, program, model) as address:
                    beside.append({"name": name, "viewer": viewer} | viewers.measured(
                        address, _picture(options, name, viewer)))
                print(beside[-1], flush=True)
    text = report(rows, beside, load, options.command_line)
    work.results("page.md").write_text(text)
    print(f"{text}\n{work.results('page.md')} written")
    return int(any(r[n][0] > MOST for r in rows for n in ("pan", "zoom", "pan_open", "zoom_open")))


def _names(text: str) -> list[str]:
    """Names of models that may have commas themselves."""
    names = [name for name in page_models.MODELS if name in text]
    if not names:
        raise SystemExit(f"there is no model {text!r}, but {'; '.join(page_models.MODELS)}")
    return names


def _picture(options: argparse.Namespace, name: str, viewer: str) -> Path | None:
    if options.pictures is None:
        return None
    options.pictures.mkdir(parents=True, exist_ok=True)
    path: Path = options.pictures / f"{name.replace(', ', '-').replace(' ', '-')}.{viewer}.png"
    return path


def _smaller(png: bytes) -> bytes:
    """The picture with 256 colours, where there is PIL."""
    if find_spec("PIL") is None:
        return png
    from PIL import Image
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256).save(out, "PNG", optimize=True)
    return out.getvalue()


def written(model: Path, file: Path) -> dict[str, Any]:
    """Seconds of the command that writes the page, and its bytes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([sys.executable, "-m", "graphtool", "view", str(model), "-o", str(file)],
                   check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"seconds": time.monotonic() - begun, "bytes": file.stat().st_size, "cpu": sum(
        getattr(after, n) - getattr(before, n) for n in ("ru_utime", "ru_stime"))}


def measured(file: Path) -> dict[str, Any]:
    """Seconds to the first paint and until the graph is drawn, medians of LOADS; seconds to open
    all modules; ms of a frame while it moves, with modules as at first and open."""
    paints, drawn = [], []
    for _ in range(LOADS):
        with browser.tab() as tab:
            tab.ask("Page.addScriptToEvaluateOnNewDocument", source=DRAWN)
            tab.open(file)
            paints.append(tab.value(f"{browser.PAINTED}[0].startTime") / 1000)
            drawn.append(tab.value("drawn_at") / 1000)
    row: dict[str, Any] = {"paint": statistics.median(paints), "drawn": statistics.median(drawn)}
    with browser.tab() as tab:
        tab.open(file)
        tab.value(browser.REST)
        row |= {move: _frames(tab, move) for move in ("pan", "zoom")}
        row["open"] = tab.value(OPENED) / 1000
        tab.value(browser.REST)
        row |= {f"{move}_open": _frames(tab, move) for move in ("pan", "zoom")}
    return row


def _frames(tab: browser.Tab, move: str) -> tuple[float, float]:
    """Median and 95th percentile of the ms between frames."""
    at = tab.value(FRAMES.replace("MOVE", str(int(move == "pan"))).replace(
        "SECONDS", str(SECONDS)))
    times = sorted(b - a for a, b in pairwise(at))
    return statistics.median(times), times[math.ceil(0.95 * len(times)) - 1]


def report(rows: list[dict[str, Any]], beside: list[dict[str, Any]], load: float,
           command: str) -> str:
    """Markdown: a row for each model; the viewers side by side; what each of them shows."""
    stamp = work.stamp()
    text = ["# The page of view", "",
            f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores, load {load:.1f}; Chromium "
            "without a GPU, 1500 × 900 px. Times of frames are median / 95th percentile between "
            f"animation frames; the screen shows one in 16.7 ms. Command: `{command}`.", "",
            tables.markdown(HEAD, [
                [r["name"], f"{r['seconds']:.2f}", f"{r['cpu']:.2f}", f"{r['bytes'] / 1000:,.0f}",
                 f"{r['paint']:.2f}", f"{r['drawn']:.2f}", _ms(r["pan"]), _ms(r["zoom"]),
                 f"{r['open']:.2f}", _ms(r["pan_open"]), _ms(r["zoom_open"])]
                for r in rows]).rstrip()]
    if beside:
        text += ["", "## Beside other viewers", "",
                 "All in the same browser, from outside: until the picture no longer changes, and "
                 "the frames while the mouse drags and the wheel turns. The page of view is a file "
                 "that was written before, in the seconds of the first table; the others read the "
                 "model when they are opened. View and Model Explorer begin with closed modules, "
                 "Netron draws all nodes.", "",
                 tables.markdown(BESIDE, [
                     [r["name"], r["viewer"], f"{r['bytes'] / 1e6:.2f}",
                      f"{r['rest']:.1f}" if math.isfinite(r["rest"]) else f"> {viewers.LIMIT:.0f}",
                      _ms(r["pan"]), _ms(r["zoom"])] for r in beside]).rstrip()]
    return "\n".join([*text, "", "## What each shows", "", tables.markdown(
        ("", "view", "Netron 9.3.3", "Model Explorer 0.1.34"), viewers.SHOWN)])


def _ms(times: tuple[float, float] | None) -> str:
    return tables.GAP if times is None else f"{times[0]:.1f} / {times[1]:.1f}"
