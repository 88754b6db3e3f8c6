"""What the specification demands of a node's inputs, though our ops do not: element types, shapes,
values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError, listed
from graphtool.front import REFUSED
from graphtool.importers.limits import Strictness
from graphtool.importers.onnx.driver.node_order import title
from graphtool.importers.onnx.driver.schemas import FormalParameter, Operator, latest, plain_domain
from graphtool.importers.onnx.driver.values import array_of
from graphtool.io.weights import Array
from graphtool.ir.trace import Tracer


@dataclass(frozen=True)
class OperatorCall:
    """A node's inputs, attributes, number of outputs, and the opset version of its domain."""

    inputs: Sequence[Any]
    attrs: Mapping[str, Any]
    outputs: int
    opset: int

    def shape(self, i: int) -> tuple[Any, ...] | None:
        """The shape of an input; None without one."""
        x = self.inputs[i] if i < len(self.inputs) else None
        return tuple(x.shape) if isinstance(x, (Tracer, np.ndarray)) else None

    def numbers(self, i: int) -> Array | None:
        """The numbers of an input that is known; None if they are computed, or sizes."""
        x = array_of(self.inputs[i]) if i < len(self.inputs) else None
        return x if x is not None and x.dtype != object else None

    def axis(self, default: int, rank: int) -> int:
        """The attribute axis, counted from the start."""
        return int(self.attrs.get("axis", default)) % max(rank, 1)


Demand = Callable[[OperatorCall], str]
DEMANDS: dict[str, list[Demand]] = {}


def demand(*names: str) -> Callable[[Demand], Demand]:
    """Enter a function that says what is wrong with a call of these operators, or nothing."""
    def enter(fn: Demand) -> Demand:
        for name in names:
            DEMANDS.setdefault(name, []).append(fn)
        return fn
    return enter


def check_demands(name: str, call: OperatorCall) -> None:
    """Check a call of a standard operator. Raises ValueError that says what is wrong."""
    for fn in DEMANDS.get(name, ()):
        if wrong := fn(call):
            raise ValueError(wrong)


def _one(call: OperatorCall, i: int, what: str) -> str:
    """That an input has one element."""
    shape = call.shape(i)
    known = shape is not None and all(isinstance(d, int) for d in shape)
    return f"{what} must be one number, its shape is {shape}" if known and (
        len(shape or ()) > 1 or math.prod(shape or ()) != 1) else ""


@demand("Transpose")
def _all_axes(call: OperatorCall) -> str:
    perm, shape = call.attrs.get("perm"), call.shape(0)
    return f"perm {tuple(perm)} must name all {len(shape)} axes" if perm and shape is not None \
        and len(perm) != len(shape) else ""


@demand("Split")
def _a_size_for_each_output(call: OperatorCall) -> str:
    sizes, count = call.shape(1), call.attrs.get("num_outputs", call.outputs)
    listed = call.attrs.get("split")
    parts = len(listed) if listed else sizes[0] if sizes else count
    return f"{parts} parts are given for {call.outputs} outputs" if isinstance(parts, int) and (
        parts != call.outputs) else ""


@demand("GatherElements", "ScatterElements", "Scatter")
def _indices_inside(call: OperatorCall) -> str:
    x, index = call.shape(0), call.shape(1)
    if x is None or index is None or len(x) != len(index):
        return ""
    axis = call.axis(0, len(x))
    far = [a for a, (d, i) in enumerate(zip(x, index, strict=True))
           if a != axis and isinstance(d, int) and isinstance(i, int) and i > d]
    return f"the indices {index} reach beyond the data {x} on axis {far[0]}" if far else ""


@demand("Gemm")
def _a_bias_of_a_matrix(call: OperatorCall) -> str:
    bias = call.shape(2)
    return f"C must be a matrix, a row or a number, its shape is {bias}" if bias is not None and (
        len(bias) > 2) else ""


@demand("Mod")
def _a_float_needs_fmod(call: OperatorCall) -> str:
    floats = call.inputs[0].dtype.is_float
    return "floats need fmod=1" if floats and not call.attrs.get("fmod") and call.opset < 28 else ""


@demand("Clip")
def _bounds_are_numbers(call: OperatorCall) -> str:
    return _one(call, 1, "min") or _one(call, 2, "max")


@demand("OneHot")
def _two_values(call: OperatorCall) -> str:
    shape = call.shape(2)
    return f"values must be off and on, their shape is {shape}" if shape is not None and (
        len(shape) != 1 or (isinstance(shape[0], int) and shape[0] != 2)) else _one(
            call, 1, "the depth")


