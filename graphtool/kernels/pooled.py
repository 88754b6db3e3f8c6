"""pooled.h: sums and extremes of windows of images, channels last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import ops as o
from graphtool.ir.facets import Trait
from graphtool.kernels.choice.sites import BLOCK, Pool
from graphtool.kernels.images import (
    HOOK, OUTPUT, POINTERS, STRIDES, WINDOW, fits_block, image, image_area, over_pixels, seen,
    space, window, windows_of)
from graphtool.kernels.kit import (
    HALF, Alternative, Area, Chosen, Contract, Form, Instance, Lowered, MacroValue, Numbers,
    Plan, Record, Rows, Rules, Target, TensorType, Use, ceil, fetched, half_macros, literals,
    longest, need, never, number, overlapped, product, register, sizes, summed, sums, target_op)
from graphtool.ops.costs import per_tap

KINDS = ("sum", "max", "min")
MACROS = (HALF, *literals(KIND=f"the place in {', '.join(KINDS)}", BW="pixels of a row at a time"),
          *OUTPUT, *STRIDES, *sizes(C="channels"), *WINDOW)


def meaning(t: Instance) -> None:
    """The reduction of each window, as the C computes it."""
    size = tuple(t.sizes("KH KW"))
    t.rows(o.pooled(seen(t, t.get("C")), kind=KINDS[t.get("KIND")], window=size,
                    **windows_of(t)))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c = t.sizes("BATCH OH OW C")
    fits_block(t)
    t.need(0 <= t.get("KIND") < len(KINDS), f"a KIND from 0 to {len(KINDS) - 1}")
    yield Rows((n, oh, ow, c))
    yield image_area(t, c, number(t))


def lower(use: Use) -> Lowered:
    """Neighbouring windows share the columns that both contain."""
    a, out = use.node.attrs, use.out.type.shape
    macros: dict[str, MacroValue] = {
        **half_macros(use.view(0).dtype), "KIND": KINDS.index(a["kind"]), "BW": BLOCK,
        **image(use), "C": out[3], **window(a["window"], a)}
    return over_pixels(use, "pooled", macros, product(out) * product(a["window"]))


# ---- the op ------------------------------------------------------------------------------------

POOLED = Form("pooled")


def _infer(x: TensorType, *, kind: str, window: tuple[int, int], strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and kind in ("sum", "max", "min"),
         f"{kind!r} over windows of this size is not defined on {x}")
    return TensorType(sums(x.dtype), (x.shape[0], *space(x, window, strides, dilation), x.shape[3]))


def _decompose(x: Any, *, kind: str, window: Any, strides: Any, dilation: Any,
               plan: Plan | None = None) -> Any:
    return o.reduce_window(*summed(x), kind=kind, window=(1, *window, 1), strides=(1, *strides, 1),
                           window_dilation=(1, *dilation, 1))


OP = target_op("pooled", _infer, _decompose, POOLED, per_tap,
               "each window of an image reduced by `kind`, channels last; x includes its padding; "
               "16 bits become float32",
               traits=Trait.NONE)


# ---- plans and their costs ---------------------------------------------------------------------

WINDOWS = Form("windows")  # a plain loop over each window, without a kernel
_JOIN = 1.5  # cycles of a maximum in which NaN wins, or of loading a summand
_UNROLLED = 64  # the greatest number of columns in a block: compilers unroll a loop only up to this


def plans(s: Pool, target: Target, rules: Rules) -> list[Plan]:
    """Plans in which neighbouring windows share columns, if the channels fill vectors."""
    return [POOLED.plan()] if s.c >= target.lanes and s.columns <= _UNROLLED else []


def cost(s: Pool, p: Plan, t: Target) -> float:
    """Expected microseconds. Each column of a block is reduced once, then the columns of each
    window are; sums are kept in memory."""
    return _pooled(s, t, ((s.kh - 1) * s.columns / BLOCK + s.kw - 1) * _JOIN + 3)


def windows_cost(s: Pool, p: Plan, t: Target) -> float:
    """Expected microseconds of a loop over each window."""
    return _pooled(s, t, s.kh * s.kw * _JOIN)


def _pooled(s: Pool, t: Target, steps: float) -> float:
    """Microseconds when a vector of outputs takes `steps` cycles."""
    rows = longest(s.n * s.h, t.threads)
    image = rows * s.sh * s.w * s.sw * s.c * 4
    return overlapped(t, rows * s.w * ceil(s.c, t.lanes) * steps, fetched(t, image, image))


def make(chosen: Chosen, x: Any, **how: Any) -> Any:
    """The pool node; its image includes its padding."""
    return chosen.emit(OP, x, **how)


SERVES = (
    Alternative(Pool, WINDOWS, lambda s, target, rules: [WINDOWS.plan()], windows_cost,
                lambda chosen, x, **how: None, loops=True, usual=True),
    Alternative(Pool, POOLED, plans, cost, make, in_order=never))

register(Record(
    Contract("pooled", "sums and extremes of windows", MACROS, POINTERS[:1], meaning, HOOK,
             touches=touches, grain="pieces"),
    {"pooled": lower}, serves=SERVES))
