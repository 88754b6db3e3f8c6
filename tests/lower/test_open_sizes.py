"""Open sizes cost what fixed ones do: the same kernels, the same loops, as many operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from benchmarks.models import OPEN
from benchmarks.models.open_sizes import MODELS
from benchmarks.models.tasks import TASKS
from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops.ir import Apply, Const, For, If, Index, Let, Stmt, Template
from graphtool.loops.program import Program, runs
from graphtool.loops.walk import each, statements, values
from graphtool.lower import lower
from graphtool.passes.specialize import specialize
from graphtool.symbolic import (
    Dim,
    Symbol,
    dim_of,
    evaluate,
    known,
    product,
    substitute,
    symbol,
    typical_size,
)
from graphtool.target import named
from graphtool.transforms.training import Recipe
from tests.lower.compiling import compiled, optimised

TARGET = named("x86-64-v3", 2)
SLACK = 1.05  # the gradient of filters goes another way if all pixels of a batch are few
LEFT_OUT = ("encoder_fast", "language", "mlp", "gru")  # others do what they do

SLOW = ("unet", "listener")


def program(module: Module) -> Program:
    ready = graphtool.optimize(module, target=TARGET.march)
    return graphtool.lower_model(ready, target=TARGET.march)


def work(p: Program, sizes: dict[str, int]) -> int:
    return sum(evaluate(run.flops, sizes) for run in runs(p.steps))


def kernels(p: Program, sizes: dict[str, int]) -> list[str]:
    """The templates in the order in which they run."""
    found = {k.name: k.body for k in p.kernels}
    return [t.kernel for run in runs(p.steps) for t in templates(found[run.kernel], sizes)]


def templates(body: Iterable[Stmt], sizes: dict[str, int]) -> Iterator[Template]:
    """Those that run, of products those for the number of rows."""
    for s in body:
        match s:
            case Template():
                yield s
            case If(Apply("lt", (Index(rows), Const(enough))), few, many):
                yield from templates(few if evaluate(rows, sizes) < enough else many, sizes)


@pytest.mark.part(2)
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in MODELS if name not in LEFT_OUT and name.removeprefix("train.") not in TASKS])
def test_open_and_fixed_builds_do_the_same_work(name: str) -> None:
    found = MODELS[name]
    module = found.module(small=True)
    if found.optimizer:
        module = graphtool.grad(module, Recipe(found.loss or module.output_names[0],
                                               optimizer=found.optimizer))
    sizes = found.sizes(module, OPEN[name][len(OPEN[name]) // 2], small=True)
    opened, fixed = program(module), program(specialize(module, **sizes))
    assert work(opened, sizes) <= SLACK * work(fixed, {})
    if not found.optimizer:
        assert kernels(opened, sizes) == kernels(fixed, {})


# ---- strides ------------------------------------------------------------------------------------

SYMBOLS = {"N": Symbol("N", 0, 64), "ROWS": Symbol("ROWS", 0, 40)}
N, ROWS = map(dim_of, SYMBOLS.values())


@pytest.mark.parametrize("longer", [N * 256, ROWS * 256, N * ROWS * 256, ROWS * N, N * 64 + 256])
@pytest.mark.parametrize("shorter", [1, 64, 256, N, N * 64, N * ROWS])
def test_strides_are_compared_as_for_all_sizes(longer: Dim, shorter: Dim) -> None:
    """The typical sizes never contradict what holds for every size of 1 or more."""
    env = {s: symbol(s, 1, None) for s in ("N", "ROWS")}
    order = known(substitute(shorter, env), "<=", substitute(longer, env))
    assert order is None or (typical_size(shorter) <= typical_size(longer)) == order


def test_rows_stay_inside_their_batch() -> None:
    """A mean is computed once for a row, not for each of its elements."""
    x = TensorType(dtypes.float32, (N, ROWS, 32))
    graph = trace(lambda x: o.layer_norm(x, axes=(-1,)), [x], ["x"])
    (kernel,) = lower(optimised(Module(graph, ("y",), symbols=SYMBOLS), TARGET), TARGET).kernels
    (rows,) = kernel.body
    assert isinstance(rows, For) and rows.mode == "parallel"
    assert rows.extent == N * ROWS  # threads share them, though there may be one sequence only
    assert all(s.extent == 32 for s in statements(rows.body) if isinstance(s, For))


# ---- sums over open axes, and rows in another order ---------------------------------------------

SUMS: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any]]] = {
    "columns": ((N, 48), lambda x: o.reduce_sum(x, axes=(0,))),
    "odd columns": ((N, 37), lambda x: o.reduce_max(x, axes=(0,)) * 2.0 + 1.0),
    "many columns": ((N, 200), lambda x: o.reduce_mean(o.exp(x), axes=(0,))),
    "few columns": ((N, 5), lambda x: o.reduce_sum(x, axes=(0,))),
    "middle": ((3, N, 24), lambda x: o.reduce_sum(x * x, axes=(1,))),
    "two axes": ((N, ROWS, 16), lambda x: o.reduce_sum(x, axes=(0, 1))),
    "of a window": ((N, 9, 8, 16), lambda x: o.reduce_sum(
        o.slice(x, start=(0, 1, 1, 0), limit=(N, 8, 7, 16), strides=(1, 1, 1, 1)), axes=(1, 2))),
    "rows across": ((N, ROWS, 24), lambda x: o.matmul(
        o.transpose(x, perm=(1, 0, 2)), np.linspace(-1, 1, 24 * 40, dtype=np.float32).reshape(
            24, 40))),
}


def sums() -> Module:
    """All of them side by side."""
    types = [TensorType(dtypes.float32, shape) for shape, _ in SUMS.values()]

    def body(*xs: Any) -> Any:
        return tuple(fn(x) for x, (_, fn) in zip(xs, SUMS.values(), strict=True))
    graph = trace(body, types, [name.replace(" ", "_") for name in SUMS])
    return Module(graph, tuple(f"y{i}" for i in range(len(SUMS))), symbols=SYMBOLS)


def test_sums_and_products_agree_with_the_evaluator(tmp_path: Path) -> None:
    module = sums()
    model = compiled(optimised(module), tmp_path / "b", eager=True)
    rng = np.random.default_rng(0)
    for n, rows in ((0, 3), (1, 1), (5, 7), (64, 40)):
        xs = {v.hint: rng.standard_normal([evaluate(d, {"N": n, "ROWS": rows}) for d in
                                           v.type.shape], np.float32) for v in module.graph.inputs}
        want, got = interp.run(module, xs), model.run(xs)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], 1e-5, 1e-5, err_msg=name)


def test_columns_are_added_by_rows() -> None:
    """No kernel sums column after column where the rows are an open size."""
    ready = optimised(sums(), TARGET)
    program = lower(ready, TARGET)
    labels = {run.kernel: run.label for run in runs(program.steps)}
    scalar = {labels[k.name] for k in program.kernels for s in statements(k.body)
              if isinstance(s, Let) and s.mutable}
    assert len(scalar) <= 1, scalar  # few columns
    (product,) = [t for k in program.kernels for t in templates(k.body, {"N": 64, "ROWS": 40})]
    assert dict(product.macros)["BATCH"] == 1


@pytest.mark.parametrize("window", [2, 4])
def test_windows_that_divide_an_open_size_are_not_checked(window: int) -> None:
    """4·n rows hold n or 2·n windows, whatever n is: no element is compared with the end."""
    x = TensorType(dtypes.float32, (N, 4 * ROWS, 16, 8))
    graph = trace(lambda x: o.max_pool(x, window=(window, 1), strides=(window, 1),
                                       channels_last=True), [x], ["x"])
    (kernel,) = lower(optimised(Module(graph, ("y",), symbols=SYMBOLS), TARGET), TARGET).kernels
    assert not [e for s in statements(kernel.body) for e in each(values(s))
                if isinstance(e, Apply) and e.fn == "select"]


@pytest.mark.parametrize("march", ["x86-64-v3", "native"])
def test_any_number_of_open_rows_has_a_product(march: str, tmp_path: Path) -> None:
    """A run multiplies few rows in other tiles than many: numbers on both sides of each bound."""
    rng = np.random.default_rng(1)
    w = rng.standard_normal((128, 140), np.float32)
    rows = Symbol("M", 0, 4096)
    graph = trace(lambda x: o.matmul(x, w) + 1.0,
                  [TensorType(dtypes.float32, (dim_of(rows), 128))], ["x"])
    module = Module(graph, ("y",), symbols={"M": rows})
    ready = optimised(module, named(march, 2))
    program = lower(ready, named(march, 2))
    bounds = {s.cond.args[1].value for k in program.kernels for s in statements(k.body)
              if isinstance(s, If)}
    assert len(bounds) == (2 if named(march, 2).amx else 1)
    model = compiled(ready, tmp_path / "b", target=march)
    for n in (0, 1, 15, *(b + i for b in bounds for i in (-1, 0, 1)), 400):
        x = rng.standard_normal((n, 128), np.float32)
        if n > 3:
            x[1, 5], x[2, 7] = np.inf, np.nan
        np.testing.assert_allclose(model.run({"x": x})["y"], interp.run(module, {"x": x})["y"],
                                   1e-5, 2e-5, err_msg=str(n))


@pytest.mark.parametrize("march", ["x86-64-v3", "native"])
def test_open_images_are_computed_in_tiles_of_two_sizes(march: str, tmp_path: Path) -> None:
    """Winograd's filters for few outputs and for many: images on both sides of the bound."""
    rng = np.random.default_rng(2)
    w = rng.standard_normal((40, 32, 3, 3), np.float32)
    symbols = {"B": Symbol("B", 0, 64), "H": Symbol("H", 0, 256), "W": Symbol("W", 0, 64)}
    b, h, wide = map(dim_of, symbols.values())
    graph = trace(lambda x: o.relu(o.conv(x, w, padding=((1, 1), (1, 1)))),
                  [TensorType(dtypes.float32, (b, 32, h, wide))], ["x"])
    module = Module(graph, ("y",), symbols=symbols)
    ready = optimised(module, named(march, 2))
    (node,) = [n for n in ready.graph.nodes if n.op.name == "winograd"]
    few = dict(node.attrs["plan"].parameters)["few"]
    kept, extra = (evaluate(product(v.type.shape), {}) for v in node.inputs[1:])
    assert extra < 0.5 * kept
    bodies = [k.body for k in lower(ready, named(march, 2)).kernels]
    for size, tile in ((1, 4, 4), 2), ((1, few, 1), 4), ((4, 64, 64), 4):
        runs = templates(chain(*bodies), dict(zip(symbols, size, strict=True)))
        assert [dict(t.macros)["TILE"] for t in runs if t.kernel == "winograd"] == [tile]
    model = compiled(ready, tmp_path / "b", target=march)
    for size in ((0, 8, 8), (1, 0, 5), (1, 1, 1), (1, 2, 2), (2, 3, 5), (1, 8, 8), (3, 7, 9),
                 (1, few - 1, 1), (1, few, 1), (2, 33, 31)):
        x = rng.standard_normal((size[0], 32, *size[1:]), np.float32)
        np.testing.assert_allclose(model.run({"x": x})["y"], interp.run(module, {"x": x})["y"],
                                   1e-4, 5e-4, err_msg=str(size))


