"""On a terminal: no graph is printed, a new file beside the source is named. In a pipe it is."""

from __future__ import annotations

import io
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphtool.cli import saving, waiting
from graphtool.report.table import Table, stacked
from tests.cli.conftest import DIGITS


def on_terminal(*words: object) -> str:
    """What a command prints on a terminal, without the line that says it is at work; it must
    succeed."""
    mine, its = pty.openpty()
    started = subprocess.Popen([sys.executable, "-m", "graphtool", *map(str, words)], stdout=its,
                               stderr=its, stdin=subprocess.DEVNULL,
                               env={**os.environ, "TERM": "dumb"})
    os.close(its)
    text = b""
    while True:
        try:
            part = os.read(mine, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(mine)
    assert started.wait() == 0, text.decode()
    return text.decode().replace("\r\n", "\n")


@pytest.mark.process
def test_an_import_writes_a_file_and_says_which(tmp_path: Path) -> None:
    model = shutil.copy(DIGITS, tmp_path / "m.onnx")
    said = on_terminal("import", model, "--no-check")
    assert said == ("nodes    13\nweights  26,202 numbers, 102.35 KiB\n"
                    "input    image: f32[batch,1,8,8]\noutput   logits: f32[batch,10]\n"
                    f"written to {tmp_path / 'm.graph.json'}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "m.graph.json", "m.onnx", "m.safetensors"]
    (tmp_path / "m.graph.json").write_text("mine")
    assert on_terminal("import", model, "--no-check", "-o", "-").endswith("m.2.graph.json\n")
    assert (tmp_path / "m.graph.json").read_text() == "mine"


@pytest.mark.process
@pytest.mark.parametrize(("words", "file"), [
    (("opt", "{g}", "--passes", "dce"), "m.opt.graph.json"),
    (("grad", "{g}", "--loss", "cross_entropy"), "m.grad.graph.json"),
    (("lower", "{m}"), "m.program.json"), (("export", "{g}"), "m.onnx"),
    (("export", "{g}", "--format", "stablehlo"), "m.mlir")], ids=str)
def test_every_verb_that_makes_a_graph(words: tuple[str, ...], file: str, tmp_path: Path,
                                       folder: Path) -> None:
    shutil.copy(folder / "digits.graph.json", graph := tmp_path / "m.graph.json")
    shutil.copy(folder / "digits.safetensors", tmp_path)
    model = shutil.copy(DIGITS, tmp_path / "m.model")
    said = on_terminal(*(w.format(g=graph, m=model) for w in words))
    assert f"written to {tmp_path / file}\n" in said and len(said) < 1000


@pytest.mark.parametrize(("source", "taken", "name"), [
    ("a/v1.2.onnx", (), "a/v1.2.opt.graph.json"), ("a/m.py:Net", (), "a/m.opt.graph.json"),
    ("-", (), "graph.opt.graph.json"), ("a/-", (), "a/graph.opt.graph.json"),
    ("a/m.gt", ("m.opt.safetensors", "m.opt.2.graph.json"), "a/m.opt.3.graph.json")])
def test_the_name_is_new(source: str, taken: tuple[str, ...], name: str, tmp_path: Path,
                         monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    for one in taken:
        (tmp_path / "a" / one).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert saving.destination(None, source, ".graph.json", "opt") == Path(name)


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_verb_that_prints_nothing_says_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(waiting, "AFTER", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", screen)
    with waiting.waiting("import"):
        waiting.stage("reading\x1b m.onnx")
        for _ in range(200):
            time.sleep(0.02)
            if "reading" in screen.getvalue():
                break
    assert "graphtool import, 0 s: reading\\u001b m.onnx" in screen.getvalue()
    assert screen.getvalue().endswith("\r\x1b[K")
    before = screen.getvalue()
    monkeypatch.setenv("TERM", "dumb")
    with waiting.waiting("import"):
        time.sleep(0.03)
    assert screen.getvalue() == before


def test_a_table_of_forty_columns() -> None:
    """Numbers are not cut: what finds no place stands below its row."""
    t = Table(("op", "category", "count", "FLOPs", "bytes"), [
        ("batch_norm", "compute", 3, "12288*batch + 896", "32768*batch + 1792 B")])
    assert stacked(t, 40) == ["op          category  count", "    FLOPs  bytes",
                              "batch_norm  compute       3",
                              "    12288*batch + 896  32768*batch +", "    1792 B"]
    assert stacked(t, 80) == []
