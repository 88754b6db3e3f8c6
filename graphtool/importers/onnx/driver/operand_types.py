"""Checks the element types of a node's inputs and outputs against its operator's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from onnx import TensorProto

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError, listed
from graphtool.front import REFUSED
from graphtool.importers.onnx.driver.node_order import title
from graphtool.importers.onnx.driver.schemas import Operator, Parameter, latest, plain_domain
from graphtool.importers.strictness import Strictness
from graphtool.ir.trace import Tracer


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
        found = type_name(x)
        if not found or not rows:
            continue
        formal = rows[min(i, len(rows) - 1)]
        name = node.input[i] if i < len(node.input) else formal.name
        if not _allows(formal, found):
            newer = latest(plain_domain(node.domain), node.op_type)
            _judge(strictness, newer.inputs if newer else (), i, found, InputError(
                "GT1019", f"the input {formal.name} of {node.op_type} is {found} ({name!r})",
                where=title(node), hint=f"opset {known.since} allows "
                                        f"{listed(sorted(formal.types), 20)}"))
        if formal.varied:
            continue
        other, first = bound.setdefault(formal.kind, (found, name))
        if other != found:
            raise InputError("GT1019", f"{node.op_type} takes inputs of one type, {first!r} is "
                                       f"{other} and {name!r} is {found}", where=title(node))


def _allows(formal: Parameter, found: str) -> bool:
    return found in formal.types or f"optional({found})" in formal.types


def _judge(strictness: Strictness, newer: Sequence[Parameter], i: int, found: str,
           error: InputError) -> None:
    """Take a type that newer opsets allow in this place, and perhaps one of its kind. Raises the
    error for others."""
    formal = newer[min(i, len(newer) - 1)] if newer else None
    if formal and _allows(formal, found):
        strictness.clear(error, "read as in newer opsets, which allow it")
    elif formal and _kind(found) in map(_kind, formal.types):
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
        found = type_name(x)
        if formal and found and not _allows(formal, found) and not all(
                "map(" in t for t in formal.types):
            newer = latest(plain_domain(node.domain), node.op_type)
            _judge(strictness, newer.outputs if newer else (), i, found, InputError(
                "GT1019", f"the output {formal.name} of {node.op_type} is {found}, which opset "
                          f"{known.since} does not allow", where=title(node)))


def check_results(node: Any, results: Sequence[Any], declared: Mapping[str, DType],
                  strictness: Strictness) -> None:
    """Check the types of the outputs against those that the model declares.

    Raises InputError GT1019, where `strictness` does not take it.
    """
    for name, x in zip(node.output, results, strict=False):
        if isinstance(x, Tracer) and declared.get(name, x.dtype) is not x.dtype:
            strictness.guessed(InputError(
                "GT1019", f"the model declares {name!r} as {_onnx_name(declared[name])}, "
                          f"{node.op_type} gives {_onnx_name(x.dtype)}", where=title(node)),
                "what it gives counts")
