"""select's pools: a kernel in which neighbouring windows share columns, if windows overlap."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Node
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.sites import Pool
from graphtool.ops.reduce import identity
from graphtool.passes.select.goal import Goal
from graphtool.symbolic import typical_size


def window(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The reduction over windows by the best kernel, with its padding as a separate node; None
    if plain loops are best."""
    x = operands[0]
    if not isinstance(x, Tracer):
        return None
    parts = _by_axis(goal, node, x)
    if parts is not None:
        return (parts,)
    wide = _padded(node, x)
    y = _pooled(goal, node, wide or x)
    return _apart(node, wide) if y is None else (y,)


def spaced(_: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The node in plain loops, with its padding as a separate node; None if it has none."""
    x = operands[0]
    return _apart(node, _padded(node, x)) if isinstance(x, Tracer) else None


def _apart(node: Node, wide: Tracer | None) -> Sequence[Any] | None:
    return None if wide is None else (node.op(wide, **{**node.attrs, "padding": None}),)


def _by_axis(goal: Goal, node: Node, x: Tracer) -> Any:
    """Windows that overlap along memory, first over all other axes: these are vectors of adjacent
    elements, of which neighbouring windows then share the results.

    None for other windows, where the order of sums is kept, where sums are rounded, and on a
    device, which would write the results in between.
    """
    a, last = node.attrs, x.ndim - 1
    size, strides = a["window"], a["strides"] or (1,) * x.ndim
    adds = a["kind"] in ("sum", "prod")
    if _spread(node) or size[last] <= strides[last] or all(k == 1 for k in size[:last]) or (
            goal.target.grid) or (adds and (goal.rules.in_order or x.dtype.is_narrow)):
        return None
    across = node.op(x, **_along(a, range(last)))
    along = _along(a, (last,))
    wide = _padded(replace(node, attrs={**a, **along}), across)
    return node.op(across, **along) if wide is None else node.op(wide, **{**along, "padding": None})


def _along(attrs: Mapping[str, Any], axes: Collection[int]) -> dict[str, Any]:
    """The attributes of a window that has one element along all other axes."""
    usual = {"window": 1, "strides": 1, "window_dilation": 1, "padding": (0, 0)}
    return {**attrs, **{name: tuple(v if i in axes else one for i, v in enumerate(attrs[name]))
                        for name, one in usual.items() if attrs[name]}}


def _padded(node: Node, x: Tracer) -> Tracer | None:
    """The padding as a separate pad node: the producer of x can then write into the padded
    image."""
    padding = node.attrs["padding"]
    if not padding or not any(p != 0 for pair in padding for p in pair) or _spread(node):
        return None
    wide: Tracer = o.pad(x, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding),
                         value=float(identity(node.attrs["kind"], x.dtype)))
    return wide


def _spread(node: Node) -> bool:
    """Whether there are gaps between the elements of a window or of its input."""
    return any(d != 1 for d in node.attrs.get("base_dilation") or ())


def _pooled(goal: Goal, node: Node, x: Tracer) -> Any:
    a, out = node.attrs, node.outputs[0].type.shape
    size, strides, dilation = (a[k] or (1,) * x.ndim for k in ("window", "strides",
                                                               "window_dilation"))
    if x.ndim != 4 or x.dtype is not dtypes.float32 or a["kind"] == "prod" or _spread(node) or any(
            each[0] != 1 or each[3] != 1 for each in (size, strides)) or not isinstance(
            out[3], int) or any(d == 0 for d in out):
        return None
    (_, kh, kw, _), (_, sh, sw, _), (_, dh, dw, _) = size, strides, dilation
    n, h, w, c = map(typical_size, out)
    return goal.best(Pool(n, h, w, c, kh, kw, sh, sw, dh, dw), x, kind=a["kind"], window=(kh, kw),
                     strides=(sh, sw), dilation=(dh, dw))