def test_transposed_convolutions_of_an_open_batch_have_products_as_gradients(
        tmp_path: Path) -> None:
    """Windows, strides, paddings, and rows that only the transposed convolution adds."""
    cases = ((2, 2, 0, 0), (3, 2, 1, 1), (3, 3, 0, 2))
    inputs = [TensorType(dtypes.float32, (N, 24, 6, 5)), *(
        TensorType(dtypes.float32, (N, 16, *((d - 1) * s + k - 2 * p + more for d in (6, 5))))
        for k, s, p, more in cases)]

    def body(x: Any, *gs: Any) -> Any:
        return tuple(_of_weights(x, g, k, s, p) for g, (k, s, p, _) in zip(gs, cases, strict=True))
    names = [f"g{i}" for i in range(len(cases))]
    graph = trace(body, inputs, ["x", *names])
    module = Module(graph, tuple(f"y{i}" for i in range(len(cases))), symbols={"N": SYMBOLS["N"]})
    ready = optimised(module)
    assert "conv" not in {n.op.name for n in ready.graph.nodes}
    model, rng = compiled(ready, tmp_path / "b", eager=True), np.random.default_rng(3)
    for n in (0, 1, 2, 33):
        xs = {v.hint: rng.standard_normal([evaluate(d, {"N": n}) for d in v.type.shape], np.float32)
              for v in module.graph.inputs}
        want, got = interp.run(module, xs), model.run(xs)
        for name in want:
            np.testing.assert_allclose(got[name], want[name], 1e-4, 1e-4, err_msg=f"{name} {n}")


