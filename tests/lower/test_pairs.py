"""Products and convolutions of 16 bits, against the evaluator and float64; bfloat16 lies by pairs
where there are dot products of it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import rules_of
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.symbolic import Symbol, symbol
from graphtool.target import Target, named
from tests.emit.test_strict import strict

BF16 = dtypes.bfloat16
BY_PAIRS = named("native").bf16
HALVES = {d.short: d for d in dtypes.HALVES}
SHAPES: dict[str, Any] = {  # operands, attributes
    "plain": ((6, 32), (32, 48), {}), "odd": ((5, 7), (7, 33), {}),
    "rows": ((29, 64), (64, 40), {}), "one": ((4, 18), (18, 16), {}),
    "transposed": ((6, 24), (40, 24), {"transpose_b": True}),
    "across": ((30, 12), (30, 20), {"transpose_a": True}),
    "across odd": ((31, 12), (31, 20), {"transpose_a": True}),
    "batch": ((3, 2, 9, 10), (3, 2, 10, 24), {}), "shared": ((3, 5, 10), (10, 24), {}),
    "wide": ((4, 5), (5, 300), {})}


def vectors(march: str) -> Target:
    """The target without its matrix unit, which would be chosen before the kernels of vectors, and
    with dot products that are worth it."""
    return replace(named(march), amx=False, dots=1.8)


def product(name: str, march: str = "native", dtype: str = "bf16") -> tuple[Module, dict[str, Any]]:
    """A product with an epilogue, ready to lower; and operands."""
    a, b, attrs = SHAPES[name]
    half = HALVES[dtype]
    graph = trace(lambda x, w: o.relu(o.matmul(x, w, **attrs)) + 1.0,
                  [TensorType(half, a), TensorType(half, b)], ["x", "w"])
    module = passes.run(Module(graph, ("y",)), supply={"target": vectors(march)})
    op = "gemm_bf16" if march == "native" and BY_PAIRS and half is BF16 else "gemm"
    assert [n for n in module.graph.nodes if n.op.name == op]
    assert not [n for n in module.graph.nodes if n.op.name == "cast"][1:]  # of the result alone
    rng = np.random.default_rng(0)
    return module, {k: rng.standard_normal(s).astype(half.numpy)
                    for k, s in (("x", a), ("w", b))}


@pytest.mark.part(6)
@pytest.mark.parametrize(("march", "dtype"), [
    ("native", "bf16"), ("x86-64-v3", "f16"),
    *(pytest.param(m, d, marks=pytest.mark.slow) for m, d in (
        ("native", "f16"), ("x86-64-v3", "bf16"), ("generic", "bf16"), ("generic", "f16")))])
@pytest.mark.parametrize("name", SHAPES)
def test_equal_to_float64(name: str, march: str, dtype: str, tmp_path: Path) -> None:
    module, xs = product(name, march, dtype)
    built = graphtool.load(build(module, tmp_path / "b", target=named(march)))
    (got,) = built(**xs).values()
    attrs = SHAPES[name][2]
    a, b = (xs[k].astype(np.float64) for k in "xw")
    a = np.swapaxes(a, -1, -2) if attrs.get("transpose_a") else a
    b = np.swapaxes(b, -1, -2) if attrs.get("transpose_b") else b
    want = np.maximum(a @ b, 0) + 1
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=1.2e-2, atol=1e-2)
    (same,) = interp.run(module, xs).values()
    np.testing.assert_allclose(same.astype(np.float64), want, rtol=1.2e-2, atol=1e-2)


@pytest.mark.parametrize("name", ["odd", "across odd", "batch"])
def test_the_programs_meaning(name: str) -> None:
    module, xs = product(name)
    program = lower(module, named("native"), name="m")
    (got,) = loops.run(program, xs, {}).values()
    (want,) = interp.run(module, xs).values()
    np.testing.assert_allclose(got.astype(np.float32), want.astype(np.float32), rtol=2e-2,
                               atol=1e-2)


def test_an_open_depth(tmp_path: Path) -> None:
    """The batch as the depth of a gradient by the weights: odd and even."""
    n = symbol("n", 1, 40)
    graph = trace(lambda x, w: o.matmul(x, w, transpose_a=True),
                  [TensorType(BF16, (n, 12)), TensorType(BF16, (n, 32))], ["x", "w"])
    module = passes.run(Module(graph, ("y",), symbols={"n": Symbol("n", 1, 40)}))
    built = graphtool.load(build(module, tmp_path / "b"))
    for size in (1, 2, 7, 40):
        x, w = (np.random.default_rng(size).standard_normal((size, k)).astype(ml_dtypes.bfloat16)
                for k in (12, 32))
        (got,) = built(x=x, w=w).values()
        want = x.astype(np.float64).T @ w.astype(np.float64)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-2, atol=1e-2)


CONVOLUTIONS: dict[str, Any] = {  # x [N,H,W,C], w [O,C,KH,KW], attributes
    "stem": ((2, 9, 11, 3), (20, 3, 3, 3), {"strides": (2, 2), "padding": ((1, 1), (1, 1))}),
    "one": ((2, 10, 10, 1), (6, 1, 5, 5), {}),
    "winograd": ((1, 8, 8, 32), (32, 32, 3, 3), {"padding": ((1, 1), (1, 1))}),
    "dilated": ((1, 9, 9, 5), (7, 5, 3, 3), {"rhs_dilation": (2, 2)}),
    "groups": ((2, 6, 7, 10), (34, 5, 3, 3), {"groups": 2}),
    "depthwise": ((1, 7, 9, 37), (37, 1, 3, 3), {"groups": 37, "padding": ((1, 1), (1, 1))}),
    "pointwise": ((2, 5, 6, 7), (33, 7, 1, 1), {}),
    "transposed": ((1, 4, 5, 6), (18, 6, 3, 3),
                   {"lhs_dilation": (2, 2), "padding": ((1, 2), (1, 2))}),
    "row": ((2, 20, 6), (9, 6, 3), {"padding": ((1, 1),)}),
    "by its weights": ((9, 8, 8, 4), (12, 4, 6, 6), {}),
    "by few weights": ((3, 12, 12, 8), (6, 8, 8, 8), {})}


def images(dtype: str, march: str) -> tuple[Module, dict[str, Any], list[Any]]:
    """All the convolutions as one model, operands, and the results in float64."""
    half, rng = HALVES[dtype], np.random.default_rng(0)
    shapes = [s for x, w, _ in CONVOLUTIONS.values() for s in (x, w)]
    names = [f"{k}{i}" for i in range(len(CONVOLUTIONS)) for k in "xw"]

    def model(*xs: Any) -> Any:
        return tuple(o.relu(o.conv(x, w, channels_last=True, **a)) * 0.5 for x, w, (_, _, a) in zip(
            xs[::2], xs[1::2], CONVOLUTIONS.values(), strict=True))
    graph = trace(model, [TensorType(half, s) for s in shapes], names)
    outs = tuple(k.replace(" ", "_") for k in CONVOLUTIONS)
    module = passes.run(Module(graph, outs), supply={"target": vectors(march)})
    values = {n: rng.standard_normal(s).astype(half.numpy)
              for n, s in zip(names, shapes, strict=True)}
    wide = [v.astype(np.float64) for v in values.values()]
    return module, values, [np.asarray(y) for y in model(*wide)]


@pytest.mark.part(2)
@pytest.mark.parametrize(("march", "dtype"), [
    ("native", "bf16"), ("native", "f16"), ("x86-64-v3", "f16"),
    *(pytest.param(m, d, marks=pytest.mark.slow) for m, d in (
        ("x86-64-v3", "bf16"), ("x86-64", "bf16"), ("x86-64", "f16"), ("generic", "f16"),
        ("generic", "bf16")))])
def test_convolutions(march: str, dtype: str, tmp_path: Path) -> None:
    module, xs, want = images(dtype, march)
    widened = [n.inputs[0].type.shape for n in module.graph.nodes if n.op.name == "cast"
               and n.outputs[0].type.dtype is dtypes.float32 and n.inputs[0] in module.graph.inputs]
    assert widened in ([], [(32, 32, 3, 3)])  # nothing but what Winograd transforms
    bound = {"bf16": 1.2e-2, "f16": 2e-3}[dtype]
    built = graphtool.load(build(module, tmp_path / "b", target=named(march)))
    for name, got, exact in zip(CONVOLUTIONS, built(**xs).values(), want, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=bound, atol=bound,
                                   err_msg=name)
    for name, got, exact in zip(CONVOLUTIONS, interp.run(module, xs).values(), want, strict=True):
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=bound, atol=bound,
                                   err_msg=name)


@pytest.mark.long
@pytest.mark.parametrize("dtype", HALVES)
def test_the_meaning_of_convolutions(dtype: str) -> None:
    module, xs, want = images(dtype, "native")
    got = loops.run(lower(module, named("native"), name="m"), xs, {})
    for name, y, exact in zip(CONVOLUTIONS, got.values(), want, strict=True):
        np.testing.assert_allclose(y.astype(np.float64), exact, rtol=1.2e-2, atol=1.2e-2,
                                   err_msg=name)


@pytest.mark.part(2)
@pytest.mark.parametrize(("cc", "march"), [("gcc", "x86-64-v3"), ("clang", "x86-64-v3"),
                                           ("gcc", "x86-64-v4"), ("clang", "x86-64-v4")])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "pairs"])
def test_no_warnings(cc: str, march: str, dtype: str, tmp_path: Path) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    if dtype == "pairs" and march == "x86-64-v3":
        pytest.skip("the instruction is of AVX-512")
    made = product("across odd", march, "bf16" if dtype == "pairs" else dtype)[0]
    strict(made, tmp_path, cc, march, *(("-mavx512bf16",) if dtype == "pairs" else ()))


@pytest.mark.skipif(not BY_PAIRS, reason="no dot products of bfloat16 here")
def test_fast_convolutions(tmp_path: Path) -> None:
    """In the class fast, of float32 models: the image is rounded where it is made, inside its
    padding, and weights are packed when the model is built."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float32) * 0.1
            for s in ((24, 3, 3, 3), (40, 24, 3, 3)))
    pad = ((1, 1), (1, 1))

    def model(x: Any) -> Any:
        y = o.relu(o.conv(x, a, channels_last=True, padding=pad))
        return o.conv(y, b, channels_last=True, strides=(2, 2), padding=pad)
    graph = trace(model, [TensorType(dtypes.float32, (1, 20, 20, 3))], ["x"])
    fast = rules_of("fast")
    module = passes.run(Module(graph, ("y",)), supply={"target": vectors("native"), "rules": fast})
    kinds = [n.op.name for n in module.graph.nodes if n.op.name not in ("constant", "pad")]
    assert kinds.count("conv_bf16") == 2 and not any("pack" in k for k in kinds)
    x = rng.standard_normal((1, 20, 20, 3)).astype(np.float32)
    (got,) = graphtool.load(build(module, tmp_path / "b"))(x=x).values()
    want = np.asarray(model(x.astype(np.float64)))
    assert np.sqrt(np.mean((got - want) ** 2) / np.mean(want ** 2)) < 1e-2
