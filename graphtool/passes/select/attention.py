"""select's attention: its kernel if there is one for the operands, else the ops it consists of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Node, is_constant
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.choose import plans
from graphtool.kernels.choice.operands import widened
from graphtool.kernels.choice.sites import Attention
from graphtool.passes.select.goal import Goal, in_type
from graphtool.passes.select.narrow_rows import Narrow, narrow_rows
from graphtool.symbolic import product, typical_size


def attention(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """The kernel if it can compute the node, else the ops of attention, computed in float32."""
    wide = [widened(x) if isinstance(x, Tracer) else x for x in operands]
    return (in_type(node, _attention(goal, node, wide, [*map(narrow_rows, operands[1:3])])),)


def _attention(goal: Goal, node: Node, operands: list[Any], stored: list[Narrow | None]) -> Any:
    q, k, v, mask = (*operands, None)[:4]
    a = node.attrs
    given = () if mask is None or _hides_nothing(mask) else (_added(mask, q.dtype),)
    mask = mask if given else None
    why = _unfit(q, v) or ("" if plans(_site(q, k, v, a["causal"], mask), goal.target, goal.rules)
                           else "is not allowed: it leaves out hidden keys, and adds up by lanes")
    goal.note(q, f"attention as separate ops: the kernel {why}" if why else
              "attention by its kernel: float32, with a known number and size of heads")
    if why:
        return node.op.decompose(*operands, **a)  # type: ignore[misc]
    scale = a["scale"] if a["scale"] is not None else q.shape[-1] ** -0.5
    factors: list[Any] = []
    keys, values = stored
    if keys and values and keys.x.dtype is values.x.dtype:
        k, v = keys.x, values.x
        factors = [] if keys.factors is None else [keys.factors, values.factors]
    more = (*given, *(() if given or not factors else (None,)), *factors)
    return goal.best(_site(q, k, v, a["causal"], mask), q, k, v, *more,
                     causal=a["causal"], scale=scale, softcap=a["softcap"])


def _site(q: Tracer, k: Tracer, v: Tracer, causal: bool, mask: Tracer | None) -> Attention:
    """The site, which holds the sizes for costs; for symbolic sizes their upper bounds."""
    queries, keys, heads = q.shape[-2], k.shape[-2], product(q.shape[:-2])
    return Attention(
        typical_size(heads), typical_size(queries), typical_size(keys),
        typical_size(q.shape[-1]), typical_size(v.shape[-1]),
        typical_size(q.shape[-3] // k.shape[-3]), causal, mask is not None,
        hidden=mask is not None and mask.dtype is dtypes.bool_,
        fixed=all(isinstance(d, int) for d in (heads, queries, keys)),
        keys=k.dtype)


def _unfit(q: Tracer, v: Tracer) -> str:
    """Why the kernel cannot compute it; empty if it can."""
    if q.dtype is not dtypes.float32:
        return f"computes only float32, not {q.dtype.name}"
    if q.ndim < 3:
        return "needs an axis of heads"
    sizes = [d for x in (q, v) for d in (x.shape[-1], x.shape[-3])]
    if not all(isinstance(d, int) for d in sizes):
        return "needs a known number and size of heads"
    return "" if all(sizes) else "does not support heads of size 0"


def _hides_nothing(mask: Tracer) -> bool:
    node = mask.builder.made.get(mask.value)
    if not is_constant(node):
        return False
    data = node.attrs["data"].source
    return bool(data.all() if mask.dtype is dtypes.bool_ else not data.any())


def _added(mask: Any, dtype: DType) -> Any:
    """The mask as numbers to add, with a row for each query."""
    if mask.dtype is dtypes.bool_:
        mask = o.select(mask, o.cast(mask, dtype=dtype) * 0.0, -math.inf)
    return mask if mask.ndim >= 2 else o.reshape(mask, shape=(*(1,) * (2 - mask.ndim),
                                                              *mask.shape))