def _of_weights(x: Any, g: Any, k: int, s: int, p: int) -> Any:
    """The gradient of the weights of conv_transpose(x, w, stride=s, padding=p), as `grad` has
    it."""
    ends = [(k - 1 - p, to - (size - 1) * s - 1 + p) for size, to in zip(
        x.shape[2:], g.shape[2:], strict=True)]
    return o.conv(o.transpose(x, perm=(1, 2, 3, 0)), o.transpose(g, perm=(1, 0, 2, 3)),
                  padding=tuple(ends), lhs_dilation=(s, s), channels_last=True, absent=True)


@pytest.mark.parametrize("march", ["x86-64-v3", "native"])
def test_attention_needs_no_bound_of_its_length(march: str, tmp_path: Path) -> None:
    """Threads have room for the keys of each run, few or many."""
    rng = np.random.default_rng(3)
    symbols = {"B": Symbol("B", 0, None), "T": Symbol("T", 0, None)}
    b, t = map(dim_of, symbols.values())
    graph = trace(lambda q, k: o.attention(q, k, k, scale=0.2),
                  [TensorType(dtypes.float32, (b, 3, t, 32))] * 2, ["q", "k"])
    module = Module(graph, ("y",), symbols=symbols)
    model = compiled(optimised(module, named(march, 2)), tmp_path / "b", target=march)
    for size in ((0, 5), (2, 0), (1, 1), (2, 17), (1, 700), (3, 33), (1, 1)):
        q, k = (rng.standard_normal((size[0], 3, size[1], 32), np.float32) for _ in range(2))
        x = {"q": q, "k": k}
        np.testing.assert_allclose(model.run(x)["y"], interp.run(module, x)["y"], 1e-4, 2e-5,
                                   err_msg=str(size))
