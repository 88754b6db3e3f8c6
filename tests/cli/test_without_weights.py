"""Verbs that look at a graph need no weights; those that compute say that they are not there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from tests.cli.conftest import Cli


@pytest.fixture
def bare(tmp_path: Path) -> str:
    """A graph file whose weights file is gone."""
    w = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    graph = trace(lambda x: o.relu(o.matmul(x, x.builder.constant(w, "w"))),
                  [TensorType(dtypes.float32, (2, 40))], ["x"])
    serial.save(Module(graph, ("y",)), tmp_path / "g.graph.json")
    (tmp_path / "g.safetensors").unlink()
    return str(tmp_path / "g.graph.json")


@pytest.mark.parametrize("call", ["show G", "show G --stats", "show G --json", "diff G G", "draw G",
                                  "view G -o OUT"])
def test_what_looks_at_a_graph(call: str, bare: str, gt: Cli, tmp_path: Path) -> None:
    words = [bare if w == "G" else str(tmp_path / "x.html") if w == "OUT" else w
             for w in call.split()]
    found = gt(*words)
    assert found.code == 0 and "its weights file is not there" in found.err


@pytest.mark.parametrize("verb", ["eval", "opt"])
def test_what_computes(verb: str, bare: str, gt: Cli, tmp_path: Path) -> None:
    more = ["--random"] if verb == "eval" else ["-o", str(tmp_path / "o.graph.json")]
    found = gt(verb, bare, *more)
    assert found.code == 3 and "error[GT0320]" in found.err
    assert not (tmp_path / "o.graph.json").exists()
