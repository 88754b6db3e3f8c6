"""Sizes known only at run time: symbols defined by nodes, and the bounds that the memory plan uses.

A node whose op has the trait `size` defines the symbol in its attribute `size`. A node with the
symbol in a type or an attribute depends on that node as on an operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Node, TensorType, Value
from graphtool.symbolic import (
    Call,
    Dim,
    Poly,
    Symbol,
    bounds,
    dim_of,
    exact_quotient,
    floordiv,
    maximum,
    minimum,
    product,
    symbol_of,
    symbols,
)


def bare(d: Any) -> Symbol | None:
    """The symbol whose value d is; None if d is anything else."""
    if isinstance(d, Poly) and len(d.terms) <= 2 and len(d.terms[0][0]) == 1:
        atom = d.terms[0][0][0][0]
        if isinstance(atom, Symbol) and d == dim_of(atom):
            return atom
    return None


def defined(node: Node) -> Symbol | None:
    """The symbol that the node defines; None for most nodes, and once the size is a number."""
    return bare(node.attrs["size"]) if Trait.SIZE in node.op.traits else None


def size_in_result(node: Node) -> Symbol | None:
    """The symbol that the node defines, if its result is that number; None where the shapes of the
    results have it."""
    return defined(node) if node.op.lowering is Lowering.VIEW else None


def all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of its regions."""
    for node in graph.nodes:
        yield node
        for a in node.attrs.values():
            if isinstance(a, Graph):
                yield from all_nodes(a)


def sizes_of(node: Node) -> list[Symbol]:
    """The sizes that the node and the nodes of its regions define."""
    sizes = [s] if (s := defined(node)) is not None else []
    return sizes + [s for a in node.attrs.values() if isinstance(a, Graph)
                    for n in all_nodes(a) if (s := defined(n)) is not None]


def definitions(graph: Graph) -> dict[str, Node]:
    """The nodes that define sizes, by the symbols' names, including those of regions."""
    return {s.name: n for n in all_nodes(graph) if (s := defined(n)) is not None}


def mentioned(node: Node) -> frozenset[str]:
    """The symbols in the node's types and attributes; symbols that its regions define are left
    out."""
    result: set[str] = set()
    for v in node.outputs:
        _see(v, result)
    for a in node.attrs.values():
        _see(a, result)
    return frozenset(result)


def _see(x: Any, result: set[str]) -> None:
    match x:
        case Poly():
            result.update(s.name for s in symbols(x))
        case tuple():
            for i in x:
                _see(i, result)
        case Value(type=TensorType(shape=shape)):
            _see(shape, result)
        case Graph():
            inner: set[str] = set()
            _see(x.inputs, inner)
            for n in x.nodes:
                inner |= mentioned(n)
            result |= inner - {s.name for n in x.nodes if (s := defined(n)) is not None}


def needs(graph: Graph) -> dict[Node, tuple[Node, ...]]:
    """For each node, the nodes that define the sizes it mentions; empty where none does."""
    makers = {s.name: n for n in graph.nodes if (s := defined(n)) is not None}
    if not makers:
        return {}
    return {n: nodes for n in graph.nodes
            if (nodes := tuple(makers[name] for name in sorted(mentioned(n) & makers.keys())
                               if makers[name] is not n))}


# ---- bounds ------------------------------------------------------------------------------------

def limits(graph: Graph) -> dict[str, Dim | None]:
    """The upper bound of each size in terms of the graph's own symbols; None if none is known."""
    out: dict[str, Dim | None] = {}
    for name, node in definitions(graph).items():
        size = defined(node)
        assert size is not None
        most: Dim | None = node.attrs.get("most")
        known_most = None if most is None else at_most(most, out)
        bounds = [d for d in (known_most, size.hi) if d is not None]
        out[name] = minimum(*bounds) if len(bounds) == 2 else bounds[0] if bounds else None
    return out


def unbounded(graph: Graph) -> dict[str, frozenset[str]]:
    """For each size without a bound: the sizes that need a bound: the size itself, or the sizes
    that bound it."""
    most = limits(graph)
    out: dict[str, frozenset[str]] = {}
    for name, node in definitions(graph).items():
        if most[name] is None:
            bound = node.attrs.get("most")
            of = (s.name for s in symbols(bound)) if bound is not None else ()
            out[name] = frozenset().union(*(out[n] for n in of if n in out)) or frozenset((name,))
    return out


def at_most(d: Dim, most: Mapping[str, Dim | None]) -> Dim | None:
    """An upper bound of d without the symbols in `most`; None where none is known."""
    if not any(s.name in most for s in symbols(d)):
        return d
    assert isinstance(d, Poly)
    total: Dim = 0
    for mono, coeff in d.terms:
        term: Dim = coeff
        if coeff < 0:
            part = Poly(((mono, 1),))
            if any(s.name in most for s in symbols(part)):
                low = bounds(part)[0]
                if low is None:
                    return None
                term = coeff * low
            else:
                term = Poly(((mono, coeff),))
        else:
            for factor in _factors(mono):
                high = _most(factor, most)
                low = bounds(factor)[0]
                if high is None or (len(mono) > 1 and (low is None or low < 0)):
                    return None
                term = term * high
        total = total + term
    return total


def _factors(mono: Any) -> list[Dim]:
    """The factors of a product. n//d and the factors that make up d count as one factor, at most
    n."""
    factors: list[Dim] = [Poly(((((a, 1),), 1),)) for a, p in mono for _ in range(p)]
    for a, _ in mono:
        if isinstance(a, Call) and a.fn == "//":
            rest = list(factors)
            rest.remove(Poly(((((a, 1),), 1),)))
            left = exact_quotient(product(rest), _unguarded(a.b))
            if left is not None and (bounds(a.a)[0] or -1) >= 0:
                return [a.a, left]
    return factors


def _unguarded(d: Dim) -> Dim:
    """x of max(x, 1), a form that prevents a division by zero."""
    if isinstance(d, Poly) and len(d.terms) == 1 and d.terms[0][1] == 1 and len(d.terms[0][0]) == 1:
        match d.terms[0][0][0]:
            case (Call("max", 1, x) | Call("max", x, 1)), 1:
                return x
    return d


def _most(d: Dim, most: Mapping[str, Dim | None]) -> Dim | None:
    """The upper bound of one factor."""
    if isinstance(d, int):
        return d
    (mono, coeff), = d.terms if len(d.terms) == 1 else (((), 0),)
    if coeff != 1 or len(mono) != 1:
        return at_most(d, most)
    match mono[0][0]:
        case Symbol() as s:
            return most[s.name] if s.name in most else symbol_of(s)
        case Call("min", a, b):
            least = [x for x in (at_most(a, most), at_most(b, most)) if x is not None]
            return minimum(*least) if len(least) == 2 else least[0] if least else None
        case Call("max", a, b):
            both = at_most(a, most), at_most(b, most)
            return None if both[0] is None or both[1] is None else maximum(both[0], both[1])
        case Call("//", a, b):
            high, low = at_most(a, most), bounds(b)[0]
            return None if high is None else floordiv(high, max(low or 1, 1))
        case Call("%", _, b):
            high = at_most(b, most)
            return None if high is None else high - 1
    return None
