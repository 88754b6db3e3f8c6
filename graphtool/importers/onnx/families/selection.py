"""Unique and NonMaxSuppression, whose number of results is known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.families.shape import iota
from graphtool.importers.onnx.kit import Refused, Tracer, axis_of, dtypes, fresh, o, onnx_op, trace
from graphtool.symbolic import Dim, product

# ---- unique ------------------------------------------------------------------------------------

_COLUMNS = 256  # rows of more elements are not compared


@onnx_op("Unique", fold=False)
def unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:
    """The distinct elements (or slices along an axis), the first position of each, the index of
    each input among them, and their counts.

    By `sort` or in the order of first appearance; the number is symbolic.
    """
    if axis is None:
        rows, rest, back = x.reshape((product(x.shape), 1)), (), (0,)
    else:
        at = axis_of(axis, x.ndim)
        front = x.transpose((at, *(a for a in range(x.ndim) if a != at)))
        rest = tuple(front.shape[1:])
        rows = front.reshape((front.shape[0], product(rest)))
        back = (*range(1, at + 1), 0, *range(at + 1, x.ndim))
    if not isinstance(rows.shape[1], int) or rows.shape[1] > _COLUMNS or rows.shape[0] == 0:
        raise Refused(f"comparing {rows.shape[0]} rows of {rows.shape[1]} elements is not "
                      f"supported; needed are 1 or more rows of {_COLUMNS} elements at most")
    kept, first, inverse, counts = _distinct(rows)
    if not sorted:
        kept, first, inverse, counts = _as_they_come(kept, first, inverse, counts)
    y = kept.reshape((kept.shape[0], *rest)).transpose(back)
    return y, first, inverse, counts


def _rows(x: Any, at: Any) -> Any:
    """x[at] along the first axis."""
    return o.gather(x, at.unsqueeze(), axes=(0,))


def _distinct(rows: Any) -> tuple[Any, Any, Any, Any]:
    """The distinct rows in rising order.

    Sorted by each column, the last first, since the sort is stable.
    """
    n, columns = rows.shape
    order = iota(rows, (n,), 0)
    for c in reversed(range(columns)):
        key = rows.take(1, c, c + 1).reshape((n,))
        _, place = o.sort(_rows(key, order), axis=0)
        order = _rows(order, place)
    ordered = _rows(rows, order)
    later, before = ordered.take(0, 1, n), ordered.take(0, 0, n - 1)
    other = o.ne(later, before)
    if rows.dtype.is_float:  # one NaN is like another
        other = other & ~(o.is_nan(later) & o.is_nan(before))
    head = rows.builder.constant(np.array([True]))
    new = o.concat(head, o.reduce_or(other, axes=(1,)).reshape((n - 1,)), axis=0)
    starts = o.nonzero(new, size=fresh(rows, n))
    which = o.cumulative(new.cast(dtypes.int64), kind="sum", axis=0) - 1
    zeros = iota(rows, (n,), 0) * 0
    inverse = o.scatter(zeros, order.reshape((n, 1)), which, axes=(0,))
    none = starts.reshape((starts.shape[0],)) * 0
    counts = o.scatter(none, which.reshape((n, 1)), zeros + 1, axes=(0,), kind="add")
    return o.gather(ordered, starts, axes=(0,)), o.gather(order, starts, axes=(0,)), inverse, \
        counts


def _as_they_come(kept: Any, first: Any, inverse: Any, counts: Any) -> tuple[Any, Any, Any, Any]:
    """The same four results in the order of first appearance."""
    u = first.shape[0]
    first, place = o.sort(first, axis=0)
    line = iota(kept, (u,), 0)
    back = o.scatter(line * 0, place.reshape((u, 1)), line, axes=(0,))
    return _rows(kept, place), first, _rows(back, inverse), _rows(counts, place)


# ---- non-maximum suppression -------------------------------------------------------------------

@onnx_op("NonMaxSuppression", fold=False)
def non_max_suppression(boxes: Any, scores: Any, most: Any = None, overlap: Any = None,
                        least: Any = None, *, center_point_box: int = 0) -> Any:
    """One row [image, class, box] for each box that is kept, i64.

    In each class of each image the boxes are visited by falling score; a box that overlaps a kept
    box too much is dropped. It is a `scan` over the ranks.
    """
    batch, classes, n = scores.shape
    ranked, order = o.sort(scores, axis=2, descending=True)
    corners = _corners(boxes, bool(center_point_box))
    mine = o.gather(corners, order.reshape((batch, product((classes, n)), 1)), axes=(1,), batch=1)
    mine = mine.reshape((batch, classes, n, 4))
    high = ranked > _scalar(least, -np.inf, ranked)
    room = _scalar(most, 0, order).cast(dtypes.int64)
    kept = _kept(mine, high, room, _scalar(overlap, 0.0, ranked))
    places = o.nonzero(kept.transpose((1, 2, 0)), size=fresh(scores, product(scores.shape)))
    box = o.gather(order, places, axes=(0, 1, 2))
    return o.concat(places.take(1, 0, 2), box.reshape((box.shape[0], 1)), axis=1)


def _scalar(x: Any, default: float, like: Any) -> Any:
    return like.number(default) if x is None else x.cast(like.dtype).reshape(())


def _corners(boxes: Any, centred: bool) -> Any:
    """Boxes as low and high corners, for either form of the input."""
    a, b = boxes.take(2, 0, 2), boxes.take(2, 2, 4)
    if centred:
        half = b * 0.5
        a, b = a - half, a + half
    return o.concat(o.min(a, b), o.max(a, b), axis=2)


def _kept(boxes: Any, high: Any, room: Any, limit: Any) -> Any:
    """bool[n, image, class]: a `scan` over the ranks. A box that is kept excludes all that it
    covers."""
    lead, n = tuple(boxes.shape[:2]), boxes.shape[2]
    out = ~high
    count = o.broadcast(room.number(0), shape=lead)
    now = room.number(0)
    operands = [now, count, out, boxes.transpose((2, 0, 1, 3)), boxes, room, limit]
    types = [x.type for x in (now, count, out)] + [
        type(boxes.type)(boxes.dtype, (*lead, 4))] + [x.type for x in (boxes, room, limit)]
    body = trace(_step(lead, n), types)
    *_, kept = o.scan(*operands, body=body, carries=3, xs=1, length=n)
    return kept


def _step(lead: tuple[Dim, ...], n: Dim) -> Any:
    def step(now: Tracer, count: Any, out: Any, box: Any, boxes: Any, room: Any,
             limit: Any) -> Any:
        gone = o.dynamic_slice(out, 0, 0, now, sizes=(*lead, 1)).reshape(lead)
        take_it = ~gone & (count < room)
        covers = _overlap(box.reshape((*lead, 1, 4)), boxes) > limit
        out = out | take_it.reshape((*lead, 1)) & covers.reshape((*lead, n))
        return now + 1, count + take_it.cast(dtypes.int64), out, take_it
    return step


def _overlap(a: Any, b: Any) -> Any:
    """Intersection over union of boxes given by corners; 0 for an empty union."""
    low, high = o.max(a.take(3, 0, 2), b.take(3, 0, 2)), o.min(a.take(3, 2, 4), b.take(3, 2, 4))
    inner = _area(o.max(high - low, 0.0))
    union = _area(_sides(a)) + _area(_sides(b)) - inner
    empty = union <= 0.0
    return o.select(empty, 0.0, inner / o.select(empty, 1.0, union))


def _sides(x: Any) -> Any:
    return x.take(3, 2, 4) - x.take(3, 0, 2)


def _area(sides: Any) -> Any:
    return sides.take(3, 0, 1) * sides.take(3, 1, 2)
