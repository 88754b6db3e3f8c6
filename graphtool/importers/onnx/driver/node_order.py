"""Orders nodes by a stable topological sort, and reports the faults that prevent it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from graphtool.errors import InputError
from graphtool.escaping import line


def subgraphs(node: Any) -> list[Any]:
    """The graphs among a node's attributes."""
    return [g for a in node.attribute for g in ([a.g] if a.type == a.GRAPH else a.graphs)]


def reads(node: Any) -> list[str]:
    """The names that a node needs: its inputs, and what its subgraphs read from outside."""
    out = [name for name in node.input if name]
    for g in subgraphs(node):
        out += free_names(g)
    return out


def free_names(graph: Any) -> list[str]:
    """The names that a graph reads but does not define."""
    defined = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    defined |= {t.values.name for t in graph.sparse_initializer}
    defined |= {name for n in graph.node for name in n.output}
    wanted = [name for n in graph.node for name in reads(n)] + [v.name for v in graph.output]
    return [name for name in dict.fromkeys(wanted) if name not in defined]


def title(node: Any) -> str:
    """The node's name as messages show it."""
    return line(f"{node.name or next(iter(node.output), '') or '?'} ({node.op_type})")


def graph_title(graph: Any) -> str:
    """The graph's name as messages show it."""
    return line(f"graph {graph.name}") if graph.name else "the model's graph"


def ordered(nodes: Sequence[Any], defined: Container[str]) -> list[Any]:
    """The nodes, each behind those it reads; a valid order is kept.

    Raises InputError GT1010 for a cycle, GT1011 for a name that nothing defines, GT1012 for a name
    that is defined twice.
    """
    maker: dict[str, int] = {}
    for i, n in enumerate(nodes):
        for name in n.output:
            if name and name in maker:
                raise InputError("GT1012", f"the value {name!r} is defined twice",
                                 where=(title(nodes[maker[name]]), title(n)))
            if name:
                maker[name] = i
    needs = [_needs(n, maker, defined) for n in nodes]
    if all(j < i for i, row in enumerate(needs) for j in row):
        return list(nodes)
    return [nodes[i] for i in _sorted(nodes, needs)]


def _needs(node: Any, maker: dict[str, int], defined: Container[str]) -> list[int]:
    out = []
    for name in reads(node):
        if name in maker:
            out.append(maker[name])
        elif name not in defined:
            raise InputError("GT1011", f"{name!r} is read, but no node, input or initializer "
                                       "defines it", where=title(node))
    return out


def _sorted(nodes: Sequence[Any], needs: Sequence[Iterable[int]]) -> list[int]:
    """Indices in depth-first order; iterative, so that a long chain cannot overflow."""
    out: list[int] = []
    state = [0] * len(nodes)  # 1 open, 2 done
    for start in range(len(nodes)):
        stack = [start] if not state[start] else []
        while stack:
            i = stack[-1]
            state[i] = max(state[i], 1)
            missing = [j for j in needs[i] if state[j] != 2]
            if not missing:
                stack.pop()
                if state[i] != 2:
                    state[i] = 2
                    out.append(i)
                continue
            if state[missing[0]] == 1:
                ring = stack[stack.index(missing[0]):]
                raise InputError("GT1010", "the nodes form a cycle",
                                 where=[title(nodes[k]) for k in ring[:8]])
            stack.append(missing[0])
    return out
