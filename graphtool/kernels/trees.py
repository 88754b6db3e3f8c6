"""trees.h: ensembles of decision trees: the weights of the leaves that each row reaches."""

from __future__ import annotations

from graphtool import ops as o
from graphtool.errors import UnsupportedError
from graphtool.kernels.record import Record, anywhere, register
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import start, work_of
from graphtool.loops.contract import Contract, Macro, Pointer, sizes, word
from graphtool.loops.instance import Instance
from graphtool.symbolic import Symbol, symbol_of

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


def lower(site: Site) -> Lowered:
    """Threads divide the rows; the tables must be dense in memory."""
    x, *tables = (site.view(i) for i in range(6))
    out, row, a = site.result(), symbol_of(Symbol("row", 0, None)), site.node.attrs
    assert out is not None
    if x.dtype.bits < 32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{site.out.hint}: trees over {x.dtype.name}, or trees "
                                         f"with tables that are views")
    count = tables[3].shape[0]
    macros = {"ROWS": x.shape[0], "TREES": count, "TARGETS": tables[4].shape[1], "T": x.dtype,
              "XS": x.strides[1], "YS": out.strides[1],
              "GO": a["compare"] + " or missing" * a["missing"], "FOLD": a["fold"]}
    pointers = {"X": (x.buffer, x.index((row, 0))), "Y": (out.buffer, out.index((row, 0))),
                **dict(zip(TABLES, map(start, tables), strict=True))}
    visits = x.shape[0] * count * a["depth"]
    return Lowered(site.template("trees", macros, pointers), visits, work_of(visits * 8))


register(Record(Contract("trees", "ensembles of decision trees", MACROS, POINTERS, meaning),
                {"trees": lower}, anywhere))
