"""select's attention: its kernel if there is one for the operands, else the ops it consists of.

Keys and values that are stored in 16 or 8 bits are found under what widens them, so that the kernel
reads them as they are stored. Between the stored numbers and attention there may be reshapes,
transposes, broadcasts and slices that leave rows whole; they are applied to the numbers and to the
factors of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import dequantising, wrapped
from graphtool.dtypes import DType
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.graph import Node, Value, is_constant
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.choose import plans
from graphtool.kernels.choice.operands import widened
from graphtool.kernels.choice.sites import Attention
from graphtool.passes.select.goal import Goal, in_type
from graphtool.symbolic import product, typical_size

_LEAVES_ROWS = Movement.KEEPS | Movement.PERMUTES | Movement.REPEATS | Movement.TAKES


def attention(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any]:
    """The kernel if it can compute the node, else the ops of attention, computed in float32."""
    wide = [widened(x) if isinstance(x, Tracer) else x for x in operands]
    return (in_type(node, _attention(goal, node, wide, [*map(narrow_rows, operands[1:3])])),)


def _attention(goal: Goal, node: Node, operands: list[Any], stored: list[NarrowRows | None]) -> Any:
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
    if keys and values and keys.x.dtype is values.x.dtype and plans(
            _site(q, keys.x, values.x, a["causal"], mask), goal.target, goal.rules):
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
    node = mask.builder.made_by.get(mask.value)
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


# ---- keys and values as they are stored ----------------------------------------------------------

@dataclass(frozen=True)
class NarrowRows:
    """Rows x of 16 or 8 bits; rows of int8 have `factors`, of the same shape but for a last size
    of 1."""

    x: Tracer
    factors: Tracer | None = None


def narrow_rows(x: Any) -> NarrowRows | None:
    """The stored rows that x, f32, widens; x itself if it has 16 bits; None if there are none."""
    if not isinstance(x, Tracer) or x.dtype in dtypes.HALVES:
        return NarrowRows(x) if isinstance(x, Tracer) else None
    node = x.builder.made_by.get(x.value)
    if node is None or x.dtype is not dtypes.float32:
        return None
    operands = [Tracer(v, x.builder) for v in node.inputs if isinstance(v, Value)]
    if Trait.CONVERTS in node.op.traits:
        return NarrowRows(operands[0]) if operands[0].dtype in dtypes.HALVES else None
    for chain in dequantising(node, x.builder.made_by):
        stored, factors = Tracer(chain.x, x.builder), wrapped(x, chain.scale)
        if chain.zero is None and stored.dtype is dtypes.int8 and (
                isinstance(factors, Tracer) and factors.shape == (*stored.shape[:-1], 1)):
            return NarrowRows(stored, factors)  # a factor for each row
    if not node.op.movement & _LEAVES_ROWS:
        return None
    inner = narrow_rows(operands[0])
    return None if inner is None else _moved(inner, node)


def _moved(rows: NarrowRows, node: Node) -> NarrowRows | None:
    """The rows where the node moves them; None if it does not leave them whole."""
    old, new, a = rows.x.shape, node.outputs[0].type.shape, dict(node.attrs)
    ones = dict(a)
    if not old or not new or old[-1] != new[-1]:
        return None
    if Movement.PERMUTES in node.op.movement:
        if a["perm"][-1] != len(old) - 1:
            return None
    elif Movement.TAKES in node.op.movement:
        if a["start"][-1] != 0 or a["strides"][-1] != 1:
            return None
        ones["limit"] = (*a["limit"][:-1], 1)
    else:
        ones["shape"] = (*a["shape"][:-1], 1)
    x = rows.x.builder.emit(node.op, (rows.x,), a)
    factors = rows.factors and rows.x.builder.emit(node.op, (rows.factors,), ones)
    assert isinstance(x, Tracer) and not isinstance(factors, tuple)
    return NarrowRows(x, factors)
