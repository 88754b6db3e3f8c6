"""The package for npm in a real browser: its module, its worker, and weights that come in parts."""

from __future__ import annotations

import json
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from benchmarks.browser import found, tab
from graphtool.package.forms import package

RUN = """
(async () => {{
  const {{ load }} = await import("/package/{module}.js");
  const model = await load(), input = new Float32Array(2000).fill(1);
  const out = Object.values(await model.run({{ input }}))[0];
  let wrong = "";
  try {{ await model.run({{}}); }} catch (error) {{ wrong = error.name; }}
  return JSON.stringify([[...out.data], wrong]);
}})()
"""


class Ranges(SimpleHTTPRequestHandler):
    """A server that knows ranges, and cuts the first connection for weights in the middle."""

    asked: list[str]

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def do_GET(self) -> None:
        path, asked = Path(self.translate_path(self.path)), self.headers.get("Range")
        if asked is None or path.suffix != ".safetensors":
            super().do_GET()
            return
        self.asked.append(asked)
        data = path.read_bytes()
        first = int(asked.removeprefix("bytes=").rstrip("-"))
        self.send_response(206)
        self.send_header("Content-Length", str(len(data) - first))
        self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[first:] if len(self.asked) > 1 else data[first:len(data) // 2])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, list[str], Any]]:
    """The address of a package, the ranges that were asked for, and the expected result."""
    folder = tmp_path_factory.mktemp("web")
    module = graphtool.import_model(torch.nn.Linear(2000, 300), (torch.zeros(1, 2000),))
    built = graphtool.build(module, folder / "b", name="line", target="wasm32", single=True)
    with tarfile.open(package(built, "npm", folder).path) as archive:
        archive.extractall(folder, filter="data")
    (folder / "index.html").write_text("<!doctype html><title>x</title>")
    (want,) = graphtool.evaluate(module, {"input": np.ones((1, 2000), np.float32)}).values()
    asked: list[str] = []
    handler = type("Asked", (Ranges,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", asked, want
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(not (found() and find_spec("ziglang")), reason="needs chromium and zig")
@pytest.mark.parametrize("module", ["index", "worker"])
def test_a_package_runs_in_chromium(module: str, served: tuple[str, list[str], Any]) -> None:
    address, asked, want = served
    asked.clear()
    with tab() as page:
        page.ask("Page.navigate", url=address)
        while page.value("location.origin + '/'") != address:
            pass
        data, wrong = json.loads(page.value(RUN.format(module=module)))
    np.testing.assert_allclose(data, want.ravel(), rtol=1e-4, atol=1e-4)
    assert wrong == "TypeError"
    assert len(asked) == 2, "the rest was asked for after the connection broke"
