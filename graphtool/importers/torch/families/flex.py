"""flex_attention: its score function and its mask function become ops on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.captured import Program
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.graph import Graph, Node, is_constant
from graphtool.ir.replay import replay
from graphtool.scalars.table import BY_NAME

_PER_ELEMENT = frozenset(BY_NAME) | {"select", "clamp", "cast"}
_MOVES = ("reshape", "broadcast")  # of one element: nothing


@aten("flex_attention", namespace="higher_order")
def flex_attention(c: Context, query: Array, key: Array, value: Array, score_mod: Program,
                   block_mask: tuple[Any, ...], scale: float, kernel_options: Any = None,
                   score_buffers: tuple[Any, ...] = (), mask_buffers: tuple[Any, ...] = ()) -> Any:
    """softmax(f(scale·q·kᵀ, batch, head, row, column), masked)·v; a row that is masked everywhere
    gives 0. If f returns its score unchanged, this is our attention op."""
    if score_buffers or mask_buffers:
        raise Refused("a score or mask function that reads other tensors is not supported; use "
                      "scaled_dot_product_attention and add them as a mask")
    if any(c.used(i) for i in range(1, len(c.outs))):
        raise Refused("only the first result of flex_attention is supported, not what it keeps "
                      "for its gradient")
    batch, heads, rows, _ = query.shape
    shape = (batch, heads, rows, key.shape[-2])
    at = [c.iota([d if i == axis else 1 for i, d in enumerate(shape)], axis, dtypes.int32)
          for axis, d in enumerate(shape)]
    mask = _over(c, c.region(block_mask[-1]), at)
    mask = mask.broadcast(shape)
    function = c.region(score_mod)
    if function.outputs[0] is function.inputs[0]:
        return o.attention(query, key, value, mask, scale=scale), None, None
    key, value = (_for_heads(c, x, heads) for x in (key, value))
    scores = o.matmul(query, key, transpose_b=True) * scale
    scores = o.select(mask, _over(c, function, [scores, *at]), float("-inf"))
    some = o.reduce_or(mask, axes=(3,))
    weights = o.softmax(o.select(some, scores, 0.0), axis=3)
    return o.matmul(o.select(some, weights, 0.0), value), None, None


def _for_heads(c: Context, x: Array, heads: Any) -> Array:
    """Keys and values once for each head of the queries."""
    batch, own, *rest = x.shape
    if own == heads:
        return x
    wide = x.reshape((batch, own, 1, *rest)).broadcast((batch, own, heads // own, *rest))
    return wide.reshape((batch, heads, *rest))


def _over(c: Context, graph: Graph, operands: Sequence[Array]) -> Array:
    """What a graph of single elements gives for tensors of them."""
    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        if node.op.name in _MOVES:
            return (xs[0],)
        if node.op.name not in _PER_ELEMENT and not is_constant(node):
            raise Refused(f"the score function contains {node.op.name}, but only elementwise ops "
                          "are supported in it")
        return (c.emit(node.op, xs, dict(node.attrs)),)
    return replay(graph, operands, apply)[0]  # type: ignore[no-any-return]
