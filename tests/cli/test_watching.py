"""--watch: runs again when a file has changed, and ends without an error on Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphtool.cli.watching import watched
from tests.cli.conftest import SAMPLES, Cli


def waiting(process: subprocess.Popen[str], log: Path, times: int) -> str:
    """What has been printed once the verb has run so often."""
    end = time.monotonic() + 60
    while log.read_text().count("Ctrl-C ends") < times:
        assert process.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return log.read_text()


def heeding() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_a_change_is_seen_until_ctrl_c(folder: Path, tmp_path: Path) -> None:
    graph, log = tmp_path / "m.graph.json", tmp_path / "log"
    (tmp_path / "digits.safetensors").write_bytes((folder / "digits.safetensors").read_bytes())
    text = (folder / "digits.graph.json").read_text()
    graph.write_text(text)
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "graphtool", "diff", str(folder / "digits.graph.json"),
             str(graph), "--watch"], stdout=out, stderr=out, text=True,
            preexec_fn=heeding)  # a job in the background inherits that SIGINT is ignored
        try:
            assert "equal: 13 nodes" in waiting(process, log, 1)
            graph.write_text(text.replace('"op": "relu"', '"op": "tanh"', 1))
            assert "~ relu: relu → tanh" in waiting(process, log, 2)
            graph.write_text("{")  # an error does not end it
            assert "GT0331" in waiting(process, log, 3)
            graph.write_text(text)
            waiting(process, log, 4)
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0
        finally:
            process.kill()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize(("words", "names"), [
    (["opt", "{g}", "-o", "{g}"], ["digits.graph.json"]),
    (["import", "{s}/mlp.py:model", "-o", "x"], sorted(p.name for p in SAMPLES.glob("*.py"))),
    (["opt", "-"], [])])
def test_what_is_watched(words: list[str], names: list[str], folder: Path) -> None:
    argv = [w.format(g=folder / "digits.graph.json", s=SAMPLES) for w in words]
    assert [p.name for p in watched(argv)] == names


def test_nothing_to_watch(gt: Cli) -> None:
    result = gt("opt", "-", "--watch")
    assert result.code == 2 and "GT3143" in result.err
