"""tabulate: C has the evaluator's bits, beside kernels of bytes too; see tabulate/*.txt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, symbol
from tests.passes.test_integer import FILTERS, SCALES, again, quantised, real, weights

RNG = np.random.default_rng(3)
BYTES = {dtypes.uint8: np.arange(0, 256), dtypes.int8: np.arange(-128, 128)}




def names(module: Module) -> list[str]:
    return [n.op.name for n in module.graph.nodes]


Arrays = dict[str, np.ndarray[Any, Any]]


def check(module: Module, xs: Arrays, folder: Path) -> np.ndarray[Any, Any]:
    """What C computes, which are the evaluator's bits after the passes."""
    after = passes.run(module, supply={"march": "native"})
    assert names(after).count("gather") == 1
    assert not {"erf", "exp", "sigmoid"} & set(names(after))
    (want,) = interp.run(after, xs).values()
    (got,) = graphtool.load(build(after, folder))(**xs).values()
    np.testing.assert_array_equal(got, want)
    return got


@pytest.mark.parametrize("byte", BYTES, ids=str)
@pytest.mark.parametrize("result", [*BYTES, dtypes.float32], ids=str)
def test_every_byte(byte: dtypes.DType, result: dtypes.DType, tmp_path: Path) -> None:
    def whole(q: Any) -> Any:
        x = real(q, 0.03, 9)
        y = o.exp(o.erf(x)) * o.sigmoid(x)
        return y if result.is_float else o.cast(
            o.round(y / 0.01) - 100.0, dtype=result, saturate=True)
    module = Module(trace(whole, [TensorType(byte, (3, 256))], ["q"]), ("y",))
    q = np.stack([RNG.permutation(BYTES[byte]) for _ in range(3)]).astype(byte.numpy)
    got = check(module, {"q": q}, tmp_path / "b")
    np.testing.assert_array_equal(got, interp.run(module, {"q": q})["y"])
    assert "range" not in (tmp_path / "b" / "build.json").read_text(), "no byte is out of range"


def test_after_a_convolution_of_bytes(tmp_path: Path) -> None:
    """The table is read in the order of axes in which the convolution leaves its bytes."""
    def whole(x: Any) -> Any:
        filters = weights(x, FILTERS, SCALES[:5].reshape(5, 1, 1, 1))
        q = quantised(o.conv(again(x), filters), 0.05, 128)
        gate = quantised(o.sigmoid(real(q, 0.05, 128)), 1 / 255, 0)
        return real(quantised(real(q, 0.05, 128) * real(gate, 1 / 255), 0.03, 9), 0.03, 9)
    module = Module(trace(whole, [TensorType(dtypes.float32, (2, 6, 17, 17))], ["x"]), ("y",))
    x = RNG.standard_normal((2, 6, 17, 17)).astype(np.float32)
    got = check(module, {"x": x}, tmp_path / "b")
    np.testing.assert_allclose(got, interp.run(module, {"x": x})["y"], atol=0.0601)


def test_an_open_size(tmp_path: Path) -> None:
    n = symbol("N", 0, 5000)
    module = Module(trace(lambda q: o.exp(o.erf(real(q, 0.03, 9))),
                          [TensorType(dtypes.uint8, (n,))], ["q"]), ("y",),
                    {"N": Symbol("N", 0, 5000)})
    for size in (0, 3, 4097):
        q = RNG.integers(0, 256, size).astype(np.uint8)
        got = check(module, {"q": q}, tmp_path / f"b{size}")
        np.testing.assert_array_equal(got, interp.run(module, {"q": q})["y"])


def test_numbers_that_training_changes_are_no_constants() -> None:
    def whole(q: Any) -> Any:
        step = q.builder.constant(np.float32(0.03), "step", True)
        return o.exp(o.erf(o.cast(q, dtype=dtypes.float32) * step))
    module = Module(trace(whole, [TensorType(dtypes.uint8, (3, 256))], ["q"]), ("y",))
    assert passes.run(module, "tabulate").graph is module.graph
