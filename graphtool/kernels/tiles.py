"""Register tiles, panels and rows: helpers that the lowerings of several kernels share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import UsageError
from graphtool.kernels.use import ENDLESS, Lowered, Macros, Use
from graphtool.loops.contract import Instance, Macro, mark, word
from graphtool.loops.touches import Numbers
from graphtool.loops.ir import Apply, Const, If, Index, MacroValue
from graphtool.loops.pull import View, row_stride
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Dim, Symbol, bounds, ceildiv, product, symbol_of, typical
from graphtool.target import Target, tile_rows

PANEL = 16  # the greatest width of a panel in tile.h, in vectors
HALVES = {d.name: f"GT_{d.name.upper()}" for d in dtypes.HALVES}
HALF = word("HALF", "the type of 16-bit operands; without it they are float", HALVES,
            default=None)
PAIRS = mark("PAIRS", "the operands are bfloat16, and the right-hand side is in pairs of rows")
TILE = (Macro("MR", "literal", "the greatest number of rows of the register tile"),
        Macro("NV", "literal", "its width in vectors; a panel has NV·LANES columns"))


def half_macros(operand: DType, pairs: bool = False) -> dict[str, MacroValue]:
    """The macros for operands of 16 bits; none for others."""
    if operand not in dtypes.HALVES:
        return {}
    macros: dict[str, MacroValue] = {"HALF": operand.name}
    if pairs:
        macros["PAIRS"] = True
    return macros


def sums(operand: DType) -> DType:
    """The element type of a contraction's sums: float32 for operands of 16 bits."""
    return dtypes.float32 if operand in dtypes.HALVES else operand


def summed(*operands: Any) -> list[Any]:
    """The operands, converted to the type in which their products are summed."""
    half = any(x.dtype in dtypes.HALVES for x in operands)
    return [o.cast(x, dtype=dtypes.float32) if half else x for x in operands]


def rows_of_tile(target: Target, nv: int, rows: Dim) -> int:
    """Rows of a register tile of nv vectors; not more than there are."""
    return tile_rows(target, nv, bounds(rows)[1])


def panel_vectors(target: Target, nr: int) -> int:
    """The width of a panel of nr columns in vectors, at most what tile.h supports.

    Raises UsageError GT2004 for a panel that was packed for another target's vectors.
    """
    if nr % target.lanes or nr // target.lanes > PANEL:
        raise UsageError("GT2004", f"the weights are packed in panels of {nr} columns, which code "
                                   f"with vectors of {target.lanes} floats cannot read",
                         hint="select kernels for the target that the build is for: "
                              f"opt --passes …,select{{march={target.march}}},…")
    return nr // target.lanes


def batch_offset(v: View, which: tuple[Dim, ...], inner: int) -> Dim:
    """Where product `which` of a batch starts; leading dimensions broadcast."""
    lead = len(v.shape) - inner
    idx = tuple(0 if d == 1 else i for i, d in zip(
        which[len(which) - lead:], v.shape[:lead], strict=True))
    return v.index((*idx, *(0,) * inner))


@dataclass(frozen=True)
class Lines:
    """What a template of a product computes: `lead` independent products of `count` rows at the
    distance `step`, which stand for the axes `axes`; `order` are their numbers in the result,
    where they are in another order there."""

    lead: tuple[Dim, ...]
    count: Dim
    step: Dim
    axes: tuple[Dim, ...]
    order: tuple[int, ...] = ()

    def index(self, row: Dim) -> tuple[Dim, ...]:
        """The index of a row along the axes of the result."""
        if self.count == 1:
            return (0,) * len(self.axes)
        inner = unflatten_index(row, self.axes)
        return tuple(inner[self.order.index(i)] for i in range(len(inner))) if self.order else inner


