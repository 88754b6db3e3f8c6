"""Reverse mode through `cond`, `scan` and bounded `while`. Their gradients are such ops too.

The gradient of a branch runs the branch's forward pass again. A scan stacks the carries that its
backward pass reads, and goes back over them. A loop with a bound is treated as a scan of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.errors import Unsupported, UnsupportedError
from graphtool.ir.bind import with_own_sizes
from graphtool.ir.graph import Graph, Node, Operand, TensorType, Value, is_parameter
from graphtool.ir.replay import ancestors, inline, rebuild
from graphtool.ir.run_sizes import sizes_of
from graphtool.ir.trace import Builder, Tracer, trace

Vjp = Callable[[Graph, Sequence[Value], Sequence[int]], Graph]
Active = Callable[[Sequence[Node], Sequence[Value]], set[Value]]


def regions(node: Node) -> dict[str, Graph]:
    """The attributes of the node that are graphs."""
    return {k: a for k, a in node.attrs.items() if isinstance(a, Graph)}


def pruned(graph: Graph, outputs: Sequence[Value]) -> Graph:
    """The graph with only these outputs, and the nodes and inputs that they need."""
    nodes = ancestors(graph, outputs)
    needed = {*outputs, *(x for n in nodes for x in n.inputs)}
    return Graph(tuple(v for v in graph.inputs if v in needed), tuple(nodes), tuple(outputs))


# ---- what depends on what ----------------------------------------------------------------------

def active_outputs(node: Node, given: Sequence[bool], active: Active) -> list[bool]:
    """Which results of a node with regions depend on the given operands through floats."""
    if node.op is o.cond:
        result = [False] * len(node.outputs)
        for graph in regions(node).values():
            inside = active(graph.nodes, _chosen(graph.inputs, given[1:]))
            result = [a or v in inside for a, v in zip(result, graph.outputs, strict=True)]
        return result
    body = node.attrs["body"]
    inside = active(body.nodes, _chosen(body.inputs, loop_inputs(node, given, active)))
    return [v in inside for v in body.outputs]


def loop_inputs(node: Node, given: Sequence[bool], active: Active) -> list[bool]:
    """Which inputs of a loop's body depend on the given operands, in any iteration."""
    body, count = node.attrs["body"], node.attrs["carries"]
    dependent = list(given)
    while True:
        inside = active(body.nodes, _chosen(body.inputs, dependent))
        more = [a or (i < count and body.outputs[i] in inside) for i, a in enumerate(dependent)]
        if more == dependent:
            return dependent
        dependent = more


def _chosen(values: Sequence[Value], which: Sequence[bool]) -> list[Value]:
    return [v for v, yes in zip(values, which, strict=True) if yes and v.type.dtype.is_float]


# ---- the rules ---------------------------------------------------------------------------------

def gradients(node: Node, xs: Sequence[Any], ys: Sequence[Any], gs: Sequence[Any],
              given: Sequence[bool], vjp: Vjp, active: Active) -> list[Any]:
    """A gradient or None for each operand; `gs` has None for results without a cotangent."""
    if node.op is o.cond:
        return _cond(node, xs, gs, given, vjp)
    return _scan(node, xs, ys, gs, loop_inputs(node, given, active), vjp)


def _cond(node: Node, xs: Sequence[Any], gs: Sequence[Any], given: Sequence[bool],
          vjp: Vjp) -> list[Any]:
    """cond(p, …, g) of the gradients of the branches: the branch that was not taken adds
    nothing."""
    pred, *operands = xs
    outs = [n for n, g in enumerate(gs) if g is not None]
    which = [i for i, yes in enumerate(given[1:]) if yes and operands[i].dtype.is_float]
    backs = []
    for graph in (node.attrs["then"], node.attrs["orelse"]):
        back = vjp(graph, [graph.inputs[i] for i in which], outs)
        short = pruned(back, back.outputs[len(graph.outputs):])
        backs.append((back, short, {back.inputs.index(v) for v in short.inputs}))
    taken = sorted(set.union(*(used for _, _, used in backs)))
    then, orelse = (_backward(pred, tuple(back.inputs[i] for i in taken), short, short.outputs)
                    for back, short, _ in backs)
    values = [*operands, *(gs[n] for n in outs)]
    results = _tuple(o.cond(pred, *(values[i] for i in taken), then=then, orelse=orelse))
    by_operand = dict(zip(which, results, strict=True))
    return [None, *(by_operand.get(i) for i in range(len(operands)))]


