"""Checks a graph from scratch: order, types (re-inferred, not trusted), groups. Changes nothing."""

from __future__ import annotations

from graphtool.errors import InputError, InternalError
from graphtool.ir.graph import Graph, Group, Module, Node, Value, producers
from graphtool.ir.plan import Plan
from graphtool.ir.run_sizes import all_nodes, defined, mentioned, needs
from graphtool.ir.text import node_text, value_names
from graphtool.ir.trace import infer
from graphtool.symbolic import symbols

_NEIGHBOURS = 3


def verify_module(module: Module) -> None:
    """Raises InternalError GT71xx, or InputError GT0410 for a symbol that nothing declares."""
    verify(module.graph)
    if len(module.output_names) != len(module.graph.outputs):
        raise InternalError("GT7110", f"{len(module.graph.outputs)} outputs, "
                                      f"{len(module.output_names)} names")
    declared = set(module.symbols)
    for v in module.graph.inputs:
        for d in v.type.shape:
            for s in symbols(d):
                if s.name not in declared:
                    raise InputError("GT0410", f"the dimension {s.name!r} is not declared",
                                     where=f"input {v.hint}: {v.type}")
    if any(defined(n) for n in all_nodes(module.graph)):
        _verify_sizes(module.graph, declared, set(declared))


def _verify_sizes(graph: Graph, known: set[str], taken: set[str]) -> None:
    """Every size is defined once in the module, before a type or attribute uses it."""
    for at, node in enumerate(graph.nodes):
        size = defined(node)
        if size is not None:
            if size.name in taken:
                raise _fault("GT7111", f"the size {size.name} is defined twice", graph, at)
            taken.add(size.name)
            known.add(size.name)
        if missing := sorted(mentioned(node) - known):
            raise _fault("GT7112", f"the size {missing[0]} is used before it is defined", graph, at)
        for a in node.attrs.values():
            if isinstance(a, Graph):
                _verify_sizes(a, set(known), taken)


def verify(graph: Graph) -> None:
    """Checks that every operand is defined once, before its use, and has the type that `infer`
    gives."""
    defined = set(graph.inputs)
    for at, node in enumerate(graph.nodes):
        for x in node.inputs:
            if isinstance(x, Value) and x not in defined:
                raise _fault("GT7101", f"{x.hint} is used before it is defined", graph, at)
        types = infer(node.op, node.inputs, dict(node.attrs), node.where)
        types = types if isinstance(types, tuple) else (types,)
        if tuple(v.type for v in node.outputs) != types:
            wanted = ", ".join(map(str, types))
            raise _fault("GT7102", f"{node.op.name} gives {wanted}", graph, at)
        if why := _misplanned(node):
            raise _fault("GT7113", why, graph, at)
        for v in node.outputs:
            if v in defined:
                raise _fault("GT7103", f"{v.hint} is defined twice", graph, at)
            defined.add(v)
        for a in node.attrs.values():
            if isinstance(a, Graph):
                verify(a)
    for v in graph.outputs:
        if v not in defined:
            raise InternalError("GT7104", f"the output {v.hint} is not defined")
    _verify_groups(graph)


def _misplanned(node: Node) -> str:
    """Why the kernel does not accept the node's plan; empty if it does."""
    plan = node.attrs.get("plan")
    if not isinstance(plan, Plan):
        return ""
    form = next((f for f in node.op.plans if f.kind == plan.kind), None)
    return form.fault(plan) if form else f"{node.op.name} is not computed by {plan.kind}"


def _verify_groups(graph: Graph) -> None:
    order = {node: i for i, node in enumerate(graph.nodes)}
    owner: dict[Node, Group] = {}
    for group in graph.groups:
        if group.kind not in ("nest", "template"):
            raise InternalError("GT7105", f"group {group.root.hint} has the kind {group.kind!r}")
        for node in group.members:
            if node not in order:
                raise InternalError("GT7106", f"group {group.root.hint} has a foreign member")
            if node in owner:
                raise InternalError("GT7107", f"{node.outputs[0].hint} is in two groups")
            owner[node] = group
    _verify_convex(graph, owner)


def _verify_convex(graph: Graph, owner: dict[Node, Group]) -> None:
    """Checks that no path leaves a group and returns: with each group as one point, there is no
    cycle."""
    point: dict[Node, object] = {n: owner.get(n, n) for n in graph.nodes}
    edges: dict[int, set[int]] = {}
    made_by = producers(graph)
    for n in graph.nodes:
        for x in n.inputs:
            if isinstance(x, Value) and x in made_by:
                a, b = id(point[made_by[x]]), id(point[n])
                if a != b:
                    edges.setdefault(b, set()).add(a)
    for n, makers in needs(graph).items():
        edges.setdefault(id(point[n]), set()).update(id(point[m]) for m in makers
                                                     if point[m] is not point[n])
    state: dict[int, int] = {}
    for start in list(edges):
        stack = [(start, iter(edges.get(start, ())))]
        if state.get(start):
            continue
        state[start] = 1
        while stack:
            here, more = stack[-1]
            for nxt in more:
                if state.get(nxt) == 1:
                    raise InternalError("GT7108", "a fusion group is not convex: its members "
                                                  "depend on each other through other kernels")
                if nxt not in state:
                    state[nxt] = 1
                    stack.append((nxt, iter(edges.get(nxt, ()))))
                    break
            else:
                state[here] = 2
                stack.pop()


def _fault(code: str, message: str, graph: Graph, at: int) -> InternalError:
    """The error with the neighbouring nodes, as the listing shows them."""
    names = value_names(graph)
    for node in graph.nodes:
        for x in node.inputs:
            if isinstance(x, Value):
                names.setdefault(x, f"?{x.hint}")
    near = range(max(0, at - _NEIGHBOURS), min(len(graph.nodes), at + _NEIGHBOURS + 1))
    lines = [("> " if i == at else "  ") + node_text(graph.nodes[i], names) for i in near]
    return InternalError(code, message, where=lines)
