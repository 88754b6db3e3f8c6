"""Walking graphs. `replay` is the one loop over nodes: it evaluates, rebuilds, differentiates or
lowers, depending on `apply`. `prune` leaves out the nodes that no result needs, `carried` keeps the
choices of plans from graph to graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphtool.io.manifest_rows import Choice
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, names_of
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import all_nodes, needs
from graphtool.ir.trace import Builder, as_value, infer

Apply = Callable[..., Sequence[Any]]
NEVER: Mapping[Node, Sequence[Value]] = {}


def replay(graph: Graph, args: Sequence[Any], apply: Apply,
           last: Mapping[Node, Sequence[Value]] = NEVER,
           done: Callable[[Value], None] | None = None) -> list[Any]:
    """Run `apply(node, *operands) → results` over the nodes in order: the one traversal.

    `args` are the values of the inputs. `last` has, for a node, the values that are dropped after
    it, as `last_uses` finds them; `done` is called with each.
    """
    env: dict[Value, Any] = dict(zip(graph.inputs, args, strict=True))
    for node in graph.nodes:
        results = apply(node, *[env[x] if isinstance(x, Value) else x for x in node.inputs])
        env.update(zip(node.outputs, results, strict=True))
        for v in last.get(node, ()):
            del env[v]
            if done:
                done(v)
    return [env[v] for v in graph.outputs]


def last_uses(graph: Graph) -> dict[Node, list[Value]]:
    """For each node, the values that it is the last to read, and its outputs that nothing reads."""
    kept = set(graph.outputs)
    last: dict[Value, Node] = {}
    for node in graph.nodes:
        for x in (*node.inputs, *node.outputs):
            if isinstance(x, Value):
                last[x] = node
    out: dict[Node, list[Value]] = {}
    for v, node in last.items():
        if v not in kept:
            out.setdefault(node, []).append(v)
    return out


Rewrite = Callable[[Node, tuple[Operand, ...], Builder], Sequence[Any] | None]


def rebuild(graph: Graph, rewrite: Rewrite) -> Graph:
    """A new graph in which `rewrite(node, operands, builder)` may replace each node.

    `rewrite` returns the values that replace the node's outputs, or None to keep the node; a node
    whose operands did not change stays the same object. New nodes are named after the node they
    replace, and the value that replaces another takes its name.
    """
    builder = Builder()

    def apply(node: Node, *inputs: Operand) -> Sequence[Any]:
        with builder.scope(stem(node), node.where, names_of(node)):
            before = len(builder.nodes)
            results = rewrite(node, inputs, builder)
            if results is not None:
                return [_settle(builder, builder.operand(r), v, before)
                        for r, v in zip(results, node.outputs, strict=True)]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            builder.add(node)
            return node.outputs
        return _retyped(builder, node, inputs)

    outputs = replay(graph, graph.inputs, apply)
    return Graph(graph.inputs, tuple(builder.nodes),
                 tuple(as_value(v) for v in outputs))


def in_regions(graph: Graph, function: Callable[[Graph], Graph]) -> Graph:
    """Apply the function to every region, innermost first, then to the graph itself."""
    nodes, changed = [], False
    for node in graph.nodes:
        regions = {k: in_regions(a, function) for k, a in node.attrs.items()
                   if isinstance(a, Graph)}
        if any(node.attrs[k] is not g for k, g in regions.items()):
            changed = True
            node = replace(node, attrs={**node.attrs, **regions})
        nodes.append(node)
    return function(Graph(graph.inputs, tuple(nodes), graph.outputs) if changed else graph)


def stem(node: Node) -> str:
    """The name that begins those of the nodes that replace this one.

    It is the node's own, without the ops that earlier passes have put behind the author's name, so
    that names do not grow from pass to pass: what replaces `relu.cast.div` is `relu.cast` too.
    """
    if not node.outputs:
        return node.op.name
    name, author = node.outputs[0].hint, names_of(node)
    while name not in author and "." in name:
        before, _, last = name.rpartition(".")
        if last.partition("#")[0] not in OPS:
            break
        name = before
    return name


def _settle(builder: Builder, result: Operand, old: Value, before: int) -> Operand:
    """Name a new replacement after the value it replaces, except a constant with a name of its
    own."""
    if isinstance(result, Value) and result in builder.made_by and result.hint != old.hint:
        node = builder.made_by[result]
        if is_constant(node) and not result.hint.startswith(f"{builder.prefix}."):
            return result
        fresh = any(n is node for n in builder.nodes[before:])
        if fresh and not any(result in n.inputs for n in builder.nodes[before:]):
            return builder.rename(result, old.hint)
    return result


def _retyped(builder: Builder, node: Node, inputs: tuple[Operand, ...]) -> tuple[Value, ...]:
    """The node on new operands; values whose types do not change stay the same objects."""
    types = infer(node.op, inputs, dict(node.attrs), node.where)
    types = types if isinstance(types, tuple) else (types,)
    outputs = tuple(v if v.type == t else Value(t, v.hint)
                    for v, t in zip(node.outputs, types, strict=True))
    builder.add(replace(node, inputs=inputs, outputs=outputs))
    return outputs


def inline(builder: Builder, graph: Graph, args: Sequence[Any]) -> list[Any]:
    """The results of a closed graph on these operands, replayed into a builder (for calls,
    unrolling and known branches)."""
    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        if is_constant(node):
            return (builder.constant(node.attrs["data"], node.outputs[0].hint,
                                     node.attrs["param"], node.of),)
        results = builder.emit(node.op, xs, dict(node.attrs))
        return results if isinstance(results, tuple) else (results,)
    return replay(graph, args, apply)


def ancestors(graph: Graph, wanted: Iterable[Value], given: Collection[Value] = ()) -> list[Node]:
    """The nodes from which the values are computed, in order; `given` are known already.

    A node that mentions a size needs also the node that defines it.
    """
    needed, sizes = set(wanted).difference(given), needs(graph)
    makers: set[Node] = set()  # of sizes that are mentioned
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if node in makers or not needed.isdisjoint(node.outputs):
            kept.append(node)
            needed.update(x for x in node.inputs if isinstance(x, Value) and x not in given)
            makers.update(sizes.get(node, ()))
    return kept[::-1]


def prune(graph: Graph, wanted: Collection[Value] = ()) -> Graph:
    """The graph without the nodes that no output and nothing `wanted` depends on; the same object
    if there are none.

    Inputs stay, because they are the interface. A node that checks a size stays too.
    """
    checks = [v for node in graph.nodes if node.attrs.get("checked") for v in node.outputs]
    kept = ancestors(graph, (*graph.outputs, *checks, *wanted))
    if len(kept) == len(graph.nodes):
        return graph
    return Graph(graph.inputs, tuple(kept), graph.outputs)


def planned(graph: Graph) -> Iterator[Node]:
    """The nodes that have a plan, including those of regions."""
    return (n for n in all_nodes(graph) if n.attrs.get("plan") is not None)


def carried(graph: Graph, choices: Mapping[Value, Choice]) -> dict[Value, Choice]:
    """The choices for the nodes of the new graph.

    If a value is missing because a pass replaced it by one of another type, its choice goes to the
    value of the same name.
    """
    values = [n.outputs[0] for n in planned(graph)]
    there = set(values)
    gone: dict[str, list[Choice]] = {}
    for v, choice in choices.items():
        if v not in there:
            gone.setdefault(v.hint, []).append(choice)
    out = {}
    for v in values:
        if v in choices:
            out[v] = choices[v]
        elif gone.get(v.hint):
            out[v] = gone[v.hint].pop(0)
    return out
