"""Products and convolutions on a device with a matrix unit: tiles, slices of the depth, and how
numbers of float32 are multiplied.

A block of threads computes a tile. Tiles are large where there are many, as each number that a
block reads then takes part in more products; and small, or of a slice of the depth, where there
would be fewer of them than the device has multiprocessors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphtool.assume import Assumption
from graphtool.dtypes import HALVES
from graphtool.errors import InputError
from graphtool.ir.plan import Parameter, Plan
from graphtool.kernels.choice import rounding
from graphtool.kernels.choice.alternatives import if_zeros
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.dtypes import DType, float32
from graphtool.kernels.use import Use
from graphtool.loops.contract import Macro, Pointer, word
from graphtool.loops.ir import MacroValue
from graphtool.loops.touches import Area, Numbers
from graphtool.symbolic import Dim, bounds, ceildiv
from graphtool.target import Target

PARTS, TF32, FMA = 1, 2, 3
UNIT = Parameter("unit", "how a device multiplies float32: 1: each number as two of 19 bits, "
                         "2: rounded to 19 bits, 3: one multiply-add after the other", 0, most=FMA)
_UNUSUAL = 1.01  # how many times as long a width is expected to take that is not the usual one
Cost = Callable[[Any, Plan, Target], float]
_SLICE, _SLICES = 128, 16  # no slice of the depth is shorter, and there are no more
GROUP = 64  # workers of a group, as opencl.h has it
_VECTORS = (4, 8, 16)  # floats of a vector
FEW = 4  # up to so many rows are multiplied without tiles
_UNITS = {PARTS: "parts", TF32: "tf32", FMA: "fma"}
ROWS = Macro("ROWS", "literal", "rows of a block's tile, on a device", None)
SLICES = Macro("SLICES", "literal", "slices of the depth, whose sums the block adds that is done "
                                    "last, on a device", None)
SLABS = Pointer("SLABS", "memory for the sums of all slices", required=False, writes=True)
HOW = word("UNIT", "how a device multiplies float32",
           {name: f"GT_UNIT_{name.upper()}" for name in _UNITS.values()}, default=None)
MACROS = (ROWS, HOW)


def unit(target: Target, rules: Rules) -> dict[str, int]:
    """The parameter by which float32 is multiplied: numbers in parts lose infinities. A device
    without a matrix unit has no choice."""
    if not target.devices:
        return {}
    if rules.precision == "high":
        return {"unit": TF32}
    return {"unit": PARTS if rules.allows("finite") else FMA}


def assumed(site: Conv | Product, plan: Plan) -> Assumption:
    """Where a device multiplies a number in parts, as infinity has none; or where zeros that the
    model does not have are multiplied, or zeros that it has are not, as 0 times infinity is NaN."""
    parts = plan.get("unit", 0) == PARTS and site.dtype not in HALVES
    return "finite" if parts else if_zeros(site, plan)


def error(depth: int, plan: Plan) -> float:
    """The rounding error of the plan for sums of so many products."""
    return rounding.tf32(depth) if plan.get("unit", 0) == TF32 else 0.0


def widths(s: Conv | Product, target: Target) -> list[int]:
    """The widths of a panel: the usual one, then those that `tune` measures besides."""
    wide = s.n if isinstance(s, Product) else s.o // s.groups
    others = (1, 2) if target.devices else _VECTORS
    usual = columns(s, target)
    return [usual, *(nv for nv in others if nv != usual and (nv - 1) * target.lanes < wide)]


def usually(cost: Cost) -> Cost:
    """A cost by which a device takes the usual width of a panel, unless measured times say more: a
    model of a processor does not tell widths apart."""
    def of(s: Any, p: Plan, t: Target) -> float:
        if not t.grid:
            return cost(s, p, t)
        usual = columns(s, t)
        us = cost(s, Plan(p.kind, tuple((name, usual if name == "nv" else v)
                                        for name, v in p.parameters)), t)
        return us if p.get("nv", usual) == usual else us * _UNUSUAL
    return of


def columns(s: Conv | Product, target: Target) -> int:
    """The width of a panel in warps; without a matrix unit, the vector of sums of a worker."""
    if not target.devices:
        wide = s.n if isinstance(s, Product) else s.o // s.groups
        return next((nv for nv in _VECTORS if wide <= nv), _VECTORS[-1])
    rows, wide = (s.m, s.n) if isinstance(s, Product) else (s.n * s.h * s.w, s.o // s.groups)
    few = s.batch if isinstance(s, Product) else s.groups
    few *= -(-rows // 64) * -(-wide // 64)
    return 1 if wide <= target.lanes or few < target.multiprocessors else 2


def tile(target: Target, groups: Dim, rows: Dim, columns: Dim, depth: Dim, nv: int, half: bool,
         how: int, few: int = FEW) -> dict[str, MacroValue]:
    """The macros of a tile for so many rows and columns; none for targets without a device. Up to
    `few` rows there is no tile of a matrix unit; without such a unit each worker has some rows.
    Where fewer tiles than multiprocessors would be computed, the depth is divided."""
    if not target.grid:
        return {}
    most = bounds(rows)[1]
    if not target.devices:
        return {"ROWS": GROUP * (target.mr if most is None else max(1, min(target.mr, most)))}
    own: dict[str, MacroValue] = {} if half else {"UNIT": unit_name(how)}
    high = _high(target, rows, groups * ceildiv(columns, nv * target.lanes), half or how == TF32,
                 few)
    tiles = groups * ceildiv(rows, high) * ceildiv(columns, nv * target.lanes)
    if isinstance(tiles, int) and isinstance(depth, int) and tiles > 0:
        wanted = target.multiprocessors * (4 if high <= few else 1) // tiles
        if (slices := min(wanted, depth // _SLICE, _SLICES)) > 1:
            own["SLICES"] = slices
    return {"ROWS": high, **own}


def _high(target: Target, rows: Dim, beside: Dim, large: bool, few: int) -> int:
    """The rows of a tile, where `beside` tiles are beside each other."""
    most, count = bounds(rows)[1], bounds(beside * ceildiv(rows, 64))[1]
    if most is not None and most <= 32:
        return most if most <= few else 16 if most <= 16 else 32
    if count is not None and count < target.multiprocessors:
        return 32
    return 128 if large and count is not None and count >= 4 * target.multiprocessors else 64


def slabs(use: Use, macros: Mapping[str, Any], groups: Dim, rows: Dim, columns: Dim,
          dtype: DType = float32) -> dict[str, tuple[str, Dim]]:
    """The pointer to the sums of all slices, if there are any."""
    if "SLICES" not in macros:
        return {}
    size = tiles(macros, use.target.lanes, groups, rows, columns)
    return {"SLABS": (use.scratch(size * macros["ROWS"] * macros["NV"] * use.target.lanes, dtype),
                      0)}


def touched(t: Numbers, groups: int, rows: int, columns: int, dtype: DType = float32
            ) -> Iterator[Area]:
    """What the C touches of the sums of slices."""
    if t.has("SLICES"):
        high, wide = t.get("ROWS"), t.get("NV") * t.lanes
        t.need(t.get("SLICES") > 1 and high > 0, "SLICES above 1, and ROWS")
        count = groups * -(-rows // high) * -(-columns // wide)
        yield Area("SLABS", (t.get("SLICES") * count * high * wide,), None, (), dtype)


def tiles(macros: Mapping[str, Any], lanes: int, groups: Dim, rows: Dim, columns: Dim) -> Dim:
    """The tiles of a template with these macros, or the slices of them. Raises InputError GT0572
    where it was lowered for a target without a device."""
    count = groups * ceildiv(rows, tile_rows(macros)) * ceildiv(columns, macros["NV"] * lanes)
    return count * (macros.get("SLICES") or 1)


def tile_rows(macros: Mapping[str, Any]) -> int:
    """The rows of a block. Raises InputError GT0572 where a template was lowered for a target
    without a device."""
    if macros["ROWS"] is None:
        raise InputError("GT0572", "a product has no text in cuda when it was lowered for another "
                                   "language", hint="lower the graph again for this target")
    return int(macros["ROWS"])


def unit_name(how: int) -> str:
    """The word for a value of the parameter `unit`; numbers are in parts if it is left open."""
    return _UNITS[how or PARTS]
