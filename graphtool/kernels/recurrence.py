"""recurrence.h: a recurrence over a whole sequence; states and steps may have any strides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.op import Op
from graphtool.kernels.choice.machine import UNITS
from graphtool.kernels.choice.sites import Recurrence
from graphtool.kernels.kit import (
    Alternative, Area, Array, Chosen, Contract, Dim, Instance, Lowered, Macro, MacroValue,
    Numbers, Plan, Pointer, Record, Rules, Sizes, Symbol, Target, UnsupportedError, Use, View,
    anywhere, ceil, flags, literals, register, sizes, symbol_of, tile_rows)
from graphtool.kernels.tiles import PANEL
from graphtool.ops.costs import PANELS
from graphtool.ops.recurrence_steps import COUNT, GATES, KEPT

KINDS = ("lstm", "gru", "gru_linear", "tanh", "relu")
BLOCK = 8  # the greatest number of batch rows for which the weights are read once
STEP, STATE, BIAS = ("s", "d", "b"), ("d", "b"), ("d",)
COMMON = (
    *sizes(STEPS="steps", DIRS="directions", ROWS="the batch"),
    *literals(KIND=f"the place in {', '.join(KINDS)}", GATES="gates of the kind"),
    *flags(REVERSE="the first direction runs backwards (a second one always does)"),
    *literals(PANEL="vectors of a panel of the weights; 0: the weights are not packed"),
    *sizes(RK="elements between the starts of adjacent rows of the weights", RC="of adjacent "
                                                                                "columns",
           H="the state's length"))
WEIGHTS = Pointer("R", "the recurrent weights of a direction", BIAS)
WORK = (Macro("BLOCK", "literal", "rows of the batch in a block"),
        Pointer("WORK", "memory of thread t for states and gates of a block", ("t",), writes=True))


def distances(pointers: Iterable[Pointer]) -> tuple[Macro, ...]:
    """Macros for the distance between adjacent elements at each pointer."""
    return tuple(Macro(f"{p.name}S", "size", f"elements between adjacent ones of {p.name}", None)
                 for p in pointers)


GIVEN = (Pointer("P", "the projections of a step", STEP),
         Pointer("B", "recurrent biases", BIAS, False),
         Pointer("H0", "first states, or 0", STATE, False),
         Pointer("C0", "first cells, or 0", STATE, False))
MADE = (Pointer("Y", "the states of all steps", STEP, False, True),
        Pointer("HN", "the last state", STATE, False, True),
        Pointer("CN", "the last cell", STATE, False, True),
        Pointer("KEPT", "the values that the gradient reads", STEP, False, True))


# ---- meaning -----------------------------------------------------------------------------------

def gathered(t: Instance, pointer: Pointer) -> Array | None:
    """The elements at all positions of a pointer, [*positions, size]; None if the pointer is
    left out."""
    return t.read_all(pointer.name) if t.has(pointer.name) else None


def spread(t: Instance, pointer: Pointer, values: Array) -> None:
    """Write values to all positions of a pointer: the inverse of `gathered`."""
    if t.has(pointer.name):
        for at in product(*map(range, _places(t, pointer))):
            t.write(pointer.name, values[at], *at)


def _places(t: Sizes, pointer: Pointer) -> tuple[int, ...]:
    extent = dict(zip(STEP, t.sizes("STEPS DIRS ROWS"), strict=True))
    return tuple(extent[a] for a in pointer.arguments)


def ways(t: Instance) -> dict[str, Any]:
    """The attributes of the op."""
    direction = "bidirectional" if t.get("DIRS") == 2 else (
        "reverse" if t.get("REVERSE") else "forward")
    return {"kind": KINDS[t.get("KIND")], "direction": direction,
            "packed": t.get("PANEL") * t.lanes}


def meaning(t: Instance) -> None:
    """All steps of all directions."""
    attrs = ways(t)
    p: Any
    p, b, h0, c0 = (gathered(t, x) for x in GIVEN)
    out = o.recurrence(p, t.read_all("R"), b, h0, c0, **attrs)
    names = MADE if attrs["kind"] == "lstm" else (MADE[0], MADE[1], MADE[3])
    for pointer, values in zip(names, out, strict=True):
        spread(t, pointer, values)


def touches(t: Numbers) -> Iterator[Area]:
    """What the C touches."""
    h, wide = checked(t)
    yield weights_area(t, h, wide)
    for pointer in (*GIVEN, *MADE):
        yield from part_area(t, pointer, wide if pointer.name in ("P", "B") else h)
    yield work_area(t, 3)
    nr = t.get("PANEL") * t.lanes
    t.need(KINDS[t.get("KIND")] != "gru" or nr == 0 or h % nr == 0,
           "panels that end where the parts of a GRU do")


def checked(t: Numbers) -> tuple[int, int]:
    """The length of a state and of its gates, where the macros fit each other."""
    kind, h = t.get("KIND"), t.get("H")
    t.need(0 <= kind < len(KINDS), f"a KIND from 0 to {len(KINDS) - 1}")
    t.need(t.get("GATES") == GATES[KINDS[kind]], "the GATES of the kind")
    t.need(t.get("DIRS") in (1, 2), "one direction or two")
    t.need(1 <= t.get("BLOCK") <= 2 * BLOCK and 0 <= t.get("PANEL") <= PANEL,
           "a BLOCK and a PANEL that fit the registers")
    return h, t.get("GATES") * h


def weights_area(t: Numbers, rows: int, columns: int) -> Area:
    """The recurrent weights, in panels of columns or with any strides."""
    dirs, nr = t.get("DIRS"), t.get("PANEL") * t.lanes
    if nr:
        return Area("R", (-(-columns // nr), rows, nr), None, (dirs,), aligned=True)
    return Area("R", (rows, columns), tuple(t.sizes("RK RC")), (dirs,))


def part_area(t: Numbers, pointer: Pointer, size: int) -> Iterator[Area]:
    """`size` elements at each position of a pointer, if it is given."""
    if t.has(pointer.name):
        length = KEPT[KINDS[t.get("KIND")]] * t.get("H") if pointer.name == "KEPT" else size
        step = t.get(f"{pointer.name}S")
        t.need(step is not None, f"{pointer.name}S")
        yield Area(pointer.name, (length,), (step,), _places(t, pointer))


def work_area(t: Numbers, states: int) -> Area:
    """The states and gates of a block of rows."""
    return Area("WORK", (t.get("BLOCK") * (t.get("GATES") + states) * t.get("H"),))


# ---- lowering ----------------------------------------------------------------------------------

class Arguments:
    """The macros and pointers of one kernel while they are collected."""

    def __init__(self, use: Use, r: View, like: View) -> None:
        self.use, node, target = use, use.node, use.target
        if like.dtype is not dtypes.float32:
            raise UnsupportedError("GT2003", f"{use.out.hint}: the recurrence is "
                                             f"{like.dtype.name}",
                                   hint="recurrences are compiled for float32 only")
        self.steps, count, self.batch, _ = like.shape
        self.gates, packed = GATES[node.attrs["kind"]], node.attrs["packed"]
        self.products = self.steps * count * self.batch
        self.macros: dict[str, MacroValue] = {
            "STEPS": self.steps, "DIRS": count, "ROWS": self.batch,
            "KIND": KINDS.index(node.attrs["kind"]), "GATES": self.gates,
            "REVERSE": node.attrs["direction"] == "reverse", "PANEL": packed // target.lanes,
            "RK": packed or r.strides[1], "RC": 1 if packed else r.strides[2]}
        place = (symbol_of(Symbol("d", 0, None)), *(0,) * (len(r.shape) - 1))
        self.pointers = {"R": (r.buffer, r.index(place))}

    def add(self, pointers: Iterable[Pointer], views: Sequence[View | None]) -> None:
        """Add the operands and results that exist, and the distances between their elements."""
        for pointer, view in zip(pointers, views, strict=False):
            if view is not None:
                place = (*(symbol_of(Symbol(n, 0, None)) for n in pointer.arguments), 0)
                self.macros[f"{pointer.name}S"] = view.strides[-1]
                self.pointers[pointer.name] = (view.buffer, view.index(place))

    def lowered(self, kernel: str, hidden: Dim, states: int) -> Lowered:
        """The statements, with scratch memory for a block of rows: so many states, and the
        gates."""
        rows = self.block()
        self.macros["BLOCK"] = rows
        self.pointers["WORK"] = self.use.scratch(rows * (self.gates + states) * hidden), 0
        return Lowered(self.use.template(kernel, self.macros, self.pointers),
                       self.products * hidden * hidden * self.gates * 2)

    def block(self) -> int:
        """The rows of a block, whose tile fits the registers, in blocks of equal size; with
        enough rows, each thread has a block."""
        attrs, target = self.use.node.attrs, self.use.target
        most = min(BLOCK, tile_rows(target, max(1, attrs["packed"] // target.lanes), None))
        if not isinstance(self.batch, int) or self.batch < 1:
            return most
        shares = -(-target.threads // COUNT[attrs["direction"]])
        blocks = max(-(-self.batch // most), min(shares, -(-self.batch // 4)))
        return -(-self.batch // blocks)


def results(use: Use) -> list[View | None]:
    """The views of the results that are read; None for the others."""
    return [use.result(i) for i in range(len(use.node.outputs))]


def lower(use: Use) -> Lowered:
    """y, the last states, and the values that the gradient reads; outputs without readers are left
    out."""
    p, r, *rest = use.given()
    assert p is not None and r is not None
    given = Arguments(use, r, p)
    given.macros["H"] = r.shape[-2]
    given.add(GIVEN, [p, *rest])
    given.add(MADE if use.node.attrs["kind"] == "lstm" else (MADE[0], MADE[1], MADE[3]),
              results(use))
    return given.lowered("recurrence", r.shape[-2], 3)


# ---- plans and their costs ---------------------------------------------------------------------

_WIDEST = 8  # the greatest number of vectors in a panel of recurrent weights


def plans(s: Recurrence, target: Target, rules: Rules) -> list[Plan]:
    """Numbers of vectors in a panel, wide ones first: those for which one tile takes all rows of a
    small batch.

    If each part begins with its own panel, the width should divide the part.
    """
    widths = [v for v in range(_WIDEST if s.tile_rows else 3, 0, -1)
              if v == 1 or tile_rows(target, v, None) >= (s.tile_rows or 1)]
    if s.parts > 1:
        widths = [v for v in widths if s.n % (v * target.lanes) == 0] or widths
    return [PANELS.plan(nv=v) for v in widths]


def cost(s: Recurrence, p: Plan, t: Target) -> float:
    """Expected microseconds.

    A few rows are multiplied in one tile: its k-step starts two multiply-adds and two loads or
    prefetches per cycle, and takes at least five cycles. More rows fill tiles of any width, so the
    width with the least padding is best.
    """
    nv, rows = p.get("nv", t.nv), s.tile_rows
    step = max(rows * nv / UNITS, rows / UNITS + nv, 5) if rows else s.batch * nv / UNITS
    steps = s.steps * s.directions * s.parts * ceil(s.n, nv * t.lanes) * s.k
    return steps * step / max(1, t.threads) / t.mhz


def make(chosen: Chosen, *operands: Any, op: Op, weights: int, transpose: bool,
         **attrs: Any) -> Any:
    """The op with its weights in panels; `weights` is their operand number. None if a part would
    begin inside of a panel."""
    nr = chosen.columns()
    if chosen.site.parts > 1 and chosen.site.n % nr:
        return None
    packed = o.pack(operands[weights], nr=nr, transpose=transpose)
    given = (*operands[:weights], packed, *operands[weights + 1:])
    return chosen.emit(op, *given, **attrs, packed=nr)


SERVES = (Alternative(Recurrence, PANELS, plans, cost, make, usual=True),)

register(Record(
    Contract("recurrence", "a recurrence over a whole sequence",
             (*COMMON, *distances((*GIVEN, *MADE)), WORK[0]), (WEIGHTS, *GIVEN, *MADE, WORK[1]),
             meaning, touches=touches, phases=True),
    {"recurrence": lower}, anywhere, serves=SERVES))
