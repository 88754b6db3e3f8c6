"""Reverse mode, graph → graph. This file has only the chain rule; the gradient of each op is in its
record (`vjp`).

A composite without a vjp is differentiated through its decomposition. Gradients are summed back
over broadcast axes in one place, and stop at integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.ir.facets import Lowering, Movement, Trait
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_constant
from graphtool.ir.op import Op, complete_attrs, named
from graphtool.ir.replay import rebuild
from graphtool.ir.rounded_once import settle
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim
from graphtool.transforms import regions as r

SEED = "seed"  # the scope of the nodes from which the backward pass starts


def grad(graph: Graph, output: int, wrt: Sequence[Value], *, marked: bool = False) -> Graph:
    """The graph with the gradients of the sum of one output with respect to `wrt` after its own
    outputs.

    `wrt` are inputs or constants of the graph. With `marked`, an op `gradient` says where the
    backward pass starts. Raises InputError GT0610 if the output is not float,
    or a value is neither an input nor a constant, UnsupportedError GT0612 for ops without a
    gradient.
    """
    y = graph.outputs[output]
    if not y.type.dtype.is_float:
        raise InputError("GT0610", f"the output {output} is {y.type}, but it must be a float")


    def one(b: Builder, v: Value) -> Tracer:
        with b.scope(SEED):
            start = _filled(b, v, 1.0)
            return o.gradient(start, of="") if marked else start
    return _joint(graph, [output], wrt, one)


def vjp(graph: Graph, wrt: Sequence[Value], outputs: Sequence[int] | None = None) -> Graph:
    """Like `grad`, but the graph has further inputs: a cotangent for each of `outputs` (the
    float ones)."""
    if outputs is None:
        outputs = [i for i, v in enumerate(graph.outputs) if v.type.dtype.is_float]
    return _joint(graph, outputs, wrt, lambda b, v: b.input(v.type, f"{v.hint}.cotangent"))


def _joint(graph: Graph, outputs: Sequence[int], wrt: Sequence[Value], seed: Any) -> Graph:
    graph = expand(graph, wrt)
    known = {*graph.inputs, *(n.outputs[0] for n in graph.nodes if is_constant(n))}
    for v in wrt:
        if v not in known or not v.type.dtype.is_float:
            raise InputError("GT0611", f"{v.hint}: {v.type} is not a float input or constant")
    builder = Builder()
    for node in graph.nodes:
        builder.add(node)
    seeds = [(graph.outputs[i], seed(builder, graph.outputs[i])) for i in outputs]
    grads = backward(builder, graph.nodes, seeds, wrt)
    inputs = [t.value for _, t in seeds if t.value not in builder.made_by]
    results = tuple(t.value for t in grads)
    return Graph((*graph.inputs, *inputs), _live(builder.nodes, len(graph.nodes), results),
                 (*graph.outputs, *results))


def backward(builder: Builder, nodes: Sequence[Node], seeds: Iterable[tuple[Value, Tracer]],
             wrt: Sequence[Value]) -> list[Tracer]:
    """Append the backward pass of `nodes` to the builder; returns the gradient of each of `wrt`."""
    active = _active(nodes, wrt)
    grads: dict[Value, Tracer] = {}
    # the slices' gradients of each value, until all have arrived
    slices: dict[Value, list[tuple[Node, Tracer]]] = {}
    for v, g in seeds:
        _accumulate(builder, grads, v, g)
    for node in reversed(nodes):
        for v in node.outputs:
            _join_slices(builder, grads, v, slices.pop(v, []))
        if not any(v in grads for v in node.outputs) or not _differentiates(node, active):
            continue
        if Movement.TAKES in node.op.movement and isinstance(node.inputs[0], Value):
            slices.setdefault(node.inputs[0], []).append((node, grads[node.outputs[0]]))
            continue
        with builder.scope(f"{node.outputs[0].hint}.grad", node.where):
            before = len(builder.nodes)
            gradients = (_through_regions(builder, node, grads, active) if r.regions(node)
                         else _apply_vjp(builder, node, grads))
            reached = [(x, _fitted(builder, x, g))
                       for x, g in zip(node.inputs, gradients, strict=True)
                       if isinstance(x, Value) and x in active and g is not None]
            once = settle(builder, before, [g for _, g in reached])
            for (x, _), g in zip(reached, once, strict=True):
                grads[x] = g if x not in grads else grads[x] + g
    for v, parts in slices.items():
        _join_slices(builder, grads, v, parts)
    return [grads[v] if v in grads else _filled(builder, v, 0.0) for v in wrt]


def _join_slices(builder: Builder, grads: dict[Value, Tracer], v: Value,
                 parts: Sequence[tuple[Node, Tracer]]) -> None:
    """The gradients of slices of one value: joined by concat if they divide an axis, else each
    padded to the whole.

    Without this, a recurrence would add as many whole tensors as it has steps.
    """
    if not parts:
        return
    with builder.scope(f"{parts[-1][0].outputs[0].hint}.grad", parts[-1][0].where):
        joined = _side_by_side(builder, v, parts) if len(parts) > 1 else None
        if joined is not None:
            _accumulate(builder, grads, v, joined)
            return
        for node, _ in parts:
            _accumulate(builder, grads, v, _apply_vjp(builder, node, grads)[0])


def _side_by_side(builder: Builder, v: Value, parts: Sequence[tuple[Node, Tracer]]) -> Any:
    """One concat, with zeros in the gaps; None unless the slices are disjoint along one axis."""
    shape = v.type.shape
    cut = {a for node, _ in parts for a, d in enumerate(shape)
           if (node.attrs["start"][a], node.attrs["limit"][a]) != (0, d)}
    if len(cut) != 1 or any(s != 1 for node, _ in parts for s in node.attrs["strides"] or ()):
        return None
    axis = cut.pop()
    spans = [(node.attrs["start"][axis], node.attrs["limit"][axis], g) for node, g in parts]
    if not all(isinstance(d, int) for first, last, _ in spans for d in (first, last, shape[axis])):
        return None
    pieces: list[Any] = []
    at = 0
    for first, last, g in sorted(spans, key=lambda s: s[0]):
        if first < at:
            return None
        pieces += [_gap(builder, v, axis, first - at)] if first > at else []
        pieces.append(g)
        at = last
    rest = shape[axis]
    if isinstance(rest, int) and rest > at:
        pieces.append(_gap(builder, v, axis, rest - at))
    return o.concat(*pieces, axis=axis) if len(pieces) > 1 else pieces[0]


def _gap(builder: Builder, v: Value, axis: int, size: int) -> Tracer:
    shape = (*v.type.shape[:axis], size, *v.type.shape[axis + 1:])
    return _filled(builder, Value(TensorType(v.type.dtype, shape), v.hint), 0.0)


def expand(graph: Graph, wrt: Sequence[Value]) -> Graph:
    """Decompose the ops between `wrt` and the outputs that have no vjp of their own."""
    active = _active(graph.nodes, wrt)
    _check([n for n in graph.nodes if _differentiates(n, active)])
    changed = False

    def rewrite(node: Node, operands: tuple[Operand, ...], builder: Builder) -> Any:
        nonlocal changed
        if not _differentiates(node, active):
            return None
        out = _prepared(node, _tracers(builder, operands), active)
        changed |= out is not None
        return out
    grown = rebuild(graph, rewrite)
    return expand(grown, wrt) if changed else graph


def _prepared(node: Node, xs: list[Any], active: set[Value]) -> Sequence[Any] | None:
    """The nodes with vjps that replace a node without one; None if the node has one."""
    if r.regions(node):
        return r.prepared(node, xs, [x in active for x in node.inputs], vjp, _active)
    if node.op.vjp is not None or node.op.decompose is None:
        return None
    out = node.op.decompose(*xs, **node.attrs)
    return out if isinstance(out, tuple) else (out,)


def _check(nodes: Sequence[Node]) -> None:
    """Raise UnsupportedError with all nodes that cannot be differentiated."""
    missing = [n for n in nodes
               if n.op.vjp is None and n.op.decompose is None and not r.regions(n)]
    if missing:
        raise _no_rule(missing)
    if endless := [n for n in nodes if r.endless(n)]:
        raise r.unbounded(endless)


def _no_rule(nodes: Sequence[Node]) -> UnsupportedError:
    places: dict[str, list[str]] = {}
    for n in nodes:
        places.setdefault(n.op.name, []).append(n.where or n.outputs[0].hint)
    return UnsupportedError("GT0612", "no gradient", tuple(
        Unsupported(name, no_rule(named(name)), tuple(sorted(at)))
        for name, at in sorted(places.items())))


def no_rule(op: Op) -> str:
    """Why an op with float results has no gradient; empty if it has one."""
    if op.lowering is Lowering.TEMPLATE or op.category == "memory":
        return "it is an op of a kernel: differentiate the graph before kernels are selected"
    bits = Trait.BITS in op.traits and op.vjp is None
    return "the bits of a number have no derivative" if bits else ""


def _active(nodes: Sequence[Node], wrt: Sequence[Value]) -> set[Value]:
    """The float values that depend on `wrt` through floats."""
    active = set(wrt)
    for node in nodes:
        if node.op is o.stop_gradient or not any(x in active for x in node.inputs):
            continue
        if r.regions(node):
            reached = r.active_outputs(node, [x in active for x in node.inputs], _active)
        else:
            reached = [True] * len(node.outputs)
        active.update(v for v, yes in zip(node.outputs, reached, strict=True)
                      if yes and v.type.dtype.is_float)
    return active


def _differentiates(node: Node, active: set[Value]) -> bool:
    return any(x in active for x in node.inputs) and any(v in active for v in node.outputs)


def _tracers(builder: Builder, operands: Sequence[Operand]) -> list[Any]:
    return [Tracer(x, builder) if isinstance(x, Value) else x for x in operands]


def _apply_vjp(builder: Builder, node: Node, grads: dict[Value, Tracer]) -> Sequence[Any]:
    g, y = tuple(grads.get(v) for v in node.outputs), tuple(_tracers(builder, node.outputs))
    xs = _tracers(builder, node.inputs)
    attrs = complete_attrs(node.op, node.attrs)
    assert node.op.vjp is not None  # `expand` has replaced all others
    one = len(node.outputs) == 1
    out = node.op.vjp(g[0] if one else g, y[0] if one else y, *xs, **attrs)
    # a vjp may give fewer gradients than there are operands, and also some for omitted operands
    return [*out, *(None,) * (len(node.inputs) - len(out))][:len(node.inputs)]


def _through_regions(builder: Builder, node: Node, grads: dict[Value, Tracer],
                     active: set[Value]) -> Sequence[Any]:
    gs = [grads.get(v) if v in active else None for v in node.outputs]
    given = [x in active for x in node.inputs]
    return r.gradients(node, _tracers(builder, node.inputs), _tracers(builder, node.outputs), gs,
                       given, vjp, _active)


def _accumulate(builder: Builder, grads: dict[Value, Tracer], v: Value, g: Any) -> None:
    g = _fitted(builder, v, g)
    grads[v] = g if v not in grads else grads[v] + g


def _fitted(builder: Builder, v: Value, g: Any) -> Tracer:
    """The gradient of v, in its shape."""
    if not isinstance(g, Tracer):
        g = Tracer(builder.constant(np.asarray(g, v.type.dtype.numpy)).value, builder)
    return unbroadcast(g, v.type.shape)  # type: ignore[no-any-return]


def unbroadcast(g: Any, shape: tuple[Dim, ...]) -> Any:
    """g summed over the axes along which `shape` was broadcast; or g broadcast to `shape`."""
    if g.shape == shape:
        return g
    lead = g.ndim - len(shape)
    if lead < 0:
        return o.broadcast(g, shape=shape)
    axes = tuple(a for a, d in enumerate(g.shape)
                 if a < lead or (shape[a - lead] == 1 and d != 1))
    g = o.reduce_sum(g, axes=axes) if axes else g
    g = o.reshape(g, shape=g.shape[lead:]) if lead else g
    return g if g.shape == shape else o.broadcast(g, shape=shape)


def _filled(builder: Builder, v: Value, value: float) -> Tracer:
    one = np.full((1,) * v.type.rank, value, v.type.dtype.numpy)
    return o.broadcast(builder.constant(one), shape=v.type.shape)  # type: ignore[no-any-return]


def _live(nodes: Sequence[Node], kept: int, results: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes without the new ones that no result needs: a vjp gives gradients for every
    operand."""
    needed = set(results)
    out = []
    for node in reversed(nodes[kept:]):
        if any(v in needed for v in node.outputs):
            needed.update(x for x in node.inputs if isinstance(x, Value))
            out.append(node)
    return (*nodes[:kept], *reversed(out))
