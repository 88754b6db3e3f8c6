"""An index out of range is an error of compiled code as of the evaluator; what is known to be in
range costs no check."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.errors import InputError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.serial import collect_all
from graphtool.ir.trace import trace
from graphtool.loops import interp as programs
from graphtool.lower import lower
from graphtool.native import runtime
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.passes.pass_samples import values

N = symbol("N", 1, 9)


def traced(fn: Callable[..., Any], *types: TensorType) -> Module:
    names = [f"x{i}" for i in range(len(types))]
    graph = trace(fn, list(types), names)
    open_ = {"N": Symbol("N", 1, 9)} if any(N in t.shape for t in types) else {}
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), open_)


def f32(*shape: Any) -> TensorType:
    return TensorType(dtypes.float32, shape)


def ints(*shape: Any, dtype: Any = dtypes.int64) -> TensorType:
    return TensorType(dtype, shape)


def columns(*parts: Any) -> Any:
    return o.concat(*(o.reshape(p, shape=(*p.shape, 1)) for p in parts), axis=1)


def several(x: Any, ids: Any) -> Any:
    """Three reads, by one index each."""
    rows = [o.gather(x, o.reshape(o.slice(ids, start=(i,), limit=(i + 1,), strides=(1,)),
                                  shape=(1, 1)), axes=(0,)) for i in range(3)]
    return rows[0] + rows[1] + rows[2]


# a model, and indices of which each makes it fail
CASES: dict[str, tuple[Module, list[int]]] = {
    "embedding": (traced(lambda x, i: o.embedding(x, i), f32(7, 4), ints(3)), [7, -1, 10**10]),
    "small": (traced(lambda x, i: o.embedding(x, i), f32(7, 4), ints(3, dtype=dtypes.int8)),
              [7, 127, -128]),
    "bytes": (traced(lambda x, i: o.embedding(x, i), f32(7, 4), ints(3, dtype=dtypes.uint8)),
              [7, 255]),
    "wide": (traced(lambda x, i: o.embedding(x, i), f32(7, 4), ints(3, dtype=dtypes.uint64)),
             [7, 2**64 - 1]),
    "open": (traced(lambda x, i: o.embedding(x, i), f32(N, 4), ints(3)), [7, -1]),
    "from the end": (traced(lambda x, i: o.embedding(x, o.select(o.lt(i, 0), i + 7, i)),
                            f32(7, 4), ints(3)), [7, -8, -2**63]),
    "two columns": (traced(lambda x, i: o.gather(x, columns(i, i), axes=(0, 1)), f32(9, 7),
                           ints(3)), [7, 8, -1]),
    "scatter": (traced(lambda x, i: o.scatter(x, o.reshape(i, shape=(3, 1)), o.slice(
        x, start=(0, 0), limit=(3, 4), strides=(1, 1)), axes=(0,), kind="add"), f32(7, 4), ints(3)),
        [7, -1]),
    "chained": (traced(lambda x, i: o.embedding(x, o.embedding(i, i)), f32(7, 4), ints(3)), [3]),
    "several": (traced(several, f32(7, 4), ints(3)), [7, -1]),
}


def given(module: Module, index: int) -> dict[str, Any]:
    """Inputs whose second index is this one."""
    x, i = (v.type for v in module.graph.inputs)
    at = np.zeros(3, i.dtype.numpy)
    at[1] = index
    rows = [d if isinstance(d, int) else 7 for d in x.shape]
    return {"x0": np.arange(np.prod(rows), dtype=np.float32).reshape(rows), "x1": at}


@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_is_an_error_everywhere(name: str, tmp_path: Path) -> None:
    module, bad = CASES[name]
    ready = graphtool.optimize(module)
    program = lower(ready, named("native"))
    store = {w.digest: w for w in collect_all(ready.graph)}
    model = runtime.load(graphtool.build(module, tmp_path / "b"))
    for index in [0, 1, *bad]:
        inputs = given(module, index)
        ways: list[Callable[[], Any]] = [
            lambda x=inputs: interp.run(module, x), lambda x=inputs: model.run(x),  # type: ignore[misc]
            lambda x=inputs: programs.run(program, x, store)]  # type: ignore[misc]
        if index in bad:
            for way in ways:
                with pytest.raises(InputError, match=r"GT0501.*out of range for axis"):
                    way()
        else:
            want = ways[0]()
            for way in ways[1:]:
                for key, array in way().items():
                    np.testing.assert_allclose(array, want[key], rtol=1e-6)


def test_the_place_is_named(tmp_path: Path) -> None:
    module, _ = CASES["embedding"]
    with pytest.raises(InputError) as found:
        runtime.load(graphtool.build(module, tmp_path / "b")).run(given(module, 9))
    assert found.value.where == "node embedding" and "size 7" in str(found.value)


KNOWN: dict[str, Module] = {
    "a constant": traced(lambda x: o.embedding(x, x.builder.constant(np.array([1, 6, 0]))),
                         f32(7, 4)),
    "some of them": traced(lambda x: o.embedding(x, x.builder.constant(np.array([1, 6, 3]))),
                           f32(7, 4)),
    "clamped": traced(lambda x, i: o.embedding(x, o.clamp(i, 0, 6)), f32(7, 4), ints(3)),
    "the greatest": traced(lambda x, y: o.embedding(x, o.arg_reduce(y, kind="max", axis=0)),
                           f32(7, 4), f32(7, 2)),
    "a sum": traced(lambda x, i, j: o.embedding(x, o.clamp(i, 0, 2) + o.clamp(j, 0, 4)),
                    f32(7, 4), ints(3), ints(3)),
    "a remainder": traced(lambda x, i: o.embedding(x, o.mod(i, 7)), f32(7, 4), ints(3)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_known_costs_nothing(name: str) -> None:
    assert not lower(graphtool.optimize(KNOWN[name]), named("native")).checks


@pytest.mark.parametrize("most", [126, 127])
def test_a_sum_that_may_wrap_is_checked(most: int) -> None:
    """127 + 1 is −128 in 8 bits."""
    i = TensorType(dtypes.int8, (3,))
    module = traced(lambda x, i: o.embedding(x, o.clamp(i, 0, most) + 1), f32(200, 4), i)
    assert len(lower(graphtool.optimize(module), named("native")).checks) == (most == 127)


@pytest.mark.parametrize("wraps", [lambda i: o.clamp(i, 0, None) + 1, o.abs])
def test_a_number_that_may_wrap_has_no_least(wraps: Callable[[Any], Any]) -> None:
    """The largest integer + 1, and the magnitude of the least, are negative."""
    module = traced(lambda x, i: o.embedding(x, o.min(wraps(i), 6)), f32(7, 4), ints(3))
    assert len(lower(graphtool.optimize(module), named("native")).checks) == 1


def test_a_constant_out_of_range_is_checked() -> None:
    module = traced(lambda x: o.embedding(x, x.builder.constant(np.array([-1, 6]))), f32(7, 4))
    assert len(lower(graphtool.optimize(module), named("native")).checks) == 1


def test_checks_are_left_out_on_request(tmp_path: Path) -> None:
    module, _ = CASES["embedding"]
    built = graphtool.build(module, tmp_path / "b", index_checks=False)
    assert json.loads((built / "build.json").read_text())["index_checks"] is False
    assert "failed" not in (built / "model.c").read_text()
    last = runtime.load(built).run(given(module, 10**6))["y0"][1]
    np.testing.assert_array_equal(last, given(module, 0)["x0"][6])


def test_the_program_says_which_index(tmp_path: Path) -> None:
    module, _ = CASES["embedding"]
    built = graphtool.build(module, tmp_path / "b", exe=True)
    np.savez(tmp_path / "in.npz", **given(module, 9))
    done = subprocess.run([built / "model", str(tmp_path / "in.npz")], capture_output=True,
                          text=True)
    assert done.returncode == 3 and "error[GT0501]: an index is out of range" in done.stderr


def table(i: Any) -> Any:
    """Rows of a table, then a layer: its update could come before the last index is known."""
    rows = o.embedding(values(i, 7, 4, name="table", param=True), i)
    return o.matmul(rows, values(i, 4, 4, name="w", param=True))


def behind_statistics(i: Any) -> Any:
    """An index that is computed after running statistics could be updated."""
    x = o.matmul(o.cast(o.reshape(i, shape=(3, 1)), dtype=dtypes.float32),
                 values(i, 1, 4, name="w", param=True))
    mean, var = (i.builder.constant(np.full(4, v, np.float32), n, True)
                 for v, n in ((0, "n.running_mean"), (1, "n.running_var")))
    h = o.batch_norm(x, values(i, 4, name="s", param=True), values(i, 4, name="b", param=True),
                     mean, var, epsilon=1e-5)
    return o.embedding(values(i, 7, 4, name="table", param=True), i + o.cast(
        o.reshape(o.slice(h, start=(0, 0), limit=(3, 1), strides=(1, 1)), shape=(3,)) * 1e-9,
        dtype=dtypes.int64))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("fn", [table, behind_statistics])
def test_a_step_with_a_bad_index_leaves_the_state(fn: Callable[..., Any], threads: int,
                                                  tmp_path: Path) -> None:
    joint = training(traced(fn, ints(3)), Recipe("mse", optimizer="adam"))
    program = lower(graphtool.optimize(joint), named("native"))
    assert program.checks and program.commit is not None
    model = TrainModel(build(joint, tmp_path / "b", target=named(
        "native", threads=threads)), threads)
    y = np.zeros((3, 4), np.float32)
    model.step({"x0": np.array([0, 6, 1]), "y": y}, 0.1)
    before = model.block.copy()
    with pytest.raises(InputError, match="GT0501"):
        model.step({"x0": np.array([0, 7, 1]), "y": y}, 0.1)
    np.testing.assert_array_equal(model.block, before)
    model.step({"x0": np.array([0, 5, 1]), "y": y}, 0.1)
    assert (model.block != before).any()


def test_a_computed_size_beyond_its_bound_leaves_the_state(tmp_path: Path) -> None:
    def fn(n: Any) -> Any:
        size = symbol("rows", 0, 3)
        w = values(n, 4, 2, name="w", param=True)
        o.size(n, size=size, most=3)
        kept = o.slice(w * w, start=(0, 0), limit=(size, 2), strides=(1, 1))
        return o.reshape(o.reduce_sum(kept, axes=(0, 1)), shape=())
    joint = training(traced(fn, ints()), Recipe("y0", optimizer="adam"))
    model = TrainModel(build(joint, tmp_path / "b"), 1)
    model.step({"x0": np.array(3)}, 0.1)
    before = model.block.copy()
    with pytest.raises(InputError, match="GT2215"):
        model.step({"x0": np.array(4)}, 0.1)
    np.testing.assert_array_equal(model.block, before)
