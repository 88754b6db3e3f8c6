"""demo --target wasm32: the classifier of digits in a page that draws, classifies and trains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtool.cli import terminal

if TYPE_CHECKING:
    from graphtool.ir.graph import Module

TARGET = "wasm32"
INK = 16  # the images' numbers are multiples of 1/16
MARK = "digits.page"  # in a folder that a later demo may replace
KINDS = {".js": "text/javascript", ".wasm": "application/wasm"}


def in_page(out: Path, folder: Path, serve: bool) -> int:
    """Build the training step and the inference of the model over one state, and write the page
    around them; with `serve`, serve it until it is interrupted.

    Raises CompilerError GT2120 where there is no compiler for WebAssembly.
    """
    from graphtool.compile.as_is import build
    with terminal.stage("grad", "the model with loss, gradients and optimizer",
                        out / "digits.graph.json"):
        step = _training(folder / "digits.onnx", out)
    with terminal.stage("build", "C, and its WebAssembly", out / "build"):
        built = build(step, out / "build", name="digits", target=TARGET, single=True)
    with terminal.stage("page", "the page, the package of the build, images", out / "page"):
        _write(out / "page", folder, built)
    if serve:
        served(out / "page")
    else:
        terminal.note("graphtool demo --serve shows the page; any server of files does, such as "
                      f"python -m http.server -d {out / 'page'}")
    return 0


def _training(source: Path, out: Path) -> Module:
    from graphtool import importers
    from graphtool.ir import serial
    from graphtool.transforms.training import Recipe, training
    # a few examples are no statistics of a batch: its norms keep those of the model
    recipe = Recipe("cross_entropy", optimizer="adam", batch_norm=False)
    step = training(importers.import_source(str(source)), recipe)
    serial.save(step, out / "digits.graph.json")
    return step


def _write(page: Path, folder: Path, built: Path) -> None:
    from graphtool.io import npz
    from graphtool.io.directory import replacing
    from graphtool.package.forms import FORMS
    from graphtool.package.record import subject_of
    form = FORMS["npm"]
    model = form.make(subject_of(built, form))
    files = {f.name: f.read_bytes() for f in sorted((folder / "web").iterdir())} | {
        f"model/{name}": data for name, data in model.items()} | {
        f"{name}.bin": _images(npz.load(folder / f"digits_{part}.npz"))
        for name, part in (("known", "train"), ("test", "test"))} | {MARK: b""}
    with replacing(page, lambda names: MARK in names) as work:
        for name, data in files.items():
            (work / name).parent.mkdir(exist_ok=True)
            (work / name).write_bytes(data)


def _images(data: Mapping[str, Any]) -> bytes:
    """For each image its digit, then its pixels, in bytes."""
    import numpy as np
    ink = np.rint(data["image"].reshape(len(data["y"]), -1) * INK)
    return np.column_stack([data["y"], ink]).astype(np.uint8).tobytes()


class Files(SimpleHTTPRequestHandler):
    """Serves the files of a folder, without a log."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | KINDS

    def end_headers(self) -> None:
        """Let the page share memory between threads, and see a new build at once."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: each request would be a line."""


def served(folder: Path) -> None:
    """Serve the files of a folder to this machine alone, and print the address; ends with
    Ctrl-C."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        terminal.lines([f"http://127.0.0.1:{server.server_port}/"])
        terminal.note("Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return