def _scan(node: Node, xs: Sequence[Any], ys: Sequence[Any], gs: Sequence[Any],
          dependent: Sequence[bool], vjp: Vjp) -> list[Any]:
    """The scan in the other direction.

    Gradients of carries are carried; gradients of operands that stay the same are summed; gradients
    of rows are stacked.
    """
    body, count, builder = node.attrs["body"], node.attrs["carries"], xs[0].builder
    cut, kept = count + node.attrs["xs"], saved(node)
    which = [i for i, v in enumerate(body.inputs) if dependent[i] and v.type.dtype.is_float]
    carried, fixed = [i for i in which if i < count], [i for i in which if i >= cut]
    rows = [n for n in range(count, len(gs)) if gs[n] is not None]
    back = vjp(body, [body.inputs[i] for i in which], [*carried, *rows])
    cotangents = dict(zip([*carried, *rows], back.inputs[len(body.inputs):], strict=True))
    grads = dict(zip(which, back.outputs[len(body.outputs):], strict=True))
    inner, totals = _summed(pruned(back, tuple(grads.values())), [grads[i] for i in fixed])
    used = set(inner.inputs)
    moving = [i for i, v in enumerate(body.inputs[:cut]) if v in used]
    still = [i for i, v in enumerate(body.inputs) if i >= cut and v in used]
    outer = [*(gs[n] if gs[n] is not None else _zeros(builder, body.inputs[n].type)
               for n in carried),
             *(_zeros(builder, body.inputs[i].type) for i in fixed),
             *(ys[kept[i]] if i < count else xs[i] for i in moving), *(gs[n] for n in rows),
             *(xs[i] for i in still)]
    by_row = [i for i in which if count <= i < cut]
    step = _backward(xs[0], (*(cotangents[n] for n in carried), *(t for t, _ in totals),
                             *(body.inputs[i] for i in moving), *(cotangents[n] for n in rows),
                             *(body.inputs[i] for i in still)), inner,
                     (*(grads[i] for i in carried), *(t for _, t in totals),
                      *(grads[i] for i in by_row)))
    out = _tuple(o.scan(*outer, body=step, carries=len(carried) + len(fixed),
                        xs=len(moving) + len(rows), length=node.attrs["length"],
                        reverse=not node.attrs["reverse"]))
    by_input = dict(zip([*carried, *fixed, *by_row], out, strict=True))
    return [by_input.get(i) for i in range(len(xs))]


def _backward(near: Tracer, inputs: tuple[Value, ...], inner: Graph,
              outputs: tuple[Value, ...]) -> Graph:
    """A region of the backward pass. It computes the forward's sizes again under other names."""
    taken = {s.name for n in near.builder.nodes for s in sizes_of(n)}
    return with_own_sizes(Graph(inputs, inner.nodes, outputs), taken)


def _summed(graph: Graph, grads: Sequence[Value]) -> tuple[Graph, list[tuple[Value, Value]]]:
    """The graph with a running total for each of these gradients: its value before and after an
    iteration."""
    builder, totals = Builder(), []
    for n in graph.nodes:
        builder.add(n)
    for g in grads:
        before = builder.input(g.type, f"{g.hint}.total")
        totals.append((before.value, (before + Tracer(g, builder)).value))
    return Graph(graph.inputs, tuple(builder.nodes), graph.outputs), totals


def _zeros(builder: Builder, t: TensorType) -> Any:
    zero = builder.constant(np.zeros((1,) * t.rank, t.dtype.numpy))
    return o.broadcast(zero, shape=t.shape)


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


# ---- before the backward pass ------------------------------------------------------------------

def prepared(node: Node, operands: Sequence[Any], given: Sequence[bool], vjp: Vjp,
             active: Active) -> Sequence[Any] | None:
    """The node in a form that can be differentiated; None if it already has that form."""
    if "bound" in node.attrs:
        return None if endless(node) else _as_scan(node, operands)
    if "body" not in node.attrs:
        return None
    body, count = node.attrs["body"], node.attrs["carries"]
    wrt = _chosen(body.inputs, loop_inputs(node, given, active))
    floats = [i for i, v in enumerate(body.outputs) if v.type.dtype.is_float]
    back = vjp(body, wrt, floats)
    needed = set(pruned(back, back.outputs[len(body.outputs):]).inputs)
    kept = saved(node)
    missing = [v for i, v in enumerate(body.inputs[:count]) if v in needed and i not in kept]
    if not missing:
        return None
    grown = Graph(body.inputs, body.nodes, (*body.outputs, *missing))
    out = o.scan(*operands, **{**node.attrs, "body": grown})
    return _tuple(out)[:len(node.outputs)]


