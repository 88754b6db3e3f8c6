"""A bound of the error of a graph against real arithmetic: each node's inputs are enclosed, and so
are its results, with what rounding adds.

The bound holds for the evaluator and for C that adds in any order and may fuse a product with a
sum. It does not hold for methods that transform the numbers first (Winograd, products in bfloat16).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.analysis.enclosure import (
    EXACT,
    Array,
    Enclosure,
    exactly,
    precision,
)
from graphtool.analysis.gains import gains, lengths
from graphtool.analysis.meanings import LOGIC, MEANING, Operands
from graphtool.dtypes import DType, float64
from graphtool.errors import InputError
from graphtool.interp import Setting, evaluate_op
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.ir.op import Op
from graphtool.ir.replay import last_uses, prune, rebuild, replay
from graphtool.ir.trace import Builder
from graphtool.ops.indexing import conv_defaults


def flattened(graph: Graph) -> Graph:
    """The graph with the definitions of those composites that have no bound of their own, and with
    extremes of windows as extremes of slices, which have derivatives. Sizes are numbers."""
    def rewrite(node: Node, operands: Operands, builder: Builder) -> Any:
        xs = [builder.traced(x) if isinstance(x, Value) else x for x in operands]
        if node.op is o.reduce_window and node.attrs["kind"] in _ENDS and _is_plain(node):
            return (_extreme_of_slices(xs[0], node),)
        if _has_meaning(node) or moves(node) or not node.op.decompose:
            return None
        out = node.op.decompose(*xs, **node.attrs)
        return out if isinstance(out, tuple) else (out,)
    new = prune(rebuild(graph, rewrite))
    return new if len(new.nodes) == len(graph.nodes) else flattened(new)


_ENDS: dict[str, tuple[Op, float]] = {"max": (o.max, -math.inf), "min": (o.min, math.inf)}


def _is_plain(node: Node) -> bool:
    """Whether a window takes neighbours of what is there."""
    return all(d == 1 for n in ("base_dilation", "window_dilation") for d in node.attrs[n] or ())


def _extreme_of_slices(x: Any, node: Node) -> Any:
    """The extreme of the first elements of all windows, of the second ones, and so on."""
    fn, end = _ENDS[node.attrs["kind"]]
    strides, padding, *_ = conv_defaults(x.ndim, node.attrs["strides"], node.attrs["padding"],
                                         None, None)
    wide = o.pad(x, lo=tuple(p[0] for p in padding), hi=tuple(p[1] for p in padding), value=end)
    spans = [(m - 1) * s + 1 for m, s in zip(node.outputs[0].type.shape, strides, strict=True)]
    return reduce(fn, (
        o.slice(wide, start=at, limit=tuple(map(sum, zip(at, spans, strict=True))), strides=strides)
        for at in product(*map(range, node.attrs["window"]))))


@dataclass(frozen=True)
class Errors:
    """What is known of the values of a graph. `found` are their enclosures. For values that depend
    on an input, `own` is how far they may be from what their node gives in real arithmetic for the
    computed operands that depend on inputs too, and `length` the Euclidean norm of the error, of
    each of `count` examples along axis 0."""

    count: int
    found: dict[Value, Enclosure] = field(default_factory=dict)
    own: dict[Value, Array] = field(default_factory=dict)
    length: dict[Value, Array] = field(default_factory=dict)


def enclosures(graph: Graph, inputs: Sequence[Enclosure], count: int = 1,
               varying: Collection[Value] | None = None, exact: bool = False) -> Errors:
    """The errors in a flat graph, for inputs within theirs; if it is `exact`, its arithmetic is.
    No node mixes the `count` examples along axis 0 of what depends on the `varying` inputs, by
    default all.

    Raises InputError GT0534 for an op that has no bound here.
    """
    known = Errors(count, dict(zip(graph.inputs, inputs, strict=True)))
    for v in graph.inputs if varying is None else varying:
        known.own[v] = known.found[v].err
        known.length[v] = lengths(known.found[v].err, count)

    def apply(node: Node, *xs: Any) -> list[Enclosure]:
        out = of_node(node, xs, exact)
        if any(x in known.own for x in node.inputs):
            own = _own(node, xs, known, exact)
            known.own.update(zip(node.outputs, own, strict=True))
            out = [_shortened(node, xs, x, v, known, exact)
                   for x, v in zip(out, node.outputs, strict=True)]
        known.found.update(zip(node.outputs, out, strict=True))
        return out
    with np.errstate(all="ignore"):
        replay(graph, inputs, apply, last_uses(graph))
    return known


def _own(node: Node, xs: Operands, known: Errors, exact: bool) -> list[Array]:
    """The errors of results where operands that depend on an input are as they are computed."""
    fixed = [x for x, v in zip(xs, node.inputs, strict=True) if v not in known.own]
    if exact and all(map(_is_exact, fixed)):
        return [np.zeros(v.type.shape) for v in node.outputs]
    return [x.err for x in of_node(node, [
        x.tube() if v in known.own else x for x, v in zip(xs, node.inputs, strict=True)], exact)]


def _shortened(node: Node, xs: Operands, x: Enclosure, v: Value, known: Errors, exact: bool,
               ) -> Enclosure:
    """A result whose errors are no larger than the length of all together, which is kept."""
    count, length, own = known.count, lengths(x.err, known.count), known.own[v]
    steps = is_smooth(node, known.found)
    if node.op is o.select:  # one of two, and where it is open which, the other one
        steps, sure = True, [x.real() if isinstance(x, Enclosure) else x for x in xs[1:]]
        own = of_node(node, [xs[0], *sure], exact)[0].err
    if steps:
        moved = [known.length[y] * g for y, g in zip(node.inputs, gains(node, xs), strict=True)
                 if y in known.own]
        length = np.fmin(length, sum(moved, lengths(own, count)))
    known.length[v] = length
    each = length.reshape(count, *(1,) * (x.err.ndim - 1)) if x.err.ndim else length[0]
    return Enclosure(x.lo, x.hi, np.fmin(x.err, each))


def of_node(node: Node, xs: Operands, exact: bool = False) -> list[Enclosure]:
    """The enclosures of the results of a node, which is computed in real arithmetic if `exact`.

    Raises InputError GT0534 for an op that has no bound here.
    """
    op, kind = node.op, node.outputs[0].type.dtype
    if op in LOGIC:
        kind = next(x.type.dtype for x in node.inputs if isinstance(x, Value))
    if is_constant(node):
        return [exactly(np.asarray(node.attrs["data"].source, np.float64))]
    if moves(node) or (exact and op is o.scatter):
        return [_moved(node, xs)]
    if _has_meaning(node):
        p = EXACT if exact else precision(kind)
        out = MEANING[op](node, [_operand(x, float64 if exact else kind) for x in xs], p)
        shape: Any = node.outputs[0].type.shape
        return [out.map(lambda x: np.broadcast_to(x, shape))]
    if all(_is_exact(x) for x in xs):
        return [exactly(r) for r in evaluate_op(op, [
            _typed(x, v) for x, v in zip(xs, node.inputs, strict=True)], node.attrs, Setting())]
    raise InputError("GT0534", f"no error bound of {op.name} is known", where=node.outputs[0].hint)


def is_smooth(node: Node, tubes: Mapping[Value, Enclosure]) -> bool:
    """Whether the results are functions of the floats among the operands without a jump, and the
    op's vjp has their derivatives."""
    return node.op.vjp is not None and node.op is not o.round and all(
        v.type.dtype.is_float for v in node.outputs) and (
        _has_meaning(node) or moves(node)) and all(
        x.type.dtype.is_float or _is_exact(tubes[x]) for x in node.inputs if isinstance(x, Value))


