"""Renames the dims of a module: those called like the lowering's own iterators (`n`, `i0`), and
dims that must be equal to other dims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool.ir.bind import bind
from graphtool.ir.graph import Graph, Group, Module
from graphtool.ir.replay import carried
from graphtool.ir.run_sizes import bare, defined, definitions
from graphtool.loops.dim_names import in_program
from graphtool.symbolic import Dim, dim_of


def own_names(module: Module) -> Module:
    """The module, with the names that its dims have in a program."""
    taken = dict(module.symbols) | {
        n: s for n, node in definitions(module.graph).items() if (s := defined(node)) is not None}
    renamed = {name: new for name in taken if (new := in_program(name)) != name}
    if not renamed:
        return module
    symbols = {renamed.get(n, n): replace(s, name=renamed.get(n, n))
               for n, s in module.symbols.items()}
    dims = {n: dim_of(replace(taken[n], name=new)) for n, new in renamed.items()}
    module = replace(module, symbols=symbols, requires=tuple(e.under(dims)
                                                             for e in module.requires))
    return _rebound(module, dims)


def one_name(module: Module) -> Module:
    """The module, in whose graph each size has one name: what must be equal to another size is
    written as that one."""
    equal = {s.name: e.right for e in module.requires if (s := bare(e.left)) is not None}
    return _rebound(module, equal) if equal else module


def _rebound(module: Module, sizes: Mapping[str, Dim]) -> Module:
    old = module.graph
    graph = _grouped(old, bind(old, sizes))
    return replace(module, graph=graph, choices=carried(graph, module.choices))


def _grouped(old: Graph, new: Graph) -> Graph:
    """The new graph, with the groups of the old one."""
    node = dict(zip(old.nodes, new.nodes, strict=True))
    value = {v: w for n, m in node.items() for v, w in zip(n.outputs, m.outputs, strict=True)}
    groups = tuple(Group(value[g.root], tuple(node[n] for n in g.members), g.kind)
                   for g in old.groups)
    return replace(new, groups=groups)
