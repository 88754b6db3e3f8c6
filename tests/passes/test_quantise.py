"""Quantisation: grids and ranges against their definitions, layers against floats, C as the
evaluator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Quantisation, dtypes, interp, passes
from graphtool import ops as o
from graphtool.errors import GraphtoolError
from graphtool.ir.graph import Module, TensorType, is_constant
from graphtool.ir.serial import dumps
from graphtool.ir.trace import trace
from graphtool.loops.program import Run
from graphtool.lower import lower
from graphtool.passes.quantise.grids import (
    METHODS,
    Seen,
    channel_integers,
    channel_scales,
    chosen,
    grid_of,
    histogram,
)
from graphtool.passes.quantise.weights import blocks
from graphtool.report.quantised import Effects
from graphtool.target import named as target_named

RNG = np.random.default_rng(3)
ROWS, IMAGE = TensorType(dtypes.float32, (4, 16)), TensorType(dtypes.float32, (2, 4, 9, 9))
PIXEL = TensorType(dtypes.float32, (2, 4, 1, 1))
PAD = ((1, 1), (1, 1))


def param(x: Any, *shape: int, name: str = "w") -> Any:
    array = np.random.default_rng(len(name)).normal(size=shape).astype(np.float32)
    return x.builder.constant(array, f"@{name}", True)


def linear(x: Any) -> Any:
    return o.linear(x, param(x, 8, 16), param(x, 8, name="bias"))


def matmul(x: Any) -> Any:
    return o.matmul(x, param(x, 16, 8))


def conv(x: Any) -> Any:
    return o.add(o.conv(x, param(x, 6, 4, 3, 3), padding=PAD), param(x, 6, 1, 1, name="bias"))


def pointwise(x: Any) -> Any:
    return o.add(o.conv(x, param(x, 6, 4, 1, 1)), param(x, 6, 1, 1, name="bias"))


def strided(x: Any) -> Any:
    return o.conv(x, param(x, 6, 4, 3, 2), padding=((2, 1), (0, 3)), strides=(2, 1),
                  rhs_dilation=(2, 1))


def depthwise(x: Any) -> Any:
    return o.conv(x, param(x, 4, 1, 3, 3), padding=PAD, groups=4)


def grouped(x: Any) -> Any:
    return o.conv(x, param(x, 6, 2, 3, 3), groups=2, strides=(2, 2))


def residual(x: Any) -> Any:
    y = o.relu(o.conv(x, param(x, 4, 4, 3, 3), padding=PAD))
    return o.add(o.conv(y, param(x, 4, 4, 3, 3, name="w2"), padding=PAD), y)


def joined(x: Any) -> Any:
    y = o.relu(o.conv(x, param(x, 4, 4, 3, 3), padding=PAD))
    best = o.max_pool(x, window=(3, 3), strides=(1, 1), padding=PAD)
    return o.conv(o.concat(y, best, axis=1), param(x, 3, 8, 1, 1, name="wide"))


def averaged(x: Any) -> Any:
    y = o.relu(o.conv(x, param(x, 4, 4, 3, 3), padding=PAD))
    return o.conv(o.avg_pool(y, window=(3, 3)), param(x, 3, 4, 1, 1, name="wide"))


def transposed(x: Any) -> Any:
    return o.conv(x, param(x, 6, 4, 4, 4), padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))


def upsampled(x: Any) -> Any:
    y = o.conv(x, param(x, 24, 4, 2, 2), padding=PAD, lhs_dilation=(2, 2))
    return o.conv(o.relu(y), param(x, 3, 24, 1, 1, name="wide"))


def spread(x: Any) -> Any:
    """Zeros stay between the elements: 17 rows are no multiple of the stride."""
    return o.conv(x, param(x, 6, 2, 3, 3), padding=PAD, lhs_dilation=(2, 2), groups=2)


def pixel(x: Any) -> Any:
    return o.conv(x, param(x, 6, 4, 4, 4), padding=((3, 3), (3, 3)))


def squares(x: Any) -> Any:
    """Two activations, of which the right one is turned."""
    return o.matmul(o.tanh(x), o.add(x, 1.0), transpose_b=True)


def mixed_rows(x: Any) -> Any:
    """A product with a weight reads an operand of a product of two activations."""
    y = o.relu(linear(x))
    return o.linear(o.matmul(y, o.matmul(o.transpose(y, perm=(1, 0)), x)),
                    param(x, 8, 16, name="wide"))


def line(x: Any) -> Any:
    y = o.conv(x, param(x, 6, 4, 3), padding=((2, 1),), lhs_dilation=(2,))
    return o.add(y, param(x, 6, 1, name="bias"))


CASES: dict[str, tuple[Callable[[Any], Any], TensorType, int]] = {
    "linear": (linear, ROWS, 1), "matmul": (matmul, ROWS, 1), "conv": (conv, IMAGE, 1),
    "pointwise": (pointwise, IMAGE, 1), "strided": (strided, IMAGE, 1),
    "depthwise": (depthwise, IMAGE, 1), "grouped": (grouped, IMAGE, 1),
    "residual": (residual, IMAGE, 2), "joined": (joined, IMAGE, 2),
    "averaged": (averaged, IMAGE, 2), "transposed": (transposed, IMAGE, 2),
    "upsampled": (upsampled, IMAGE, 5), "spread": (spread, IMAGE, 1), "pixel": (pixel, PIXEL, 1),
    "squares": (squares, ROWS, 1), "mixed_rows": (mixed_rows, ROWS, 4),
    "line": (line, TensorType(dtypes.float32, (2, 4, 9)), 1)}


def module(name: str) -> Module:
    function, kind, _ = CASES[name]
    return Module(trace(function, [kind], ["x"]), ("y",))


def examples(name: str) -> dict[str, Any]:
    rng = np.random.default_rng(len(name))
    return {"x": rng.normal(size=CASES[name][1].shape).astype(np.float32)}


def relative(y: Any, want: Any) -> float:
    return float(np.sqrt(((y - want) ** 2).sum() / (want ** 2).sum()))


@pytest.mark.part(9)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_static(name: str, symmetric: bool, tmp_path: Path) -> None:
    """Near the floats, on integer kernels, and C as the evaluator: bit by bit, unless a float is
    added to the scaled sums."""
    before, xs = module(name), examples(name)
    after = graphtool.quantise(before, Quantisation(symmetric=symmetric), xs)
    ready = passes.run(after, supply={"march": "native"})
    kernels = [n for n in ready.graph.nodes if n.op.name.endswith(("_int", "_amx"))
               and not n.op.name.startswith("pack")]
    assert len(kernels) == CASES[name][2]
    (want,), (got,) = interp.run(before, xs).values(), interp.run(ready, xs).values()
    assert relative(got, want) < (0.05 if symmetric else 0.03)
    (built,) = graphtool.load(graphtool.build(ready, tmp_path / "b"))(**xs).values()
    np.testing.assert_allclose(built, got, rtol=1e-5 if name == "residual" else 0)


@pytest.mark.part(6)
@pytest.mark.parametrize(("form", "name", "bound"), [
    ("dynamic", "linear", 0.02), ("dynamic", "conv", 0.02), ("dynamic", "matmul", 0.02),
    ("int8", "linear", 0.01), ("int8", "matmul", 0.01), ("int4", "linear", 0.12),
    ("int2", "matmul", 0.45), ("bfloat16", "conv", 0.01), ("bfloat16", "matmul", 0.01),
    ("float16", "linear", 0.001), ("dynamic", "transposed", 0.02), ("dynamic", "spread", 0.02),
    ("int8", "conv", 0.01), ("int4", "conv", 0.12), ("int4", "pointwise", 0.12),
    ("int8", "strided", 0.01), ("int2", "pixel", 0.45), ("dynamic", "pixel", 0.02),
    ("bfloat16", "transposed", 0.01)])
def test_without_examples(form: str, name: str, bound: float, tmp_path: Path) -> None:
    before, xs = module(name), examples(name)
    after = passes.run(before, f"quantise{{form={form},block=16}}")
    (want,), (got,) = interp.run(before, xs).values(), interp.run(after, xs).values()
    assert 0 < relative(got, want) < bound
    (built,) = graphtool.load(graphtool.build(after, tmp_path / "b"))(**xs).values()
    np.testing.assert_allclose(built, got, rtol=1e-4, atol={
        "dynamic": 0.03, "bfloat16": 1e-4 if name == "matmul" else 0.1}.get(form, 1e-4))


@pytest.mark.parametrize("name", ["transposed", "upsampled", "spread", "pixel", "line"])
def test_transposed_convolutions_without_dot_products_of_bytes(name: str) -> None:
    """The same sums as those of bytes, by pairs of 16 bits."""
    xs = examples(name)
    after = graphtool.quantise(module(name), None, xs)
    ready = passes.run(after, supply={"target": target_named("x86-64-v3")})
    kernels = [n for n in ready.graph.nodes if n.op.name.endswith("_int")]
    (want,), (got,) = interp.run(after, xs).values(), interp.run(ready, xs).values()
    assert kernels
    assert relative(got, want) < 1e-2


def attended(x: Any) -> Any:
    q, k = (o.linear(x, param(x, 16, 16, name=n)) for n in ("query", "keys"))
    return o.matmul(o.softmax(o.matmul(q, k, transpose_b=True), axis=-1), x)


def test_attention_keeps_its_kernel() -> None:
    """Its two products are no layers: the kernel of attention is faster than bytes in parts."""
    before = Module(trace(attended, [TensorType(dtypes.float32, (1, 16, 16))], ["x"]), ("y",))
    after = graphtool.quantise(before, None, {
        "x": RNG.normal(size=(1, 16, 16)).astype(np.float32)})
    ready = passes.run(after, supply={"march": "native"})
    assert [n.op.name for n in ready.graph.nodes if n.op is o.attend] == ["attend"]


def test_a_table(tmp_path: Path) -> None:
    """Rows are drawn as int8 and widened: the table stays narrow in the build."""
    def drawn(ids: Any) -> Any:
        return o.embedding(param(ids, 50, 512), ids)
    before = Module(trace(drawn, [TensorType(dtypes.int64, (3,))], ["ids"]), ("y",))
    after, xs = passes.run(before, "quantise{form=int8}"), {"ids": np.array([4, 0, 49])}
    built = graphtool.load(graphtool.build(after, tmp_path / "b"))
    (want,), (got,) = interp.run(before, xs).values(), built(**xs).values()
    assert relative(got, want) < 0.01
    assert (tmp_path / "b" / "model.safetensors").stat().st_size < 50 * 512 * 2


def test_grids_hold_zero_and_the_ends() -> None:
    for low, high in ((-1.0, 3.0), (0.0, 2.0), (1.0, 2.0), (-5.0, -1.0), (0.0, 0.0)):
        grid = grid_of(low, high)
        ends = np.array([min(low, 0), 0, max(high, 0)], np.float32)
        assert np.abs(grid.rounded(ends) - ends).max() <= grid.scale / 2 * 1.001
        assert grid.rounded(np.zeros(1, np.float32))[0] == 0
    assert grid_of(-1, 3, symmetric=True).zero == 0
    assert grid_of(-1, 3, symmetric=True).dtype is dtypes.int8
    assert grid_of(0, 3, symmetric=True).dtype is dtypes.uint8


def test_ranges_leave_outliers_out() -> None:
    """One value of a hundred thousand is 50 times the rest: min-max keeps it, others do not; mse
    has the least squared error."""
    x = np.concatenate([RNG.normal(size=100_000), [200.0]]).astype(np.float32)
    low, high = float(x.min()), float(x.max())
    seen = Seen(low, high, histogram(x, low, high))
    grids = {method: chosen(seen, method, False) for method in METHODS}
    lost = {m: float(((g.rounded(x) - x)[:-1] ** 2).mean()) for m, g in grids.items()}
    assert grids["minmax"].high > 150
    assert all(v < lost["minmax"] for m, v in lost.items() if m != "minmax")
    whole = {m: float(((g.rounded(x) - x) ** 2).sum()) for m, g in grids.items()}
    assert whole["mse"] <= 1.05 * min(whole.values())


def test_channels_round_by_half_a_step() -> None:
    w = RNG.normal(size=(5, 7, 3)).astype(np.float32) * np.arange(7)[None, :, None]
    scales = channel_scales(w, 1)
    assert scales.shape == (1, 7, 1)
    assert (np.abs(channel_integers(w, scales) * scales - w) <= scales * 0.501).all()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_blocks_unpack_to_what_they_say(bits: int) -> None:
    """`linear_nbits` of the identity gives the weights; more bits are nearer."""
    w = RNG.normal(size=(3, 20)).astype(np.float32)
    found = blocks(w, bits, 8)
    unpacked = o.linear_nbits(np.eye(20, dtype=np.float32), found.packed, found.scales, bits=bits,
                              block=8)
    np.testing.assert_allclose(unpacked.T, found.real, rtol=1e-6)
    assert relative(found.real, w) < {2: 0.5, 4: 0.1, 8: 0.01}[bits]


def test_patterns_choose_layers() -> None:
    after = passes.run(module("residual"), "quantise{only=w*,skip=w2}")
    kinds = {n.outputs[0].hint: n.outputs[0].type.dtype.short for n in after.graph.nodes
             if n.op is o.constant}
    assert kinds["@w"] == "i8"
    assert kinds["@w2"] == "f32"


def broken(x: Any) -> Any:
    return o.linear(x, x.builder.constant(np.full((8, 16), np.nan, np.float32), "@w", True))


@pytest.mark.parametrize(("call", "code"), [
    (lambda: passes.run(Module(trace(broken, [ROWS], ["x"]), ("y",)), "quantise"), "GT0642"),
    (lambda: passes.run(module("linear"), "quantise{only=nothing}"), "GT0640"),
    (lambda: passes.run(module("linear"), "quantise{form=int4,block=3}"), "GT0643"),
    (lambda: passes.run(module("conv"), "quantise{form=int4,block=3}"), "GT0643"),
    (lambda: graphtool.quantise(module("linear"), Quantisation()), "GT0644"),
    (lambda: graphtool.quantise(module("linear"), None, {"y": np.zeros(3)}), "GT0641"),
    (lambda: graphtool.quantise(module("linear"), None, {"x": np.zeros(3)}), "GT0641"),
    (lambda: graphtool.quantise(module("linear"), None, {"x": np.zeros((0, 16))}), "GT0641"),
    (lambda: graphtool.quantise(module("linear"), None, {"x": np.zeros((0, 4, 16))}), "GT0641"),
    (lambda: graphtool.quantise(module("linear"), None, {"x": np.full((4, 16), 1e300)}), "GT0641"),
    (lambda: graphtool.quantise(module("linear"), None, {"x": np.ones((4, 16), "c8")}), "GT0641"),
    (lambda: graphtool.quantise(Module(trace(o.relu, [ROWS], ["x"]), ("y",))), "GT0645")])
def test_refusals(call: Callable[[], Any], code: str) -> None:
    with pytest.raises(GraphtoolError) as fault:
        call()
    assert fault.value.code == code


@pytest.mark.parametrize("how", [
    {}, {"method": "entropy"}, {"correct_bias": True}, {"smooth": 0.5}, {"rounding": "gptq"},
    {"rounding": "awq", "forms": ("int8",)}], ids=str)
@pytest.mark.parametrize("row", [0, 3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_examples_are_finite_numbers(how: dict[str, Any], row: int, value: float) -> None:
    """One element of one batch is enough to be refused: NaN is no least and no greatest number."""
    x = RNG.normal(size=(4, 4, 16)).astype(np.float32)
    x[row, 1, 5] = value
    with pytest.raises(GraphtoolError) as fault:
        graphtool.quantise(module("linear"), Quantisation(**how), {"x": x})
    assert fault.value.code == "GT0642"


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int64, np.uint8, bool])
def test_examples_become_the_type_of_the_input(kind: Any) -> None:
    x = RNG.integers(0, 2, (4, 16)).astype(kind)
    got, want = (dumps(graphtool.quantise(module("linear"), None, {"x": a}))
                 for a in (x, x.astype(np.float32)))
    assert got == want


def test_an_error_that_is_not_a_number_is_not_0() -> None:
    """Of outputs that are all 0 in floats, too."""
    def zero(x: Any) -> Any:
        return o.mul(x, 0.0)

    def broken_zero(x: Any) -> Any:
        return o.mul(o.log(o.sub(o.mul(x, 0.0), 1.0)), 0.0)
    first, second = (Module(trace(fn, [ROWS], ["x"]), ("y",)) for fn in (zero, broken_zero))
    assert Effects(first, [{"x": np.ones((4, 16), np.float32)}]).of(second) == np.inf


def test_kernels_are_called_by_their_convolution() -> None:
    """The grid of a layer's result belongs to the layer, not to the one that reads it."""
    def net(x: Any) -> Any:
        b = x.builder
        for name, n in (("first", 16), ("second", 16)):
            w = b.constant(RNG.normal(size=(n, x.shape[1], 3, 3)).astype(np.float32) / 8,
                           f"{name}.weight", True)
            with b.scope(name, f"{name}.py:1", (name,)):
                x = o.relu(o.conv(x, w, padding=((1, 1), (1, 1))))
        return x
    shape = TensorType(dtypes.float32, (2, 8, 8, 8))
    built = Module(trace(net, [shape], ["x"]), ("y",))
    target = target_named("x86-64-v3")
    small = graphtool.quantise(built, None, {"x": RNG.normal(size=(4, 8, 8, 8))})
    program = lower(passes.run(small, supply={"target": target}), target)
    runs = [(s.label, s.where) for s in program.steps if isinstance(s, Run)]
    assert {label for label, _ in runs} == {"first", "second"}
    assert all(where in ("", f"{label}.py:1") for label, where in runs)
    ready = passes.run(small, supply={"target": target}).graph
    scales = {n.outputs[0].hint: n.of for n in ready.nodes if is_constant(n)}
    stems = {hint: of[0].partition(".")[0] for hint, of in scales.items()}
    assert all(hint.lstrip("@").partition(".")[0] == stem for hint, stem in stems.items())
