"""sort.h: the first K elements of each row in order, and their indices. Equal elements keep
their order.

A thread of a processor sorts a row. On a device a block sorts a tile of a row, and further launches
merge sorted runs in pairs, of which only the first K elements count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.kernels.kit import (
    Area, Array, Contract, Dim, Instance, Lowered, Macro, MacroValue, Numbers, Pointer, Record,
    Symbol, UnsupportedError, Use, View, anywhere, bounds, ceildiv, product, register, sizes,
    symbol_of, unflatten_index, word, work_of)

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
    Macro("IS", "size", "elements between adjacent indices", None),
    Macro("TILE", "literal", "elements that a block of a device sorts, a power of 2", None),
    Macro("RUN", "size", "elements of the sorted runs that a launch merges in pairs", None),
    Macro("FROM", "literal", "the half of PLACES in which they are", None),
    Macro("TO", "literal", "the half for the results; 2: they are V and I", None))
POINTERS = (
    Pointer("X", "the first element of a row", ("row",)),
    Pointer("V", "memory for the values", ("row",), False, True),
    Pointer("I", "memory for the indices, int64", ("row",), False, True),
    Pointer("WORK", "memory of thread t for 2·N int64", ("t",), False, True),
    Pointer("PLACES", "memory of a row for 2·N int64, on a device", ("row",), False, True))
TILE, TEAM, RESULTS = 2048, 128, 2


def meaning(t: Instance) -> None:
    """Each row sorted; its first K elements are stored."""
    rows, k, falling = *t.sizes("ROWS K"), t.get("BEFORE").startswith("falling")
    for row in range(rows):
        if t.has("TO") and t.get("TO") != RESULTS:
            _in_runs(t, row, t.read("X", row), falling)
            continue
        values, places = o.sort(t.read("X", row), axis=0, descending=falling)
        for name, sorted_values in (("V", values), ("I", places)):
            if t.has(name):
                t.write(name, sorted_values[:k], row)


def _in_runs(t: Instance, row: int, x: Array, falling: bool) -> None:
    """The places of the elements in the order of each run that a launch makes."""
    places = t.read("PLACES", row)
    run = t.get("TILE") if t.has("TILE") else 2 * t.get("RUN")
    for start in range(0, len(x), run):
        order = o.sort(x[start:start + run], axis=0, descending=falling)[1][:t.get("K")]
        places[t.get("TO") * len(x) + start:][:len(order)] = start + np.asarray(order)
    t.write("PLACES", places, row)


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The tiles of a device, or the blocks that merge runs. Raises InputError GT0572 where it was
    lowered for a target without a device."""
    if macros["TO"] is None:
        raise InputError("GT0572", "a sort has no text in cuda when it was lowered for another "
                                   "language", hint="lower the graph again for this target")
    if macros["TILE"] is not None:
        rows: Dim = macros["ROWS"]
        return rows * ceildiv(macros["N"], macros["TILE"])
    return ceildiv(macros["ROWS"] * macros["N"], TEAM)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    rows, n, k = t.sizes("ROWS N K")
    t.need(k <= n, "K of at most N")
    yield Area("X", (n,), (t.get("XS"),), (rows,), None)
    for name, kind in (("V", None), ("I", dtypes.int64)):
        if t.has(name):
            t.need(t.get(f"{name}S") is not None, f"{name}S")
            yield Area(name, (k,), (t.get(f"{name}S"),), (rows,), kind)
    if not t.has("TO"):
        t.need(t.has("WORK"), "WORK")
        yield Area("WORK", (2 * n,), dtype=dtypes.int64)
        return
    t.need(t.get("TO") in (0, 1, RESULTS), "a place for results")
    tile, run, source = (t.get(name) if t.has(name) else 0 for name in ("TILE", "RUN", "FROM"))
    t.need(tile in _TILES if tile else run > 0 and source in (0, 1) and source != t.get("TO"),
           "a TILE, or a RUN in the other half")
    if not tile or t.get("TO") != RESULTS:
        t.need(t.has("PLACES"), "PLACES")
        yield Area("PLACES", (2 * n,), None, (rows,), dtypes.int64)


