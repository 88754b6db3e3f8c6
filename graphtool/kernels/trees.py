"""trees.h: ensembles of decision trees: the weights of the leaves that each row reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    Area, Array, Contract, Instance, Lowered, Macro, MacroValue, Numbers, Pointer, Record,
    Symbol, UnsupportedError, Use, anywhere, register, sizes, start, symbol_of, word, work_of)

SIGNS = {"le": "<=", "lt": "<", "ge": ">=", "gt": ">", "eq": "==", "ne": "!="}
_GO = {name: f"((v) {sign} (s))" for name, sign in SIGNS.items()} | {
    "mixed": " || ".join(f"((((kind) >> 1) & 7) == {i} && (v) {sign} (s))"
                         for i, sign in enumerate(SIGNS.values()))}
_LOST = " || (((kind) & 1) && (v) != (v))"
GO = {name: f"({c})" for name, c in _GO.items()} | {
    f"{name} or missing": f"({c}{_LOST})" for name, c in _GO.items()}
FOLD = {"sum": "((a) + (b))", "min": "((a) < (b) || (a) != (a) ? (a) : (b))",
        "max": "((a) > (b) || (a) != (a) ? (a) : (b))"}  # a NaN wins
TABLES = ("KINDS", "SPLITS", "CHILDREN", "ROOTS", "WEIGHTS")
MACROS = (
    *sizes(ROWS="rows of features", TREES="trees", TARGETS="weights of a leaf"),
    Macro("T", "type", "the type of values, splits, weights and sums"),
    *sizes(XS="elements between adjacent features", YS="between adjacent results"),
    Macro("NODES", "size", "nodes, where the tables are not constants", None),
    Macro("LEAVES", "size", "leaves, likewise", None),
    Macro("FEATURES", "size", "features, likewise", None),
    word("GO", "whether the comparison of a node is true", GO, ("kind", "v", "s")),
    word("FOLD", "how the weights of several trees are combined", FOLD, ("a", "b")))
POINTERS = (
    Pointer("X", "a row of features", ("row",)),
    Pointer("Y", "memory for its results", ("row",), writes=True),
    Pointer("KINDS", "one int32 for each node: 16·feature + 2·comparison + missing, or -1 for a "
                     "leaf"),
    Pointer("SPLITS", "the number with which a node compares"),
    Pointer("CHILDREN", "two int32 for each node: the next node for false and for true; the "
                        "second of a leaf is its row of weights"),
    Pointer("ROOTS", "one int32 for each tree"), Pointer("WEIGHTS", "one for each leaf and target"))


def meaning(t: Instance) -> None:
    """The op, on those parts of the tables that can be reached from the roots."""
    rows, count, targets = t.sizes("ROWS TREES TARGETS")
    kinds, leaves = t.pointer("KINDS"), t.pointer("WEIGHTS")
    nodes = min(kinds.size, t.pointer("SPLITS").size, t.pointer("CHILDREN").size // 2)
    features = int(kinds[:nodes].max(initial=0) >> 4) + 1
    x = t.array("X", (features,), (t.get("XS"),), (0,))[None].repeat(rows, 0)
    for row in range(rows):
        x[row] = t.array("X", (features,), (t.get("XS"),), (row,))
    compare, _, missing = t.get("GO").partition(" or ")
    y = o.trees(x, kinds[:nodes], t.array("SPLITS", (nodes,)), t.array("CHILDREN", (nodes, 2)),
                t.array("ROOTS", (count,)), leaves[:leaves.size // targets * targets].reshape(
                         -1, targets), depth=nodes, compare=compare, missing=bool(missing),
                fold=t.get("FOLD"))
    for row in range(rows):
        t.store("Y", y[row], (t.get("YS"),), (row,))


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    rows, count, targets, kind = t.sizes("ROWS TREES TARGETS T")
    t.need(kind.bits >= 32, "values of 32 bits or more")
    yield Area("X", (1,), (t.get("XS"),), (rows,), kind)
    yield Area("Y", (targets,), (t.get("YS"),), (rows,), kind)
    yield Area("ROOTS", (count,), dtype=dtypes.int32, decides=not t.has("NODES"))
    if t.has("NODES"):
        nodes, leaves, features = t.sizes("NODES LEAVES FEATURES")
        t.need(min(nodes, leaves, features) > 0, "one node, leaf and feature")
        yield from _tables(t, nodes, leaves, features)
    else:
        yield from (Area(name, (1,), dtype=dtypes.int32, decides=True)
                    for name in ("KINDS", "CHILDREN"))


def _tables(t: Numbers, nodes: int, leaves: int, features: int) -> Iterator[Area]:
    """The tables of so many nodes and leaves, and rows with so many features."""
    kind, rows = t.get("T"), t.get("ROWS")
    yield Area("X", (features,), (t.get("XS"),), (rows,), kind)
    yield Area("KINDS", (nodes,), dtype=dtypes.int32)
    yield Area("SPLITS", (nodes,), dtype=kind)
    yield Area("CHILDREN", (nodes, 2), dtype=dtypes.int32)
    yield Area("WEIGHTS", (leaves, t.get("TARGETS")), dtype=kind)


def _ends(kinds: Array, children: Array) -> bool:
    """Whether each walk down from any node ends at a leaf."""
    inner = np.flatnonzero(kinds >= 0)
    to = children[inner].ravel()
    order = np.argsort(to, kind="stable")
    parents, first = np.repeat(inner, 2)[order], np.searchsorted(to[order], np.arange(
        len(kinds) + 1))
    left = np.where(kinds >= 0, 2, 0)  # children from which it is not known yet
    done = np.flatnonzero(kinds < 0)
    while done.size:
        above = np.concatenate([parents[a:b] for a, b in zip(
            first[done], first[done + 1], strict=True)])
        np.subtract.at(left, above, 1)
        done = np.unique(above[left[above] == 0])
    return not left.any()


def touches_by_tables(t: Numbers, tables: Mapping[str, Array]) -> Iterator[Area]:
    """What constant tables lead to. Unless they are constants, the C looks where they lead."""
    if t.has("NODES"):
        return
    kinds, children = tables["KINDS"], tables["CHILDREN"].reshape(-1, 2)
    nodes = min(len(kinds), len(children))
    kinds, children = kinds[:nodes], children[:nodes]
    inner, leaves = children[kinds >= 0], children[kinds < 0, 1]
    roots = tables["ROOTS"][:t.get("TREES")]
    places = [*inner.ravel(), *roots, *leaves]
    t.need(min(places, default=0) >= 0 and max([*inner.ravel(), *roots], default=-1) < nodes,
           "children and roots that are nodes")
    t.need(_ends(kinds, children), "children that lead to leaves, not in a circle")
    yield from _tables(t, nodes, int(leaves.max(initial=-1)) + 1,
                       int((kinds >> 4).max(initial=-1)) + 1)


def lower(use: Use) -> Lowered:
    """Threads divide the rows; the tables must be dense in memory."""
    x, *tables = (use.view(i) for i in range(6))
    out, row, a = use.result(), symbol_of(Symbol("row", 0, None)), use.node.attrs
    assert out is not None
    if x.dtype.bits < 32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{use.out.hint}: trees over {x.dtype.name}, or trees "
                                         f"with tables that are views")
    count = tables[3].shape[0]
    macros: dict[str, MacroValue] = {
        "ROWS": x.shape[0], "TREES": count, "TARGETS": tables[4].shape[1], "T": x.dtype,
              "XS": x.strides[1], "YS": out.strides[1],
              "GO": a["compare"] + " or missing" * a["missing"], "FOLD": a["fold"]}
    pointers = {"X": (x.buffer, x.index((row, 0))), "Y": (out.buffer, out.index((row, 0))),
                **dict(zip(TABLES, map(start, tables), strict=True))}
    if not all(map(use.constant, tables)):
        macros |= {"NODES": tables[0].shape[0], "LEAVES": tables[4].shape[0],
                   "FEATURES": x.shape[1]}
    visits = x.shape[0] * count * a["depth"]
    return Lowered(use.template("trees", macros, pointers), visits, work_of(visits * 8))


register(Record(Contract("trees", "ensembles of decision trees", MACROS, POINTERS, meaning,
                         touches=touches, tables=touches_by_tables,
                         grain="pieces"),
                {"trees": lower}, anywhere))