@demand("TopK")
def _one_k(call: OperatorCall) -> str:
    return _one(call, 1, "k")


@demand("EyeLike")
def _a_matrix(call: OperatorCall) -> str:
    shape = call.shape(0)
    return f"the input must be a matrix, its shape is {shape}" if shape and len(shape) != 2 else ""


@demand("Einsum")
def _letters(call: OperatorCall) -> str:
    text = call.attrs.get("equation", "")
    wrong = re.sub(r"[A-Za-z,\s]|\.\.\.|->", "", text)
    return f"the equation {text!r} has {wrong[0]!r}" if wrong else ""


@demand("Pad")
def _pads(call: OperatorCall) -> str:
    axes, pads, shape = call.numbers(3), call.numbers(1), call.shape(0)
    if axes is not None and shape is not None and len({int(a) % max(len(shape), 1)
                                                      for a in axes.ravel()}) < axes.size:
        return f"an axis is named twice: {axes.tolist()}"
    if pads is None or shape is None or (axes is None and pads.size != 2 * len(shape)):
        return ""
    at = range(len(shape)) if axes is None else [int(a) for a in axes.ravel()]
    half = pads.size // 2
    short = [a for a, lo, hi in zip(at, pads[:half], pads[half:], strict=False)
             if isinstance(shape[a], int) and shape[a] + int(lo) + int(hi) < 0]
    return f"axis {short[0]} would have a negative size" if short else ""


@demand("LRN")
def _a_size(call: OperatorCall) -> str:
    return "size must be 1 or more" if call.attrs.get("size", 1) < 1 else ""


@demand("AveragePool", "MaxPool", "LpPool")
def _pads_of_pools(call: OperatorCall) -> str:
    return "pads cannot be negative" if any(p < 0 for p in call.attrs.get("pads") or ()) else ""


@demand("ConvTranspose")
def _output_padding(call: OperatorCall) -> str:
    extra = call.attrs.get("output_padding") or ()
    strides, dilations = (call.attrs.get(n) or (1,) * len(extra) for n in ("strides", "dilations"))
    wrong = any(e < 0 or e >= max(s, d) for e, s, d in zip(extra, strides, dilations, strict=False))
    return f"output_padding {tuple(extra)} must be 0 or more, and less than the stride or the " \
           "dilation" if wrong else ""


