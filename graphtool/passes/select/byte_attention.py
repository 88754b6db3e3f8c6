"""select's attention of quantised numbers, in one kernel of a matrix unit.

A model that is quantised throughout rounds scores and weights to bytes as well. The product of the
weights and the values is then Σ round(softmax(scores))·v, of scores that are rounded too, and the
whole of it is found from there. It must be found before a kernel is chosen for the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.analysis.ranges import (
    Narrow,
    dequantising,
    maker,
    narrow,
    quantising,
    rounding,
    to_bytes,
    wrapped,
)
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.kernels.attend_bytes import ATTEND_BYTES, FEWEST, LONGEST
from graphtool.kernels.record import has_text
from graphtool.passes.integer.dequantised import dequantised, only
from graphtool.passes.select.goal import Goal
from graphtool.passes.select.integer_product import unsigned
from graphtool.rewrite.patterns import bindings, pattern

MOST = 1024  # keys whose scores stay in the second-level cache
_SOFTMAX = pattern(lambda x, a: o.softmax.decompose(x, axis=a))  # type: ignore[misc]


@dataclass(frozen=True)
class Bytes:
    """Small integers q, u8, with one zero point."""

    q: Any
    zero: float


def byte_attention(goal: Goal, graph: Graph) -> Graph:
    """The graph with attention of bytes in one node each, if the target has a kernel for it."""
    known = has_text(o.attend_bytes, goal.target.language)
    if not goal.target.amx or not known or goal.rules.in_order:
        return graph

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if node.op is not o.matmul or node.outputs[0].type.dtype is not dtypes.int32 or (
                node.attrs["transpose_a"] or node.attrs["transpose_b"]):
            return None
        weights, v = (_bytes(Tracer(x, b) if isinstance(x, Value) else x) for x in inputs)
        if weights is None or v is None or weights.zero:
            return None
        for q, k, grids in _attended(weights.q):
            if _fits(q.q, k.q, v.q):
                goal.note(q.q, "with scores, softmax and values in one kernel, of bytes")
                held = np.array([q.zero, k.zero, *grids[:3], v.zero, grids[3]], np.float32)
                return (o.attend_bytes(q.q, k.q, v.q, b.constant(held), plan=ATTEND_BYTES.plan()),)
        return None
    return prune(rebuild(graph, rewrite))


def _bytes(x: Any) -> Bytes | None:
    """The bytes of which x, int32, is the difference to a zero point that is known."""
    found = narrow(x) if isinstance(x, Tracer) else None
    if found is None:
        return None
    whole = unsigned(Narrow(found.q, found.zero))
    zero = only(whole.zero)
    return None if zero is None else Bytes(whole.q, zero)


def _attended(weights: Any) -> Iterator[tuple[Bytes, Bytes, tuple[float, ...]]]:
    """Queries, keys of the same order of axes, and the factor, zero point and size of steps of
    scores and the number of steps of weights, for each way to read the weights as a softmax."""
    made_by, node = weights.builder.made_by, maker(weights)
    chain = quantising(node.inputs[0], made_by) if node is not None and to_bytes(node) else None
    if chain is None or chain.bounds or only(wrapped(weights, chain.zero)) != 0:
        return
    size = only(wrapped(weights, chain.scale))
    for env in bindings(_SOFTMAX, chain.x, made_by.get):
        scores = dequantised(wrapped(weights, env["x"]))
        if scores is None or not size or env["a"] % weights.ndim != weights.ndim - 1:
            continue
        zero, step = only(scores.narrow.zero), only(scores.scale)
        made = _product(scores.narrow.q, zero)
        if made is not None and zero is not None and step is not None and step > 0:
            yield made[0], made[1], (made[2], zero, step, 1 / size)


def _product(scores: Any, zero: float | None) -> tuple[Bytes, Bytes, float] | None:
    """Queries, keys and the factor of scores = cast(round(q·kᵀ·factor) + zero)."""
    node = maker(scores)
    if node is None or not to_bytes(node) or scores.dtype is not dtypes.uint8:
        return None
    made_by = scores.builder.made_by
    rounded, after = rounding(node.inputs[0], made_by)
    terms = [n.inputs[1] for n in after if n.op is o.add]
    if rounded is None or len(terms) != len(after) or len(terms) > 1 or (
            only(wrapped(scores, terms[0])) if terms else 0.0) != zero:
        return None
    scaled = maker(wrapped(scores, rounded.inputs[0]))
    for chain in dequantising(scaled, made_by) if scaled is not None else ():
        factor, product = only(wrapped(scores, chain.scale)), made_by.get(chain.x)
        if chain.zero is not None or factor is None or product is None or (
                product.op is not o.matmul or product.attrs["transpose_a"]):
            continue
        q, k = (_bytes(wrapped(scores, x)) for x in product.inputs)
        if q is None or k is None or q.q.ndim != k.q.ndim:
            return None
        n = k.q.ndim
        turned = k.q if product.attrs["transpose_b"] else o.transpose(
            k.q, perm=(*range(n - 2), n - 1, n - 2))
        return q, Bytes(turned, k.zero), factor
    return None


def _fits(q: Any, k: Any, v: Any) -> bool:
    """Whether the kernel can take the operands, and gains by it: of fewer queries than a block it
    would compute most for nothing."""
    sizes = (*q.shape, *k.shape, *v.shape)
    return 3 <= q.ndim == k.ndim == v.ndim and all(isinstance(d, int) for d in sizes) and (
        q.shape[:-2] == k.shape[:-2] == v.shape[:-2] and k.shape[-2] == v.shape[-2]
        and q.shape[-2] >= FEWEST and 0 < k.shape[-2] <= MOST and 0 < q.shape[-1] <= LONGEST
        and v.shape[-1] > 0)
