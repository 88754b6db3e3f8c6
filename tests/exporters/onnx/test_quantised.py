"""Quantised graphs as ONNX: one operator for each chain, equal results in onnxruntime."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Quantisation, dtypes, interp, passes
from graphtool import ops as o
from graphtool.importers import import_source
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from tests.exporters.onnx.running import exported, run
from tests.passes.test_quantise import CASES, examples, module

RNG = np.random.default_rng(4)


def operators(model: Any) -> Counter[str]:
    return Counter(n.op_type for n in model.graph.node)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_agrees(name: str, symmetric: bool) -> None:
    """Within the steps of the activations that are rounded on the way; most are equal."""
    xs = examples(name)
    small = graphtool.quantise(module(name), Quantisation(symmetric=symmetric), xs)
    model = exported(small)
    who, (got,) = run(model, list(xs.values()))
    (want,) = interp.run(small, xs).values()
    assert who == "onnxruntime"
    assert operators(model)["DequantizeLinear"] >= 2
    assert not {"Round", "Div", "Cast"} & operators(model).keys()
    off = np.abs(got - want) > 1e-3 * np.abs(want).max()
    assert off.mean() < 0.02
    np.testing.assert_allclose(got, want, atol=0.03 * np.abs(want).max())


@pytest.mark.parametrize(("name", "form", "operator"), [
    ("linear", "int8", "MatMulNBits"), ("linear", "int4", "MatMulNBits"),
    ("pointwise", "int4", "MatMulNBits"), ("strided", "int8", "MatMulNBits"),
    ("linear", "dynamic", "DequantizeLinear"), ("linear", "bfloat16", "Cast")])
def test_weights_only(name: str, form: str, operator: str) -> None:
    xs = examples(name)
    small = passes.run(module(name), f"quantise{{form={form}}}")
    model = exported(small)
    _, (got,) = run(model, list(xs.values()))
    (want,) = interp.run(small, xs).values()
    assert operator in operators(model)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_weights_of_transposed_convolutions_are_turned_before_they_are_real() -> None:
    """Runtimes find integer kernels only where dequantised weights go right into the product."""
    small = graphtool.quantise(module("transposed"), None, examples("transposed"))
    model = exported(small)
    made = {n.output[0]: n for n in model.graph.node}
    (node,) = (n for n in model.graph.node if n.op_type == "ConvTranspose")
    weights = made[node.input[1]]
    assert weights.op_type == "DequantizeLinear"
    assert [(a.name, a.i) for a in weights.attribute] == [("axis", 1)]


@pytest.mark.parametrize("name", ["linear", "conv", "transposed", "upsampled"])
def test_what_comes_back_is_as_quick(name: str, tmp_path: Path) -> None:
    """The exported model, imported again, has the same integer kernels and results."""
    xs = examples(name)
    small = graphtool.quantise(module(name), None, xs)
    path = tmp_path / "m.onnx"
    path.write_bytes(exported(small).SerializeToString())
    again = import_source(str(path))
    kernels = [[n.op.name for n in passes.run(m).graph.nodes
                if n.op.name.endswith(("_int", "_amx"))] for m in (small, again)]
    assert kernels[0] == kernels[1] != []
    for a, b in zip(interp.run(small, xs).values(), interp.run(again, xs).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_other_chains_are_written_op_by_op() -> None:
    """Half a zero point, a narrower clamp, another rounding: no QuantizeLinear, equal results."""
    def body(x: Any) -> Any:
        a = o.cast(o.add(o.round(o.div(x, 0.1)), 3.5), dtype=dtypes.uint8)
        b = o.cast(o.clamp(o.round(o.div(x, 0.1)), -5.0, 7.0), dtype=dtypes.int8)
        c = o.cast(o.floor(o.div(x, 0.1)), dtype=dtypes.int8)
        return a, b, c
    kind = TensorType(dtypes.float32, (4, 5))
    made = Module(trace(body, [kind], ["x"]), ("a", "b", "c"))
    x = RNG.uniform(0, 5, (4, 5)).astype(np.float32)
    model = exported(made)
    assert "QuantizeLinear" not in operators(model)
    for got, want in zip(run(model, [x])[1], interp.run(made, {"x": x}).values(), strict=True):
        np.testing.assert_array_equal(got, want)


def test_blocks_that_the_operator_lacks() -> None:
    """A block of 8 is not one of MatMulNBits: the definition is written."""
    xs = examples("linear")
    small = passes.run(module("linear"), "quantise{form=int4,block=8}")
    model = exported(small)
    assert "MatMulNBits" not in operators(model)
    _, (got,) = run(model, list(xs.values()))
    np.testing.assert_allclose(got, *interp.run(small, xs).values(), rtol=1e-4, atol=1e-4)