@demand("QuantizeLinear", "DequantizeLinear")
def _blocks(call: OperatorCall) -> str:
    block, x, scale = call.attrs.get("block_size", 0), call.shape(0), call.shape(1)
    if not block or x is None or scale is None:
        return ""
    axis = call.axis(1, len(x))
    want = tuple(-(-d // block) if a == axis and isinstance(d, int) else d
                 for a, d in enumerate(x))
    apart = len(want) != len(scale) or any(
        isinstance(d, int) and isinstance(s, int) and d != s
        for d, s in zip(want, scale, strict=True))
    return f"blocks of {block} need scales of shape {want}, theirs is {scale}" if apart else ""


@demand("Resize", "Upsample")
def _positive_scales(call: OperatorCall) -> str:
    at = 2 if len(call.inputs) > 2 else 1
    scales = call.numbers(at) if len(call.inputs) > 1 else np.asarray(
        call.attrs.get("scales", ()), np.float64)
    return f"scales must be above 0: {scales.tolist()}" if scales is not None and (
        scales.size and not (scales > 0).all()) else ""


@demand("Scan")
def _directions(call: OperatorCall) -> str:
    given = [d for n in ("scan_input_directions", "scan_output_directions", "directions")
             for d in call.attrs.get(n) or ()]
    wrong = [d for d in given if d not in (0, 1)]
    return f"a direction is 0 or 1, not {wrong[0]}" if wrong else ""


@demand("DFT")
def _real_or_complex(call: OperatorCall) -> str:
    shape = call.shape(0)
    last = shape[-1] if shape else None
    if isinstance(last, int) and last not in (1, 2):
        return f"the last axis holds 1 (real) or 2 numbers (complex), not {last}"
    one = call.attrs.get("onesided") and not call.attrs.get("inverse")
    return "a one-sided transform needs real numbers" if one and last == 2 else ""


@demand("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _a_weight_for_each_class(call: OperatorCall) -> str:
    x, weight = call.shape(0), call.shape(2)
    if x is None or weight is None or len(x) < 2:
        return ""
    wrong = len(weight) != 1 or (isinstance(x[1], int) and isinstance(weight[0], int)
                                 and x[1] != weight[0])
    return f"{x[1]} classes need {x[1]} weights, their shape is {weight}" if wrong else ""


# ---- element types ------------------------------------------------------------------------------

@cache
def _onnx_name(dtype: DType) -> str:
    """The dtype's name in ONNX, as in `float`, `int64`."""
    return str(TensorProto.DataType.Name(dtype.onnx).lower())


def type_name(x: Any) -> str:
    """The ONNX type of a value, as in `tensor(float)`, `seq(tensor(int64))`; "" if unknown."""
    if isinstance(x, Tracer):
        return f"tensor({_onnx_name(x.dtype)})"
    if isinstance(x, tuple) and x and x is not REFUSED:
        inner = type_name(x[0])
        return f"seq({inner})" if inner else ""
    return ""


def check_operands(node: Any, known: Operator, inputs: Sequence[Any],
                   strictness: Strictness) -> None:
    """Check that the schema allows the types of the inputs, and that equal type names agree.

    Raises InputError GT1019, where `strictness` does not take it.
    """
    bound: dict[str, tuple[str, str]] = {}
    rows = known.inputs
    for i, x in enumerate(inputs):
        type_ = type_name(x)
        if not type_ or not rows:
            continue
        formal = rows[min(i, len(rows) - 1)]
        name = node.input[i] if i < len(node.input) else formal.name
        if not _allows(formal, type_):
            newer = latest(plain_domain(node.domain), node.op_type)
            _judge(strictness, newer.inputs if newer else (), i, type_, InputError(
                "GT1019", f"the input {formal.name} of {node.op_type} is {type_} ({name!r})",
                where=title(node), hint=f"opset {known.since} allows "
                                        f"{listed(sorted(formal.types), 20)}"))
        if formal.varied:
            continue
        other, first = bound.setdefault(formal.kind, (type_, name))
        if other != type_:
            raise InputError("GT1019", f"{node.op_type} takes inputs of one type, {first!r} is "
                                       f"{other} and {name!r} is {type_}", where=title(node))


def _allows(formal: FormalParameter, type_: str) -> bool:
    return type_ in formal.types or f"optional({type_})" in formal.types


def _judge(strictness: Strictness, newer: Sequence[FormalParameter], i: int, type_: str,
           error: InputError) -> None:
    """Take a type that newer opsets allow in this place, and perhaps one of its kind. Raises the
    error for others."""
    formal = newer[min(i, len(newer) - 1)] if newer else None
    if formal and _allows(formal, type_):
        strictness.clear(error, "read as in newer opsets, which allow it")
    elif formal and _kind(type_) in map(_kind, formal.types):
        strictness.guessed(error, "computed in this type")
    else:
        raise error


def _kind(type: str) -> str:
    """`tensor(int)` of `tensor(int64)`, `tensor(float)` of `tensor(double)`."""
    return re.sub(r"b?float|double", "float", re.sub(r"\d|u(?=int)", "", type))


def declared_types(graph: Any) -> dict[str, DType]:
    """The element type of each tensor that the model declares, by the value's name."""
    out = {}
    for info in (*graph.value_info, *graph.output):
        if info.type.WhichOneof("value") == "tensor_type":
            row = dtypes.BY_ONNX.get(info.type.tensor_type.elem_type)
            if row is not None:
                out[info.name] = row
    return out


def check_outputs(node: Any, known: Operator, results: Sequence[Any],
                  strictness: Strictness) -> None:
    """Check that the schema allows the types of the outputs; a map is a tensor of its values.

    Raises InputError GT1019, where `strictness` does not take it."""
    for i, x in enumerate(results[:len(node.output)]):
        formal = known.outputs[min(i, len(known.outputs) - 1)] if known.outputs else None
        type_ = type_name(x)
        if formal and type_ and not _allows(formal, type_) and not all(
                "map(" in t for t in formal.types):
            newer = latest(plain_domain(node.domain), node.op_type)
            _judge(strictness, newer.outputs if newer else (), i, type_, InputError(
                "GT1019", f"the output {formal.name} of {node.op_type} is {type_}, which opset "
                          f"{known.since} does not allow", where=title(node)))


def check_results(node: Any, results: Sequence[Any], declared: Mapping[str, DType],
                  strictness: Strictness) -> None:
    """Check the types of the outputs against the declared types.

    Raises InputError GT1019, where `strictness` does not take it.
    """
    for name, x in zip(node.output, results, strict=False):
        if isinstance(x, Tracer) and declared.get(name, x.dtype) is not x.dtype:
            strictness.guessed(InputError(
                "GT1019", f"the model declares {name!r} as {_onnx_name(declared[name])}, "
                          f"{node.op_type} gives {_onnx_name(x.dtype)}", where=title(node)),
                "what it gives counts")
