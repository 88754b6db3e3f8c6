"""Pages that draw a model, in the same browser: Netron, Model Explorer, and the page of view.

All are measured from outside: when the picture is at rest, and how long frames take while the mouse
drags and the wheel turns.
"""

from __future__ import annotations

import base64
import io
import json
import math
import os
import socket
import statistics
import subprocess
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops

from benchmarks import browser

QUIET, LIMIT = 5.0, 120.0  # seconds without a change of the picture; at most until then
NOISE = 16  # levels of grey by which a picture at rest may differ from the one before
SECONDS = 3.0  # of each move
CTRL = 2  # a wheel with this key zooms in every viewer
GRAPHICS = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
RECORD = """(() => {
  window.frames_at = [];
  const frame = now => { frames_at.push(now); requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
})()"""
AGREE = """[...document.querySelectorAll("button")].find(
  b => b.textContent === "Accept")?.click()"""
BYTES = """["navigation", "resource"].flatMap(type => performance.getEntriesByType(type)).reduce(
  (sum, entry) => sum + entry.encodedBodySize, 0)"""

SHOWN = (
    ("modules", "nested, open and close, alike ones counted and marked", "no: all nodes at once",
     "nested, open and close, alike ones marked"),
    ("first picture of a large model", "whole, modules closed", "its first nodes",
     "three boxes"),
    ("the author's classes and source lines", "yes, from torch", "no", "what the file says"),
    ("on a node", "channels, window, stride; sizes of weights; numbers",
     "sizes of weights; numbers", "what one chooses: attributes, operands"),
    ("colours", "kind of op or a number, with a legend", "kind of layer", "rules that one writes"),
    ("types on edges", "every edge, once a node", "where the file has them", "by choice"),
    ("values of weights", "statistics, histogram, first numbers", "all numbers; to a file",
     "the first numbers"),
    ("what an op computes", "a sentence or a formula", "the whole text of the standard", "no"),
    ("search", "words or a pattern, in names, ops, types, weights, sources; list and count",
     "words; list of nodes, values, weights", "a pattern; list by kind"),
    ("where one is", "small picture, path of modules, outline", "no", "path of layers, outline"),
    ("what a node depends on, what uses it", "all of it, marked and counted", "neighbours",
     "all of it, coloured"),
    ("two graphs", "difference, stages matched by names, down to the C", "no",
     "side by side, matched by names"),
    ("numbers of each node", "FLOPs, weights, time of a profile, any JSON, as colours; errors as "
     "marks", "no", "any JSON, as colours"),
    ("training step", "forward, gradients, update in columns", "one graph", "one graph"),
    ("pictures", "SVG and PNG, of the view or whole", "SVG and PNG, whole", "PNG"),
    ("links", "tab, choice and filters in the address", "no", "in the address of the server"),
    ("a phone", "yes, with two fingers", "yes", "no: the panels cover the graph"),
    ("without the program", "one file, no network", "a server or a desktop program", "a server"),
    ("what the nodes are", "the imported graph: a Conv with a bias is a conv and an add",
     "the file as it is, with the attributes' names of its format", "the file as it is"),
    ("formats", "ONNX, torch, StableHLO, its own", "over thirty", "TFLite, TF, torch, MLIR, ONNX"))


@contextmanager
def served(viewer: str, program: Path, model: Path) -> Iterator[str]:
    """The address where `netron` or `model-explorer`, which `program` is, shows a model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    netron = viewer == "netron"
    options = ["--host", "127.0.0.1", "--port", str(port)] if netron else [
        "--extensions=model_explorer_onnx", "--host=127.0.0.1", f"--port={port}",
        "--no_open_in_browser"]
    child = subprocess.Popen(
        [str(program), str(model), *options], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=os.environ | {
            "PATH": f"{program.parent}:{os.environ['PATH']}", "BROWSER": "true"})
    try:
        _wait(port)
        chosen = urllib.parse.quote(json.dumps({"models": [{"url": str(model.resolve())}]}))
        yield f"http://127.0.0.1:{port}/{'' if netron else f'?data={chosen}'}"
    finally:
        child.terminate()
        child.wait()


def _wait(port: int) -> None:
    end = time.monotonic() + browser.PATIENCE
    while time.monotonic() < end:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server doesn't answer")


def measured(address: str, picture: Path | None = None) -> dict[str, Any]:
    """`rest`: seconds until the picture no longer changes, NaN if it still does after LIMIT;
    `bytes` of the page and what it loads; `pan` and `zoom`: median and 95th percentile of a frame
    in ms."""
    with browser.tab(options=GRAPHICS) as tab:
        begun = time.monotonic()
        tab.ask("Page.navigate", url=address)
        row: dict[str, Any] = {"rest": at_rest(tab, begun)}
        row["bytes"] = tab.value(BYTES)
        tab.value(RECORD)
        row |= {name: moved(tab, name) for name in ("pan", "zoom")} if math.isfinite(
            row["rest"]) else {"pan": None, "zoom": None}
        if picture is not None:
            picture.write_bytes(tab.picture())
        return row


def at_rest(tab: browser.Tab, begun: float) -> float:
    """Seconds from `begun` until the last change of the picture."""
    last, seen, now = begun, None, begun
    clip = {"x": 0, "y": 0, "width": browser.WIDTH, "height": browser.HEIGHT, "scale": 0.25}
    while now - last < QUIET:
        tab.value(AGREE)
        data = tab.ask("Page.captureScreenshot", format="png", clip=clip)["data"]
        now = time.monotonic()
        picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("L")
        if seen is None or ImageChops.difference(picture, seen).getextrema()[1] > NOISE:
            last, seen = now, picture
        if now - begun > LIMIT:
            return math.nan
    return last - begun


def moved(tab: browser.Tab, move: str) -> tuple[float, float]:
    """Median and 95th percentile of the ms between frames while the mouse drags, or its wheel
    turns to and fro."""
    x, y = browser.WIDTH / 2, browser.HEIGHT / 2
    mouse = {"x": x, "y": y, "button": "left", "clickCount": 1}
    if move == "pan":
        tab.ask("Input.dispatchMouseEvent", type="mousePressed", **mouse)
    tab.value("void (frames_at.length = 0)")
    begun = time.monotonic()
    while (t := time.monotonic() - begun) < SECONDS:
        if move == "pan":
            tab.ask("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1,
                    x=x + 150 * math.sin(3 * t), y=y + 250 * math.sin(1.7 * t))
        else:
            tab.ask("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, modifiers=CTRL,
                    deltaX=0, deltaY=20 * math.cos(2 * t))
        time.sleep(0.008)
    times = tab.value("frames_at")
    if move == "pan":
        tab.ask("Input.dispatchMouseEvent", type="mouseReleased", **mouse)
    frames = sorted(b - a for a, b in pairwise(times)) or [1000 * SECONDS]
    return statistics.median(frames), frames[math.ceil(0.95 * len(frames)) - 1]
