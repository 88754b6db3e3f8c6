"""Runs over a signal: each step has the state that the one before left; on the command line and on
an emulated board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import interp, passes
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.compile.as_is import build
from graphtool.compile.build import emit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.dtypes import uint8
from graphtool.errors import InputError, UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import board, runtime
from graphtool.native.stepping import over
from tests.native.small_targets import available

WINDOW = Module(trace(lambda x: o.reduce_max(o.reduce_window(
    x, kind="max", window=(1, 3, 1), strides=(1, 2, 1)), axes=(1,)),
    [TensorType(uint8, (1, 9, 4))], ["x"]), ("y",))
STEP = passes.run(WINDOW, "step{axis=1}")
X = np.random.default_rng(0).integers(0, 256, (1, 20, 4)).astype(np.uint8)
WANT = [interp.run(WINDOW, {"x": X[:, end - 9:end]})["y"] for end in range(10, 21, 2)]


def test_over_a_signal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(passes.run(STEP), tmp_path / "b")
    model = runtime.load(tmp_path / "b")
    found = over(model, {"x": X}, 1)
    assert np.array_equal(found["y"][4:], WANT)
    first = over(model, {"x": X[:, :12]}, 1)
    rest = over(model, {"x": X[:, 12:], "state": first["state"]}, -2)
    assert np.array_equal(np.concatenate([first["y"], rest["y"]]), found["y"])
    np.savez(tmp_path / "x.npz", x=X)
    assert run(["run", str(tmp_path / "b"), "--inputs", str(tmp_path / "x.npz"), "--steps", "1",
                "-o", str(tmp_path / "y.npz")]) == 0
    assert np.array_equal(np.load(tmp_path / "y.npz")["y"], found["y"])
    for wrong, axis in ((X[:, :5], 1), (X, 3), (X[0], 1), (X[:, :0], 1)):
        with pytest.raises(InputError, match="GT2224"):
            over(model, {"x": wrong}, axis)
    build(passes.run(WINDOW), tmp_path / "w")
    with pytest.raises(UsageError, match="keeps no state"):
        over(runtime.load(tmp_path / "w"), {"x": X[:, :9]}, 1)


@pytest.mark.skipif(bool(available("cortex-m4")), reason=available("cortex-m4"))
def test_on_a_board(tmp_path: Path) -> None:
    how = Build(target="cortex-m4")
    emit(unit_of(Source(STEP), how, "net"), tmp_path, how)
    xs = [np.ascontiguousarray(X[:, i:i + 2]).tobytes() for i in range(0, 20, 2)]
    (tmp_path / "board.c").write_text(board.program("net", xs, [STEP.inputs["state"].shape[0]]))
    sources = sorted(p.name for p in tmp_path.glob("*.c") if p.name != "net_example.c")
    got, _ = board.outputs(board.run(tmp_path, sources, "cortex-m4"), "cortex-m4")
    assert got[4:] == [y.tobytes() for y in WANT]