def all_rows(a: View) -> Lines | None:
    """All rows of a left operand as one product, in the order in which they are in memory; None
    unless they are at equal distances."""
    rows = a.shape[:-1]
    if (step := row_stride(a)) is not None:
        return Lines((), product(rows), step, rows)
    order = sorted(range(len(rows)), key=lambda i: -typical(a.strides[i]))
    axes, strides = (tuple(sizes[i] for i in order) for sizes in (rows, a.strides))
    step = row_stride(View(a.buffer, a.dtype, (*axes, a.shape[-1]), (*strides, a.strides[-1])))
    return None if step is None else Lines((), product(rows), step, axes, tuple(order))


def lowered_product(use: Use, kernel: str, lines: Lines, before: Macros,
                    more: Macros | None = None,
                    also: Mapping[str, tuple[str, Dim]] | None = None) -> Lowered:
    """The use of a template with the macros M, N, K, LDA and BATCH, the pointers A and B and a hook
    for rows; `before` are the macros before these, `more` those behind, `also` further pointers."""
    a, b, m = use.view(0), use.view(1), lines.count
    n, k, batch = use.out.type.shape[-1], a.shape[-1], product(lines.lead)
    at, row, first = Symbol("b", 0, None, batch), Symbol("m", 0, None, m), Symbol("n", 0, None)
    which = unflatten_index(symbol_of(at), lines.lead) if batch != 1 else (0,) * len(lines.lead)
    inner = lines.index(symbol_of(row))
    macros = {**before, "M": m, "N": n, "K": k, "LDA": lines.step if m != 1 else k, "BATCH": batch,
              **(more or {})}
    pointers = {"A": (a.buffer, batch_offset(a, which, len(lines.axes) + 1)),
                "B": (b.buffer, batch_offset(b, which, 3)), **(also or {})}
    hook = use.epilogue((at, row, first), (*which, *inner, symbol_of(first)),
                         symbol_of(row) if len(lines.axes) > 1 and not (
                             lines.lead or lines.order) else None)
    return Lowered(use.template(kernel, macros, pointers, hook), batch * m * n * k * 2)


def by_rows(rows: Dim, enough: int, few: Callable[[], Lowered], many: Callable[[], Lowered]
            ) -> Lowered:
    """`few` for fewer rows than `enough`, else `many`: of an open number of rows a run knows which,
    and both of them read the same operands."""
    least, most = bounds(rows)
    if least is not None and least >= enough:
        return many()
    if most is not None and most < enough:
        return few()
    fewer = Apply("lt", (Index(rows, dtypes.int64), Const(enough, dtypes.int64)), dtypes.bool_)
    usual = many()
    return replace(usual, body=(If(fewer, few().body, usual.body),))


def start(v: View) -> tuple[str, Dim]:
    """A pointer to the first element of a view."""
    return v.buffer, v.index((0,) * len(v.shape))


def products(t: Instance, op: Callable[..., Any]) -> None:
    """What a product with a packed right-hand side computes: one for each b."""
    for b in range(t.get("BATCH")):
        t.rows(op(t.read("A", b), t.read("B", b), n=t.get("N")), b)


def round_up(n: Dim, to: int) -> Dim:
    """The next multiple of `to`."""
    return ceildiv(n, to) * to


def work_of(size: Dim) -> int:
    """The greatest work of so many operations; ENDLESS if nothing limits it."""
    most = bounds(size)[1]
    return ENDLESS if most is None else most


# ---- for the checks ----------------------------------------------------------------------------

def vectors_of(t: Numbers) -> int:
    """The columns of a panel. The register tile must be one of tile.h."""
    t.need(1 <= t.get("MR") <= PANEL, f"MR from 1 to {PANEL}")
    t.need(1 <= t.get("NV") <= PANEL, f"NV from 1 to {PANEL}")
    return int(t.get("NV")) * t.lanes


def number(t: Numbers) -> DType:
    """The element type of the operands."""
    half = t.get("HALF")
    t.need(not t.get("PAIRS") or half == dtypes.bfloat16.name, "pairs of bfloat16")
    return dtypes.float32 if half is None else next(d for d in dtypes.HALVES if d.name == half)
