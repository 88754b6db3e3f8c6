"""Sequences that a loop carries, as tensors: a table of fixed size and the number of used rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.computed import Recorder
from graphtool.importers.onnx.driver.context import region
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.importers.onnx.families import sequence_rows
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim

_STEP, _FLAG = TensorType(dtypes.int64, ()), TensorType(dtypes.bool_, ())


def insertions(body: Any) -> int:
    """How often one iteration of the loop can insert into a sequence, at most."""
    total = 0
    for node in body.node:
        inner = [a.g for a in node.attribute if a.HasField("g")]
        here = sum(map(insertions, inner))
        if here and node.op_type in ("Loop", "Scan"):
            raise Refused("a nested loop that inserts into a sequence of computed length is not "
                          "supported")
        total += here + (node.op_type == "SequenceInsert")
    return total


def slot(ctx: Any, body: Any, i: int, x: Any, room: Dim, label: str, carried: Sequence[Any]) -> Any:
    """What the loop carries for its i-th value: a tensor as it is, a sequence with `room` more
    rows."""
    if isinstance(x, SequenceRows):
        return replace(sequence_rows.wider(x, room), carried=True)
    if not isinstance(x, tuple):
        if not isinstance(x, Tracer):
            raise Refused("an optional in a loop whose trip count is computed is not supported")
        return x
    kind = None if x else _declared(body.input[2 + i]) or _inserted(ctx, body, i, label, carried)
    return replace(sequence_rows.of_tuple(x, kind, room, ctx.builder), carried=True)


def _declared(info: Any) -> TensorType | None:
    """The type of a sequence's elements if the body declares it completely, else None."""
    kind = info.type.sequence_type.elem_type.tensor_type
    known = kind.HasField("shape") and all(d.HasField("dim_value") for d in kind.shape.dim)
    return TensorType(element_type(kind.elem_type), tuple(
        int(d.dim_value) for d in kind.shape.dim)) if kind.elem_type and known else None


def _inserted(ctx: Any, body: Any, i: int, label: str, carried: Sequence[Any]) -> TensorType:
    """The type of the tensors that an iteration inserts into a sequence that is empty at first.

    To find it, one iteration is traced with the empty sequence and discarded.
    """
    types: list[TensorType] = []
    known = [x for x in carried if isinstance(x, Tracer)]

    def pack(inputs: list[Any]) -> list[Any]:
        rest: Iterator[Any] = iter(inputs[2:])
        return [*inputs[:2], *(next(rest) if isinstance(x, Tracer) else x for x in carried)]

    def unpack(results: list[Any]) -> list[Any]:
        result = results[1 + i]
        types.extend(x.type for x in (result if isinstance(result, tuple) else ()))
        return [x for x in results if isinstance(x, Tracer)]
    inner = region(ctx, body, [_STEP, _FLAG, *(x.type for x in known)], label, pack, unpack)
    if not types:
        raise Refused("the element type of this sequence of computed length is not known; "
                      "declare it in the model")
    if any(inner.own(d) for d in types[0].shape):
        raise Refused("a sequence whose element size is computed in each iteration is not "
                      f"supported: {types[0]}")
    return types[0]


def flattened(xs: Sequence[Any]) -> list[Any]:
    """The tensors that these values consist of."""
    return [part for x in xs
            for part in ((x.table, x.count) if isinstance(x, SequenceRows) else (x,))]


def rebuilt(slots: Sequence[Any], parts: Sequence[Any], carried: bool) -> list[Any]:
    """The values of these slots, made from their tensors."""
    rest = iter(parts)
    return [SequenceRows(next(rest), next(rest), carried) if isinstance(s, SequenceRows)
            else next(rest) for s in slots]


def check_room(x: Any) -> None:
    """Add a check that fails at run time if a sequence holds more elements than its table."""
    if isinstance(x, SequenceRows):
        builder = x.count.builder
        assert isinstance(builder, Recorder)
        size, most = builder.fresh(0, x.room)
        builder.emit(o.size, (x.count,), {"size": size, "most": most, "checked": True})