def lower(use: Use) -> Lowered | list[Lowered]:
    """The rows are all axes but the sorted one. `largest` of top_k is `descending` of sort."""
    x, node = _row_of_one(use.view(0)), use.node
    axis = node.attrs["axis"] % len(x.shape)
    falling = node.attrs.get("largest", node.attrs.get("descending"))
    if use.shares_bytes(x):
        raise UnsupportedError("GT2003", f"{use.out.hint}: a sort of a {x.dtype.name} constant, "
                                         f"whose elements share bytes",
                               hint="cast it to 8 bits first")
    results = [r if r is None else _row_of_one(r) for r in (use.result(0), use.result(1))]
    return order(use, x, axis, node.attrs.get("k", x.shape[axis]), falling, results)


def order(use: Use, x: View, axis: int, k: Dim, falling: bool, results: list[View | None]
          ) -> Lowered | list[Lowered]:
    """The first k elements of x along an axis in order, and their places, as far as there are views
    for these results."""
    n, row = x.shape[axis], symbol_of(Symbol("row", 0, None))
    key, load = x.dtype, x.dtype.short if x.dtype.short in LOADS else "as it is"
    if x.dtype.is_narrow:
        key = dtypes.float32
    before = ("falling" if falling else "rising") + (" floats" if key.is_float else "")
    macros: dict[str, MacroValue] = {
        "ROWS": product(x.shape[:axis] + x.shape[axis + 1:]), "N": n, "K": k, "KEY": key,
        "LOAD": load, "BEFORE": before, "XS": x.strides[axis]}
    pointers = {"X": (x.buffer, _row_start(x, axis, row))}
    for letter, view in zip("VI", results, strict=True):
        if view is not None:
            macros[f"{letter}S"] = view.strides[axis]
            pointers[letter] = (view.buffer, _row_start(view, axis, row))
    if use.target.devices:
        return _on_device(use, macros, pointers)
    pointers["WORK"] = (use.scratch(2 * n, dtypes.int64), 0)
    size = product(x.shape)
    return Lowered(use.template("sort", macros, pointers), size * 8, work_of(size * 16))


_TILES = tuple(2 << n for n in range(11))
_LONGEST = 1 << 24  # elements of a row whose size is open


def _on_device(use: Use, macros: Mapping[str, MacroValue],
               pointers: Mapping[str, tuple[str, Dim]]) -> list[Lowered]:
    """The launches that sort tiles of a row, and merge them until they are one."""
    rows, n = (size for name in ("ROWS", "N") if not isinstance(size := macros[name], (
        bool, float, str, dtypes.DType)))
    most = bounds(n)[1] or _LONGEST
    tile = next(size for size in _TILES if size >= min(most, TILE))
    count = max(0, (-(-most // tile) - 1).bit_length())  # of launches that merge
    kept = dict(pointers)
    if count:
        kept["PLACES"] = (use.scratch(2 * n * rows, dtypes.int64),
                          symbol_of(Symbol("row", 0, None)) * (2 * n))
    between = {name: at for name, at in kept.items() if name not in ("V", "I")}
    own = {name: value for name, value in macros.items() if name not in ("VS", "IS")}
    out = []
    for i in range(count + 1):
        last = i == count
        how: dict[str, MacroValue] = {"TO": RESULTS if last else i % 2}
        how |= {"RUN": tile << i - 1, "FROM": 1 - i % 2} if i else {"TILE": tile}
        out.append(Lowered(use.template(
            "sort", {**(macros if last else own), **how}, kept if last else between), rows * n * 8))
    return out


def _row_of_one(v: View) -> View:
    return v if v.shape else View(v.buffer, v.dtype, (1,), (1,), v.offset)


def _row_start(v: View, axis: int, row: Dim) -> Dim:
    """Where row `row` of a view starts; rows are counted over all axes but one, row-major."""
    shape = v.shape[:axis] + v.shape[axis + 1:]
    at = unflatten_index(row, shape) if product(shape) != 1 else (0,) * len(shape)
    return v.index((*at[:axis], 0, *at[axis:]))


register(Record(Contract("sort", "the first elements of rows in order", MACROS, POINTERS, meaning,
                         touches=touches, grain="pieces",
                         languages={"c": ".h", "cuda": "_cuda.h"}, teams=teams),
                {"sort": lower, "top_k": lower}, anywhere))
