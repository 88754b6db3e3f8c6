"""The attributes of an op that depend on axes, and how they change when axes are added or moved.

From one declaration beside the op, `vmap` puts an axis in front, `layout` moves axes, and `chunk`
sees whether the op treats the entries of the first axis separately.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphtool.symbolic import Dim

Attrs = Mapping[str, Any]


class Align(enum.Enum):
    """How the axes of operands and result correspond."""

    SAME = "same"          # operands and result have the same axes, though not of the same sizes
    TRAILING = "trailing"  # they broadcast as in NumPy: the last axes correspond
    MATRICES = "matrices"  # all but the last two broadcast so; these are rows and columns
    NONE = "none"          # in a way that only the op defines


@dataclass(frozen=True, eq=False)
class Axes:
    """What the attributes of an op mean for axes, by their names.

    `names`: one or several axes of the first operand. `each`: an entry for each axis; the value
    given here leaves an axis as it is. `spans`: a start for each axis, then an end; 0 and 1 are the
    whole. `sizes`: the size of each axis. `order`: all axes; the result has those of the operand in
    this order. `batch` counts the leading axes that the operands share.
    """

    align: Align = Align.SAME
    names: tuple[str, ...] = ()
    each: Mapping[str, Any] = field(default_factory=dict)
    spans: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    order: str = ""
    batch: str = ""


ALONG = Axes(names=("axis",))
OVER = Axes(names=("axes",))
BROADCAST = Axes(Align.TRAILING)


def with_leading(axes: Axes, attrs: Attrs, rank: int, size: Dim) -> dict[str, Any]:
    """The attributes for operands with one more axis of `size` in front; the first operand had
    `rank` axes."""
    out = dict(attrs)
    for name in axes.names:
        out[name] = _named(attrs[name], lambda a: a % rank + 1)
    for name, alone in axes.each.items():
        out[name] = None if attrs[name] is None else (alone, *attrs[name])
    for name in axes.spans:
        starts, ends = _span(attrs[name])
        out[name] = starts and (0.0, *starts, 1.0, *ends)
    for name in axes.sizes:
        out[name] = (size, *attrs[name])
    if axes.order:
        out[axes.order] = (0, *(a + 1 for a in attrs[axes.order]))
    if axes.batch:
        out[axes.batch] = attrs[axes.batch] + 1
    return out


def permuted(axes: Axes, attrs: Attrs, order: Sequence[int]) -> dict[str, Any]:
    """The attributes for operands whose axis i was axis `order[i]` before."""
    out = dict(attrs)
    for name in axes.names:
        moved = _named(attrs[name], lambda a: order.index(a % len(order)))
        out[name] = tuple(sorted(moved)) if isinstance(moved, tuple) else moved
    for name in (*axes.each, *axes.sizes):
        out[name] = attrs[name] and tuple(attrs[name][p] for p in order)
    for name in axes.spans:
        starts, ends = _span(attrs[name])
        out[name] = starts and (*(starts[p] for p in order), *(ends[p] for p in order))
    return out


def leaves_first(axes: Axes, attrs: Attrs, rank: int, size: Dim) -> bool:
    """Whether the op treats each index along axis 0, of `size`, separately."""
    named = [a for n in axes.names for a in (
        attrs[n] if isinstance(attrs[n], tuple) else (attrs[n],))]
    return (all(a % rank for a in named)
            and all(not attrs[n] or attrs[n][0] == alone for n, alone in axes.each.items())
            and all(len(attrs[n]) == rank and attrs[n][0] == size for n in axes.sizes)
            and all((s[:1], e[:1]) in (((), ()), ((0,), (1,)))
                    for s, e in (_span(attrs[n] or ()) for n in axes.spans))
            and not (axes.order and attrs[axes.order][0]))


def _span(value: tuple[float, ...] | None) -> tuple[Any, Any]:
    """The starts and the ends; None for each if there are none."""
    if value is None:
        return None, None
    rank = len(value) // 2
    return value[:rank], value[rank:]


def _named(value: Any, f: Callable[[int], int]) -> Any:
    return tuple(map(f, value)) if isinstance(value, tuple) else f(value)
