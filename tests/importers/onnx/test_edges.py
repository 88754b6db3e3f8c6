"""ONNX's elementwise operators at the edges of number types, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from graphtool import interp
from graphtool.dtypes import BY_NAME
from graphtool.importers.onnx import import_model
from tests import edges
from tests.cases import INTEGERS
from tests.test_edges import apart

Array = np.ndarray[Any, Any]
BINARY = """Add Sub Mul Div Mod Max Min Equal Less LessOrEqual Greater GreaterOrEqual BitwiseAnd
BitwiseOr BitwiseXor BitShift PRelu Sum"""
UNARY = """Abs Neg Sign BitwiseNot Relu Floor Ceil Round Sqrt Exp Log Sin Cos Tan Asin Acos Atan
Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Reciprocal Softplus Softsign Elu Selu Celu LeakyRelu
HardSigmoid HardSwish Mish ThresholdedRelu IsNaN IsInf Identity"""
CASTS = [helper.np_dtype_to_tensor_dtype(BY_NAME[n].numpy) for n in (*INTEGERS, "f32", "f64")]
KIND = dict(zip(CASTS, (*INTEGERS, "f32", "f64"), strict=True))


def calls(x: Array) -> Iterator[tuple[str, dict[str, Any], list[Array]]]:
    """Every operator with its attributes and operands, numbers of x."""
    whole = x.dtype.kind in "iu"
    a, b = edges.pairs(x)
    for op in BINARY.split():
        keep = np.ones(a.shape, bool)
        if whole and op in ("Div", "Mod"):  # the others end onnxruntime's process
            keep = (b != 0) & ~((b == -1 if x.dtype.kind == "i" else False) & (a == x.min()))
        if whole and op == "BitShift":
            keep = b < 8 * x.dtype.itemsize
        if op == "Mod" and not whole:
            yield op, {"fmod": 1}, [a, b]
            continue
        for more in ({"direction": "LEFT"}, {"direction": "RIGHT"}) if op == "BitShift" else ({},):
            yield op, dict(more), [a[keep], b[keep]]
    for op in UNARY.split():
        # onnxruntime's float64 gives 0 from −100 on
        yield op, {}, [x[~(x < -99)] if op == "Sigmoid" else x]
    inside = x if whole else x[np.abs(x) < 2e9]  # beyond, and of NaN, they differ by processor
    for to in CASTS:
        yield "Cast", {"to": to}, [inside if BY_NAME[KIND[to]].is_integer else x]


def theirs(model: onnx.ModelProto, inputs: dict[str, Array]) -> Array | None:
    """onnxruntime's result; None where it has no kernel for the type."""
    how = ort.SessionOptions()
    how.log_severity_level = 4
    how.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        found: Array = ort.InferenceSession(model.SerializeToString(), how).run(None, inputs)[0]
    except Exception:  # its errors have no common base class
        return None
    return found


@pytest.mark.parametrize("name", [*INTEGERS, "f32", "f64"])
def test_operators_are_onnxruntimes(name: str) -> None:
    dtype = BY_NAME[name]
    x = edges.floats(dtype) if dtype.is_float else np.array(edges.integers(dtype), dtype.numpy)
    wrong, tried = [], 0
    for op, attrs, operands in calls(x):
        inputs = {f"x{i}": v for i, v in enumerate(operands)}
        infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
                 for k, v in inputs.items()]
        graph = helper.make_graph([helper.make_node(op, list(inputs), ["y"], **attrs)], "g", infos,
                                  [onnx.ValueInfoProto(name="y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        want = theirs(model, inputs)
        if want is None:
            continue
        tried += 1
        with np.errstate(all="ignore"):
            why = apart(interp.run(import_model(model), inputs)["y"], want)
        wrong += [f"{op} {attrs}: {why}"] if why else []
    assert wrong == []
    assert tried > 10
