"""sort.h: the first K elements of each row in order, and their indices. Equal elements keep
their order."""

from __future__ import annotations

from collections.abc import Iterator

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.kit import (
    Area, Contract, Dim, Instance, Lowered, Macro, MacroValue, Numbers, Pointer, Record, Symbol,
    UnsupportedError, Use, View, anywhere, product, register, sizes, symbol_of, unflatten_index,
    word, work_of)

# NaN counts as the greatest element; types without NaN need no test for it
ORDERS = {"rising": "((a) < (b))", "falling": "((a) > (b))",
          "rising floats": "((a) < (b) || ((b) != (b) && (a) == (a)))",
          "falling floats": "((a) > (b) || ((a) != (a) && (b) == (b)))"}
# the upper bits of elements with less than 8 bits are undefined
LOADS = {"as it is": "(e)"} | {
    d.short: f"gt_{d.short}_to_f32(e)" for d in dtypes.TABLE if d.is_narrow} | {
    d.short: f"gt_wrap_{d.short}(e)" for d in dtypes.TABLE if d.is_integer and d.is_packed}
MACROS = (
    *sizes(ROWS="rows", N="elements of a row", K="number of elements to return"),
    Macro("KEY", "type", "the type in which elements are compared"),
    word("LOAD", "an element as a key", LOADS, ("e",)),
    word("BEFORE", "whether key a must come before key b", ORDERS, ("a", "b")),
    *sizes(XS="elements between adjacent elements of a row"),
    Macro("VS", "size", "elements between adjacent values", None),
    Macro("IS", "size", "elements between adjacent indices", None))
POINTERS = (
    Pointer("X", "the first element of a row", ("row",)),
    Pointer("V", "memory for the values", ("row",), False, True),
    Pointer("I", "memory for the indices, int64", ("row",), False, True),
    Pointer("WORK", "memory of thread t for 2·N int64", ("t",), writes=True))


def meaning(t: Instance) -> None:
    """Each row sorted; its first K elements are stored."""
    rows, k, falling = *t.sizes("ROWS K"), t.get("BEFORE").startswith("falling")
    for row in range(rows):
        values, places = o.sort(t.read("X", row), axis=0, descending=falling)
        for name, sorted_values in (("V", values), ("I", places)):
            if t.has(name):
                t.write(name, sorted_values[:k], row)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    rows, n, k = t.sizes("ROWS N K")
    t.need(k <= n, "K of at most N")
    yield Area("X", (n,), (t.get("XS"),), (rows,), None)
    for name, kind in (("V", None), ("I", dtypes.int64)):
        if t.has(name):
            t.need(t.get(f"{name}S") is not None, f"{name}S")
            yield Area(name, (k,), (t.get(f"{name}S"),), (rows,), kind)
    yield Area("WORK", (2 * n,), None, (t.threads,), dtypes.int64)


def lower(use: Use) -> Lowered:
    """The rows are all axes but the sorted one. `largest` of top_k is `descending` of sort."""
    x, node = _row_of_one(use.view(0)), use.node
    axis = node.attrs["axis"] % len(x.shape)
    first = not node.attrs.get("largest", node.attrs.get("descending"))
    n, k = x.shape[axis], node.attrs.get("k", x.shape[axis])
    row = symbol_of(Symbol("row", 0, None))
    work = use.scratch(2 * n, dtype=dtypes.int64)
    if use.shares_bytes(x):
        raise UnsupportedError("GT2003", f"{use.out.hint}: a sort of a {x.dtype.name} constant, "
                                         f"whose elements share bytes",
                               hint="cast it to 8 bits first")
    key, load = x.dtype, x.dtype.short if x.dtype.short in LOADS else "as it is"
    if x.dtype.is_narrow:
        key = dtypes.float32
    order = ("rising" if first else "falling") + (" floats" if key.is_float else "")
    macros: dict[str, MacroValue] = {
        "ROWS": product(x.shape[:axis] + x.shape[axis + 1:]), "N": n, "K": k, "KEY": key,
        "LOAD": load, "BEFORE": order, "XS": x.strides[axis]}
    pointers = {"X": (x.buffer, _row_start(x, axis, row))}
    for i, letter in enumerate("VI"):
        if (result := use.result(i)) is not None:
            view = _row_of_one(result)
            macros[f"{letter}S"] = view.strides[axis]
            pointers[letter] = (view.buffer, _row_start(view, axis, row))
    pointers["WORK"] = (work, symbol_of(Symbol("t", 0, None)) * (2 * n))
    size = product(x.shape)
    return Lowered(use.template("sort", macros, pointers), size * 8, work_of(size * 16))


def _row_of_one(v: View) -> View:
    return v if v.shape else View(v.buffer, v.dtype, (1,), (1,), v.offset)


def _row_start(v: View, axis: int, row: Dim) -> Dim:
    """Where row `row` of a view starts; rows are counted over all axes but one, row-major."""
    shape = v.shape[:axis] + v.shape[axis + 1:]
    at = unflatten_index(row, shape) if product(shape) != 1 else (0,) * len(shape)
    return v.index((*at[:axis], 0, *at[axis:]))


register(Record(Contract("sort", "the first elements of rows in order", MACROS, POINTERS, meaning,
                         touches=touches, grain="pieces"),
                {"sort": lower, "top_k": lower}, anywhere))
