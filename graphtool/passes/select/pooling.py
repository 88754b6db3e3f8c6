"""select's pools: a kernel in which neighbouring windows share columns, if windows overlap."""

from __future__ import annotations

from collections.abc import Sequence
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
    wide = _padded(node, x)
    y = _pooled(goal, node, wide or x)
    return _apart(node, wide) if y is None else (y,)


def spaced(_: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The node in plain loops, with its padding as a separate node; None if it has none."""
    x = operands[0]
    return _apart(node, _padded(node, x)) if isinstance(x, Tracer) else None


def _apart(node: Node, wide: Tracer | None) -> Sequence[Any] | None:
    return None if wide is None else (node.op(wide, **{**node.attrs, "padding": None}),)


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
