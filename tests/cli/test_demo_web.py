"""demo --target wasm32: what it writes and serves, and its page in a real browser."""

from __future__ import annotations

import json
import shutil
import threading
import time
import urllib.request
from functools import partial
from http.server import ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.browser import Tab, found, tab
from graphtool.cli import demo_web
from graphtool.cli.demo import samples
from graphtool.io import npz
from tests.cli.conftest import Cli

STAR = [(.5, .05), (.78, .95), (.05, .4), (.95, .4), (.22, .95), (.5, .05)]
THREE = [(.25, .15), (.5, .08), (.72, .2), (.7, .38), (.48, .48), (.72, .6), (.74, .8), (.5, .92),
         (.25, .85)]


def test_images_are_a_byte_each() -> None:
    data = npz.load(samples() / "digits_test.npz")
    rows = demo_web._images(data)
    assert len(rows) == 65 * len(data["y"]) and rows[0] == data["y"][0] and max(rows) == 16


def test_a_page_is_for_wasm32(gt: Cli, tmp_path: Path) -> None:
    said = gt("demo", "-o", tmp_path / "demo", "--target", "cortex-m4", "--serve")
    assert "GT2117" in said.err and "for wasm32" in said.err


def test_a_page_needs_a_compiler(gt: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphtool.native.compiler.version_of", lambda command: None)
    said = gt("demo", "-o", tmp_path / "demo", "--target", "wasm32")
    assert said.code == 5 and "GT2120" in said.err and "[zig]" in said.err


def test_files_are_served_with_their_kinds(tmp_path: Path) -> None:
    (tmp_path / "page.js").write_text("1")
    served = partial(demo_web.Files, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/page.js") as answer:
            assert answer.headers["Content-Type"] == "text/javascript"
            assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"
        server.shutdown()


def wait(page: Tab, expression: str) -> None:
    end = time.monotonic() + 60
    while not page.value(expression):
        assert time.monotonic() < end, expression
        time.sleep(.05)


def draw(page: Tab, points: list[tuple[float, float]], scale: float = 1.0) -> None:
    """A stroke with the mouse."""
    box = page.value("(document.querySelector('#pen').scrollIntoView(), JSON.stringify("
                     "document.querySelector('#pen').getBoundingClientRect()))")
    b = json.loads(box)

    def mouse(kind: str, at: tuple[float, float]) -> None:
        x, y = (b[k] + b["width"] * (.5 + scale * (v - .5)) for k, v in zip("xy", at, strict=True))
        page.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1,
                 clickCount=1)
    mouse("mousePressed", points[0])
    for point in points[1:]:
        mouse("mouseMoved", point)
    mouse("mouseReleased", points[-1])


def text(page: Tab, name: str) -> Any:
    return page.value(f"document.getElementById('{name}').textContent")


@pytest.mark.slow
@pytest.mark.skipif(not (found() and find_spec("ziglang") and shutil.which("node")),
                    reason="needs chromium and zig")
def test_a_star_becomes_a_4(gt: Cli, tmp_path: Path) -> None:
    """Twenty examples by the mouse: the loss falls, and the new shape is learnt."""
    assert gt("demo", "-o", tmp_path / "demo", "--target", "wasm32").code == 0
    served = partial(demo_web.Files, directory=str(tmp_path / "demo" / "page"))
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server, tab() as page:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.ask("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/")
        wait(page, "'ready' in (document.body?.dataset ?? {})")
        assert "359 are right" in text(page, "accuracy")
        draw(page, THREE)
        assert text(page, "answer") == "3"
        for i in range(20):
            page.value("document.getElementById('clear').click()")
            star = i % 2 == 0
            draw(page, STAR if star else THREE, .7 + .03 * (i % 10))
            page.value(f"document.querySelectorAll('#digits button')[{4 if star else 3}].click()")
        assert page.value("document.querySelectorAll('#examples li').length") == 20
        page.value("document.getElementById('train').click()")
        wait(page, "!document.getElementById('train').disabled")
        last, first = (float(w) for w in text(page, "loss").replace(",", " ").split()
                       if w.replace(".", "").isdigit() and "." in w)
        assert last < first / 4
        draw(page, STAR, .95)
        assert text(page, "answer") == "4"
        page.value("document.getElementById('reset').click()")
        assert "359 are right" in text(page, "accuracy")
        server.shutdown()
