"""The least values of open sizes with which a graph has a meaning, and its shapes a simple form.

A convolution with a window of 3 over N elements needs an N of 3 or more. A smaller N is refused
where it enters, not where the window does not fit. The greatest of N elements needs one.
The last of N elements is one, but min(N, 1) if N may be 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from graphtool import ops as o
from graphtool.analysis.costs import decomposed, signature
from graphtool.errors import InputError
from graphtool.front import Array
from graphtool.ir.graph import Graph, Node, TensorType
from graphtool.ir.run_sizes import all_nodes
from graphtool.ops.indexing import conv_defaults, dilate
from graphtool.symbolic import (
    Dim,
    Equation,
    Poly,
    Symbol,
    dim_of,
    known,
    maximum,
    substitute,
    symbols,
    text,
)
from graphtool.symbolic.bounding import MOST


def least_sizes(sizes: Iterable[Dim], free: Mapping[str, Symbol]) -> dict[str, int]:
    """The new lower bounds of symbols in `free`, by name.

    A size with more than one symbol tells nothing, because either of them might be larger.
    """
    out: dict[str, int] = {}
    for d in dict.fromkeys(sizes):
        names = symbols(d)
        if len(names) != 1 or names[0].name not in free or known(d, "<", 0) is not None:
            continue
        s = free[names[0].name]
        n = _least(d, s)
        if n is not None:
            out[s.name] = max(n, out.get(s.name, n))
    return out


def not_empty(graph: Graph, assumed: Iterable[Equation], free: Mapping[str, Symbol]
              ) -> dict[str, int]:
    """The symbols of `free` that should not be 0, as bounds by name: an op needs an element, or a
    size has a simpler form without 0, or a condition of `assumed` always holds without it."""
    may = {n: dim_of(replace(s, lo=1)) for n, s in free.items() if s.lo == 0}
    out: dict[str, int] = {}
    nodes = list(_in_parts(all_nodes(graph), set(), may)) if may else []
    for d in dict.fromkeys(d for n in nodes for d in _needed(n)):
        out |= {s.name: 1 for s in symbols(d) if s.name in may and known(d, "<=", 0) is None}
    sizes = (d for n in nodes for v in n.outputs for d in v.type.shape)
    for d in dict.fromkeys(d for d in sizes if isinstance(d, Poly)):
        for s in symbols(d):
            if s.name in may and len(text(substitute(d, {s.name: may[s.name]}))) < len(text(d)):
                out[s.name] = 1
    for e in assumed:
        out |= {n: 1 for n in e.names if n in may and e.under({n: may[n]}).holds}
    return out


def fitting_conv(x: Array, w: Array, **attrs: Any) -> Any:
    """`conv` of x [N, C, …] with w [M, C / groups, …], whose window may have an open size.

    A window of fixed size fits: runtimes refuse less. Where the size of the window is open, a run
    is required to have one that fits; the padding behind says so too, so that the number of windows
    is never negative.
    """
    n, edges = w.ndim - 2, []
    strides, padding, lhs, rhs = conv_defaults(n, *map(attrs.get, (
        "strides", "padding", "lhs_dilation", "rhs_dilation")))
    for d, k, s, (lo, hi), a, b in zip(x.shape[2:], w.shape[2:], strides, padding, lhs, rhs,
                                       strict=True):
        room = dilate(d, a) + lo + hi - dilate(k, b) + s
        if isinstance(k, int):
            x.builder.fits(room - s)
        elif known(room, "<", 0) is not False:
            x.builder.require(maximum(room, 0), room)
            hi = hi + maximum(room, 0) - room
        edges.append((lo, hi))
    return o.conv(x, w, **{**attrs, "padding": tuple(edges)})


def _in_parts(nodes: Iterable[Node], seen: set[Any], may: Container[str]) -> Iterator[Node]:
    """The nodes, and what those on sizes of `may` consist of, each kind once."""
    for node in nodes:
        types, attrs = signature(node)
        open_ = (d for t in types if isinstance(t, TensorType) for d in t.shape)
        if not any(s.name in may for d in open_ for s in symbols(d)):
            continue
        yield node
        key = node.op, types, attrs
        if node.op.decompose is None or any(isinstance(a, Graph) for _, a in attrs) or key in seen:
            continue
        seen.add(key)
        with suppress(InputError):  # sizes are asked for that only a run has
            yield from _in_parts(all_nodes(decomposed(*key)), seen, may)


def _needed(node: Node) -> Sequence[Dim]:
    return node.op.filled(*signature(node)[0], **node.attrs) if node.op.filled is not None else ()


def _least(d: Dim, s: Symbol) -> int | None:
    """The least bound n of the symbol under which d is surely not negative; None if there is
    none."""
    def fits(n: int) -> bool:
        return known(substitute(d, {s.name: dim_of(replace(s, lo=n))}), "<", 0) is False
    low, high = s.lo or 0, MOST if s.hi is None else min(s.hi, MOST)
    if high <= low or not fits(high):
        return None
    return low + bisect_left(range(low, high), True, key=fits)  # a tighter bound never fits less
