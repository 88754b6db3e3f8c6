"""What `--assume normal` builds: subnormal numbers count as 0 in all threads of a run, and only
there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import graphtool as gt
from graphtool import dtypes
from graphtool import ops as o
from graphtool.assume import Assumption
from graphtool.cli.app import app
from graphtool.io.manifest import read_manifest
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.report.summary import inexact

SIZE = 1 << 20
TINY = np.float32(1e-30)


def module() -> Module:
    """A product that is subnormal, in a graph large enough for two threads."""
    def product(x: Any) -> Any:
        return o.tan(o.sin(x)) * 1e-10
    return Module(trace(product, [TensorType(dtypes.float32, (SIZE,))], ["x"]), ("y",))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("assume", ["finite", "nothing", "normal"])
def test_results(assume: Assumption, threads: int, tmp_path: Path) -> None:
    gt.build(module(), tmp_path / "b", assume=assume)
    model = gt.load(tmp_path / "b", threads=threads)
    kept = TINY * np.float32(1e-10)
    for _ in range(3):
        y = model.run({"x": np.full(SIZE, TINY)})["y"]
        assert np.all(y == (0 if assume == "normal" else kept))
    assert kept == TINY * np.float32(1e-10) != 0  # the caller's mode is as it was


def command(*words: object) -> str:
    done = CliRunner().invoke(app, [str(w) for w in words])
    assert done.exit_code == 0, done.output
    return done.output


def test_it_is_written_down(tmp_path: Path) -> None:
    graph, build = tmp_path / "m.graph.json", tmp_path / "b"
    gt.write(module(), graph)
    command("build", graph, "--assume", "normal", "-o", build)
    found = read_manifest(build)
    assert found.assumes == "normal" and (build / "subnormals.h").exists()
    assert "normal" in [row.kind for row in inexact(found)]
    assert "assumes normal numbers" in command("show", build)
    command("build", graph, "--assume", "normal", "--precision", "strict", "-o", tmp_path / "s")
    assert read_manifest(tmp_path / "s").assumes == "nothing"
    assert not (tmp_path / "s" / "subnormals.h").exists()


def test_stages_keep_it(tmp_path: Path) -> None:
    graph, after = tmp_path / "m.graph.json", tmp_path / "opt.graph.json"
    gt.write(module(), graph)
    command("opt", graph, "--assume", "normal", "-o", after)
    command("lower", after, "-o", tmp_path / "m.program.json")
    command("build", tmp_path / "m.program.json", "-o", tmp_path / "b")
    assert read_manifest(tmp_path / "b").assumes == "normal"