def saved(node: Node) -> dict[int, int]:
    """The carries whose values before each iteration the scan stacks: carry → result."""
    body, count = node.attrs["body"], node.attrs["carries"]
    places = {v: i for i, v in enumerate(body.inputs[:count])}
    return {places[v]: n for n, v in enumerate(body.outputs) if n >= count and v in places}


def _as_scan(node: Node, operands: Sequence[Any]) -> tuple[Any, ...]:
    """A loop of at most n iterations as n steps of a branch, which runs the body or changes
    nothing.

    When the condition fails, nothing changes any more, so it also fails in all later steps.
    """
    cond, body, count = (node.attrs[k] for k in ("cond", "body", "carries"))
    stay = Graph(body.inputs, (), body.inputs[:count])

    def step(*xs: Any) -> Any:
        (on,) = inline(xs[0].builder, cond, xs)
        return o.cond(on, *xs, then=body, orelse=stay)
    scanned = trace(step, [v.type for v in body.inputs], [v.hint for v in body.inputs])
    return _tuple(o.scan(*operands, body=scanned, carries=count, xs=0,
                         length=node.attrs["bound"]))


def unbounded(nodes: Sequence[Node]) -> UnsupportedError:
    """The error for loops without a bound."""
    return UnsupportedError("GT0619", "loops without a bound cannot be differentiated", tuple(
        Unsupported(n.outputs[0].hint, "the greatest number of iterations is not known",
                    (n.where,) if n.where else ()) for n in nodes),
        hint="give a bound: --bound 64, or the attribute bound of `while` in the graph file")


def endless(node: Node) -> bool:
    """Whether it is a loop without a greatest number of iterations."""
    return node.attrs.get("bound", 0) is None


def bounded(graph: Graph, bound: int) -> Graph:
    """The graph with this bound on each loop that has none, also inside regions."""
    def rewrite(node: Node, operands: tuple[Operand, ...], builder: Builder) -> Any:
        inner = {k: bounded(g, bound) for k, g in regions(node).items()}
        if endless(node):
            return _again(node, operands, builder, {**inner, "bound": bound})
        return _again(node, operands, builder, inner) if inner else None
    return rebuild(graph, rewrite)


def lifted(graph: Graph) -> Graph:
    """The graph with the parameters inside its regions as constants outside of them."""
    if not any(_params(inner) for n in graph.nodes for inner in regions(n).values()):
        return graph
    first = [n for n in graph.nodes if is_parameter(n)]
    rest = [n for n in graph.nodes if not is_parameter(n)]
    known = {_held(n): n.outputs[0] for n in first}

    def rewrite(node: Node, operands: tuple[Operand, ...], builder: Builder) -> Any:
        inner = {k: lifted(g) for k, g in regions(node).items()}
        params = {_held(p): p for g in inner.values() for p in g.nodes if is_parameter(p)}
        for key, p in params.items():
            if key not in known:
                known[key] = builder.constant(p.attrs["data"], key[0], param=True).value
        if not params:
            return None
        changed = {k: _with_inputs(g, params) for k, g in inner.items()}
        return _again(node, (*operands, *(known[key] for key in params)), builder, changed)
    return rebuild(Graph(graph.inputs, (*first, *rest), graph.outputs), rewrite)


def _params(graph: Graph) -> bool:
    return any(is_parameter(n) or any(map(_params, regions(n).values())) for n in graph.nodes)


def _held(param: Node) -> tuple[str, str]:
    """The name and the content of a parameter: two regions may give one name to two of them."""
    return param.outputs[0].hint, param.attrs["data"].digest


def _with_inputs(graph: Graph, params: Mapping[tuple[str, str], Node]) -> Graph:
    """The graph with these parameters as inputs after its own."""
    places = {key: Value(p.outputs[0].type, key[0]) for key, p in params.items()}

    def swap(node: Node, _operands: tuple[Operand, ...], _builder: Builder) -> Any:
        return (places[_held(node)],) if is_parameter(node) else None
    return rebuild(Graph((*graph.inputs, *places.values()), graph.nodes, graph.outputs), swap)


def _again(node: Node, operands: Sequence[Any], builder: Builder,
           changed: Mapping[str, Any]) -> tuple[Any, ...]:
    return _tuple(builder.emit(node.op, operands, {**node.attrs, **changed},
                               node.outputs[0].hint))
