"""Sequences and optionals. A sequence of known length is a Python tuple, any other is a `Rows`."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.computed import known_element
from graphtool.importers.onnx.families import sequence_rows
from graphtool.importers.onnx.families.sequence_rows import SequenceRows
from graphtool.importers.onnx.families.slices import parts
from graphtool.importers.onnx.kit import Refused, Tracer, array_of, axis_of, dims, ints, o, onnx_op


def _open(xs: Any, i: Any) -> bool:
    """Whether the length or the position is computed at run time."""
    return isinstance(xs, SequenceRows) or (
        isinstance(i, Tracer) and array_of(i) is None and known_element(i, 0) is None)


def _rows(xs: Any, i: Any) -> SequenceRows:
    return xs if isinstance(xs, SequenceRows) else sequence_rows.of_tuple(xs, None, 0, i.builder)


def _position(i: Any, length: int) -> int:
    at = ints(i, "the position")[0]
    if not -length <= at <= length:
        raise ValueError(f"position {at} is not in a sequence of {length} elements")
    return at + length if at < 0 else at


@onnx_op("SequenceConstruct", sequences=True)
def construct(*xs: Any) -> Any:
    """The inputs as a tuple."""
    return xs


@onnx_op("SequenceEmpty", sequences=True)
def empty(*, dtype: int = 1) -> Any:
    """The empty tuple."""
    return ()


@onnx_op("SequenceLength", sequences=True)
def length(xs: Any) -> Any:
    """The length, as a constant for a tuple and as an int64 scalar for `Rows`."""
    return xs.count if isinstance(xs, SequenceRows) else np.asarray(len(xs), np.int64)


@onnx_op("SequenceAt", sequences=True)
def at(xs: Any, i: Any) -> Any:
    """The element at a position: of the tuple, or a `gather` from the table."""
    return sequence_rows.at(_rows(xs, i), i) if _open(xs, i) else xs[_position(i, len(xs))]


@onnx_op("SequenceInsert", sequences=True)
def insert(xs: Any, x: Any, i: Any = None) -> Any:
    """The sequence with x in front of a position, or at its end."""
    if _open(xs, i):
        return sequence_rows.insert(_rows(xs, i), x, i)
    where = len(xs) if i is None else _position(i, len(xs))
    return (*xs[:where], x, *xs[where:])


@onnx_op("SequenceErase", sequences=True)
def erase(xs: Any, i: Any = None) -> Any:
    """The sequence without the element at a position, or without its last one."""
    if _open(xs, i):
        return sequence_rows.erase(_rows(xs, i), i)
    where = len(xs) - 1 if i is None else _position(i, len(xs))
    return (*xs[:where], *xs[where + 1:])


@onnx_op("ConcatFromSequence", sequences=True)
def concat(xs: Any, *, axis: int, new_axis: int = 0) -> Any:
    """All elements joined along an axis, as `concat`; for `Rows` as a view of the table."""
    if isinstance(xs, SequenceRows):
        return sequence_rows.joined(xs, axis, new_axis)
    if not xs:
        raise Refused("joining an empty sequence is not supported, because its element type is "
                      "not known")
    if new_axis:
        where = axis_of(axis, xs[0].ndim + 1)
        xs = [x.reshape((*x.shape[:where], 1, *x.shape[where:])) for x in xs]
    return o.concat(*xs, axis=axis_of(axis, xs[0].ndim)) if len(xs) > 1 else xs[0]


@onnx_op("SplitToSequence", sequences=True)
def split(x: Any, sizes: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    """Slices of x along an axis, as a tuple; as `Rows` if their number is symbolic."""
    where = axis_of(axis, x.ndim)
    d = x.shape[where]
    if not isinstance(d, int) and sizes is None:
        return sequence_rows.cut(x, where, keepdims)
    if not isinstance(d, int) and not sizes.shape:
        raise Refused("splitting a symbolic size into parts of one size is not supported; fix "
                      "that size with --dynamic NAME=SIZE")
    if sizes is None:
        out = parts(x, where, (1,) * d, d)
        if not keepdims:
            out = [p.reshape((*x.shape[:where], *x.shape[where + 1:])) for p in out]
        return tuple(out)
    each = dims(sizes, "the split sizes", 0, d)
    if not sizes.shape:  # chunks of this size, the last as small as it comes
        n = ints(sizes, "the chunk size")[0]
        each = (n,) * (d // n) + ((d % n,) if d % n else ())
    return tuple(parts(x, where, each, len(each)))


@onnx_op("SequenceMap", fold=False, sequences=True)
def sequence_map(xs: Any, *more: Any, body: Any, ctx: Any) -> Any:
    """The body applied to each element. Other sequences are traversed in parallel; tensors are
    passed to each call."""
    if any(isinstance(m, SequenceRows) for m in (xs, *more)):
        raise Refused("SequenceMap over a sequence of computed length is not supported; write it "
                      "as a Loop")
    mapped = [ctx.subgraph(body, (x, *(m[i] if isinstance(m, tuple) else m for m in more)),
                           f"{ctx.node.output[0]}.{i}") for i, x in enumerate(xs)]
    return [tuple(column) for column in zip(*mapped, strict=True)]


# ---- optionals: a value or None ----------------------------------------------------------------

@onnx_op("Optional", sequences=True)
def optional(x: Any = None, *, type: Any = None) -> Any:
    """x itself; None is the empty optional."""
    return x


@onnx_op("OptionalHasElement", sequences=True)
def has_element(x: Any = None) -> Any:
    """Whether the optional holds a value, as a constant."""
    return np.asarray(x is not None)


@onnx_op("OptionalGetElement", sequences=True)
def get_element(x: Any) -> Any:
    """The value of an optional. Raises ValueError if it is empty."""
    if x is None:
        raise ValueError("an empty optional has no element")
    return x