def moves(node: Node) -> bool:
    """Whether the results are elements of the operands."""
    return node.op.movement is not Movement.NONE or node.op is o.gather


def _has_meaning(node: Node) -> bool:
    """Whether the table says what the node does to enclosures."""
    kind = node.outputs[0].type.dtype
    return node.op in MEANING and len(node.outputs) == 1 and (
        kind.kind != "bool" or node.op in LOGIC) and not (kind.is_integer and node.op is o.div)


def _operand(x: Any, kind: DType) -> Enclosure | None:
    """An operand; a number is computed as its type has it."""
    if isinstance(x, Enclosure) or x is None:
        return x
    real = exactly(x)
    if np.isfinite(real.lo):
        return replace(real, err=np.abs(real.lo - np.asarray(x).astype(kind.numpy).astype(float)))
    return real


def _is_exact(x: Any) -> bool:
    """Whether an operand is known to the last bit."""
    return not isinstance(x, Enclosure) or (
        bool((x.err == 0).all()) and bool((x.lo == x.hi).all()))


def _typed(x: Any, v: Any) -> Any:
    """An exact operand in its own element type."""
    return x.lo.astype(v.type.dtype.numpy) if isinstance(x, Enclosure) else x


def _moved(node: Node, xs: Operands) -> Enclosure:
    """The elements of an op that only moves them, to places that are known. What it fills in has no
    error."""
    at = node.op.indexing.indices if node.op.indexing is not None else None
    if at is not None and not _is_exact(xs[at]):
        raise InputError("GT0534", f"it is not known from where {node.op.name} takes its elements",
                         where=node.outputs[0].hint)

    def move(part: Callable[[Enclosure], Array], attrs: Mapping[str, Any]) -> Array:
        arrays = [x if not isinstance(x, Enclosure) else part(x) if k != at else
                  _typed(x, node.inputs[k]) for k, x in enumerate(xs)]
        return np.asarray(evaluate_op(node.op, arrays, attrs)[0], np.float64)
    filled = {**node.attrs, **({"value": 0.0} if "value" in node.attrs else {})}
    return Enclosure(move(lambda x: x.lo, node.attrs), move(lambda x: x.hi, node.attrs),
                     move(lambda x: x.err, filled))
