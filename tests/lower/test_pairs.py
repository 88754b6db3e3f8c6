"""Products in bfloat16: packed by pairs, against the evaluator and float64."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphtool import api, dtypes, interp, passes
from graphtool import ops as o
from graphtool.build import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.loops import interp as loops
from graphtool.lower import lower
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from tests.emit.test_strict import strict

BF16 = dtypes.bfloat16
SHAPES: dict[str, Any] = {  # operands, attributes
    "plain": ((6, 32), (32, 48), {}), "odd": ((5, 7), (7, 33), {}),
    "rows": ((29, 64), (64, 40), {}), "one": ((4, 18), (18, 16), {}),
    "transposed": ((6, 24), (40, 24), {"transpose_b": True}),
    "across": ((30, 12), (30, 20), {"transpose_a": True}),
    "across odd": ((31, 12), (31, 20), {"transpose_a": True}),
    "batch": ((3, 2, 9, 10), (3, 2, 10, 24), {}), "shared": ((3, 5, 10), (10, 24), {}),
    "wide": ((4, 5), (5, 300), {})}


def product(name: str, march: str = "native") -> tuple[Module, dict[str, Any]]:
    """A product with an epilogue, ready to lower; and operands."""
    a, b, attrs = SHAPES[name]
    graph = trace(lambda x, w: o.relu(o.matmul(x, w, **attrs)) + 1.0,
                  [TensorType(BF16, a), TensorType(BF16, b)], ["x", "w"])
    module = passes.run(Module(graph, ("y",)), supply={"target": named(march)})
    assert [n for n in module.graph.nodes if n.op.name == "matmul_bf16"]
    rng = np.random.default_rng(0)
    return module, {k: rng.standard_normal(s).astype(ml_dtypes.bfloat16)
                    for k, s in (("x", a), ("w", b))}


@pytest.mark.parametrize("march", ["native", "x86-64-v3", "generic"])
@pytest.mark.parametrize("name", SHAPES)
def test_equal_to_float64(name: str, march: str, tmp_path: Path) -> None:
    module, xs = product(name, march)
    built = api.load(build(module, tmp_path / "b", target=named(march)))
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
    assert [x for x in module.graph.nodes if x.op.name == "matmul_bf16"]
    built = api.load(build(module, tmp_path / "b"))
    for size in (1, 2, 7, 40):
        x, w = (np.random.default_rng(size).standard_normal((size, k)).astype(ml_dtypes.bfloat16)
                for k in (12, 32))
        (got,) = built(x=x, w=w).values()
        want = x.astype(np.float64).T @ w.astype(np.float64)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("cc", "march"), [("gcc", "x86-64-v3"), ("clang", "x86-64-v3"),
                                           ("gcc", "x86-64-v4"), ("clang", "x86-64-v4")])
@pytest.mark.parametrize("bf16", [False, True])
def test_no_warnings(cc: str, march: str, bf16: bool, tmp_path: Path) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    if bf16 and march == "x86-64-v3":
        pytest.skip("the instruction is of AVX-512")
    strict(product("across odd", march)[0], tmp_path, cc, march,
           *(("-mavx512bf16",) if bf16 else ()))
