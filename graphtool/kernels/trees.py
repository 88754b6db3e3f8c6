"""trees.h: ensembles of decision trees: what the leaves weigh that each row comes to."""

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
FOLD = {"sum": "((a) + (b))", "min": "((a) < (b) ? (a) : (b))", "max": "((a) > (b) ? (a) : (b))"}
TABLES = ("KINDS", "SPLITS", "CHILDREN", "ROOTS", "WEIGHTS")
MACROS = (
    *sizes(ROWS="rows of features", TREES="trees", TARGETS="weights of a leaf"),
    Macro("T", "type", "the type of values, splits, weights and sums"),
    *sizes(XS="elements from a feature to the next", YS="from a result to the next"),
    word("GO", "whether a node says yes", GO, ("kind", "v", "s")),
    word("FOLD", "how weights of several trees join", FOLD, ("a", "b")))
POINTERS = (
    Pointer("X", "a row of features", ("row",)),
    Pointer("Y", "where its results go", ("row",), writes=True),
    Pointer("KINDS", "int32 a node: 16·feature + 2·comparison + missing, or -1 for a leaf"),
    Pointer("SPLITS", "what a node compares with"),
    Pointer("CHILDREN", "two int32 a node: where no and yes lead; a leaf's second is its row"),
    Pointer("ROOTS", "int32 a tree"), Pointer("WEIGHTS", "of a leaf and target"))


def meaning(t: Instance) -> None:
    """The op on the tables as far as they are reached: from each root to the last leaf."""
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
    """Rows are shared out; the tables must lie as they are written down."""
    x, *tables = (site.view(i) for i in range(6))
    out, row, a = site.result(), symbol_of(Symbol("row", 0, None)), site.node.attrs
    assert out is not None
    if x.dtype.bits < 32 or not all(t.contiguous for t in tables):
        raise UnsupportedError("GT2003", f"{site.out.hint}: trees of {x.dtype.name} or over tables "
                                         "that are views")
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
