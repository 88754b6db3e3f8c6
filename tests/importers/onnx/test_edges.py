"""ONNX's operators of one and two operands at the edges of number types, beside onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from graphtool import interp
from graphtool.dtypes import BY_NAME
from graphtool.importers.onnx import import_model
from tests import edges
from tests.cases import INTEGERS
from tests.lab.fuzz.oracle import answer
from tests.lab.fuzz.quirks import Use, quirk
from tests.test_edges import apart

Array = np.ndarray[Any, Any]
Call = tuple[str, dict[str, Any], list[Array]]  # an operator, its attributes and operands
BINARY = """Add Sub Mul Div Mod Max Min Equal Less LessOrEqual Greater GreaterOrEqual BitwiseAnd
BitwiseOr BitwiseXor BitShift PRelu Sum Mean Pow And Or Xor"""
UNARY = """Abs Neg Sign BitwiseNot Relu Floor Ceil Round Sqrt Exp Log Sin Cos Tan Asin Acos Atan
Sinh Cosh Tanh Asinh Acosh Atanh Erf Sigmoid Reciprocal Softplus Softsign Elu Selu Celu LeakyRelu
HardSigmoid HardSwish Mish ThresholdedRelu IsNaN IsInf Identity Not Gelu Swish Shrink NonZero Unique
Softmax LogSoftmax Hardmax DynamicQuantizeLinear ArgMax ArgMin Clip"""
REDUCTIONS = """ReduceSum ReduceProd ReduceMax ReduceMin ReduceMean ReduceL1 ReduceL2 ReduceLogSum
ReduceLogSumExp ReduceSumSquare"""
OF_ROWS = """Softmax LogSoftmax Hardmax ArgMax ArgMin LpNormalization Trilu Transpose GlobalMaxPool
GlobalAveragePool"""
TYPES = (*INTEGERS, "bool", "f16", "f32", "f64")
CODES = {n: helper.np_dtype_to_tensor_dtype(BY_NAME[n].numpy) for n in (*TYPES, "bf16")}


def calls(x: Array) -> Iterator[Call]:
    """Every operator with its attributes and operands, numbers of x."""
    yield from binary(x)
    yield from unary(x)
    yield from of_rows(np.stack([np.roll(x, -i)[:3] for i in range(len(x))]))


def binary(x: Array) -> Iterator[Call]:
    """The operators of two operands, each number beside each."""
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
            yield op, {**more}, [a[keep], b[keep]]
    if whole:
        keep = (b != 0) & ~((b == -1 if x.dtype.kind == "i" else False) & (a == x.min()))
        yield "Mod", {"fmod": 1}, [a[keep], b[keep]]
    yield "Where", {}, [np.arange(len(a)) % 3 > 0, a, b]
    yield "CastLike", {}, [np.arange(-9, 9, dtype=np.float32), x]
    known = np.sort(x[x == x])
    for least in known[[0, len(known) // 2]]:
        yield "Clip", {}, [x, least, known[-1]]
        yield "Clip", {}, [x, least]
    yield "MatMul", {}, [x[:, None], x[None]]
    yield "Expand", {}, [x, np.array([2, len(x)])]


def unary(x: Array) -> Iterator[Call]:
    """The operators of one operand."""
    for op in UNARY.split():
        # onnxruntime's float64 gives 0 from −100 on
        yield op, {}, [x[~(x < -99)] if op in ("Sigmoid", "Swish") else x]
    for more in ({"detect_negative": 0}, {"detect_positive": 0}):
        yield "IsInf", more, [x]
    # numbers beyond integer types, and NaN, become others on other processors (docs/numerics.md)
    inside = x[np.abs(x.astype(np.float64)) < 2e9] if x.dtype.kind == "f" else x
    for name, to in CODES.items():
        yield "Cast", {"to": to}, [inside if BY_NAME[name].is_integer else x]
    for more in ({}, {"exclusive": 1}, {"reverse": 1}):
        yield "CumSum", more, [x, np.array(0)]
    for largest in (0, 1):
        yield "TopK", {"largest": largest}, [x, np.array([5])]


def of_rows(rows: Array) -> Iterator[Call]:
    """Reductions and norms, three numbers a row."""
    for op in REDUCTIONS.split():
        yield op, {"keepdims": 0}, [rows, np.array([1])]
    for op in OF_ROWS.split():
        yield op, {}, [rows[None] if op.startswith("Global") else rows]
    for more in ({"select_last_index": 1}, {"axis": 1, "select_last_index": 1}, {"axis": 1}):
        yield "ArgMax", more, [rows]
        yield "ArgMin", more, [rows]
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield op, {"kernel_shape": [2]}, [rows[None]]


RESULTS = {"TopK": 2, "DynamicQuantizeLinear": 3}


def model(call: Call) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The model of a call, and its inputs."""
    op, attrs, operands = call
    inputs = {f"x{i}": np.asarray(v) for i, v in enumerate(operands)}
    infos = [helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
             for k, v in inputs.items()]
    outputs = [f"y{i}" for i in range(RESULTS.get(op, 1))]
    graph = helper.make_graph([helper.make_node(op, list(inputs), outputs, **attrs)], "g", infos,
                              [onnx.ValueInfoProto(name=name) for name in outputs])
    version = 24 if op == "Swish" else 20
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)],
                             ir_version=9), inputs


def wrong(call: Call, roundings: int) -> str | None:
    """How a call differs from onnxruntime without a known reason: "" if it does not, None where
    onnxruntime has no kernel for the type."""
    made, inputs = model(call)
    refused, want = answer(made.SerializeToString(), inputs)
    if refused:
        return None
    with np.errstate(all="ignore"):
        got = interp.run(import_model(made), inputs)
    whys = [why for name, x in got.items() if (why := apart(x, want[name], roundings))]
    if not whys or quirk(Use(made.graph.node[0], inputs)):
        return ""
    return f"{call[0]} {call[1]}: {whys[0]}"


@pytest.mark.parametrize("name", TYPES)
def test_operators_are_onnxruntimes(name: str) -> None:
    """Floats also without infinity and NaN, where fewer differences have a reason."""
    dtype = BY_NAME[name]
    x = (edges.floats(dtype) if dtype.is_float else np.array([False, True]) if name == "bool" else
         np.array(edges.integers(dtype), dtype.numpy))
    finite = [x[np.isfinite(x)]] if dtype.is_float else []
    found = [wrong(call, 2 if dtype.is_narrow else 256)
             for numbers in (x, *finite) for call in calls(numbers)]
    assert [why for why in found if why] == []
    assert sum(why is not None for why in found) > 20
