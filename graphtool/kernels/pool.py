"""pool.h: sums and extremes of windows of images, channels last."""

from __future__ import annotations

from graphtool.ir.op import OPS
from graphtool.kernels.choice import BLOCK
from graphtool.kernels.images import (
    AT,
    HOOK,
    OUTPUT,
    PIXEL,
    POINTERS,
    STRIDES,
    WINDOW,
    image,
    seen,
    window,
    windows_of,
)
from graphtool.kernels.record import Record, register
from graphtool.kernels.site import Lowered, Site
from graphtool.loops.contract import Contract, literals, sizes
from graphtool.loops.instance import Instance
from graphtool.symbolic import product

KINDS = ("sum", "max", "min")
MACROS = (*literals(KIND=f"the place in {', '.join(KINDS)}", BW="pixels of a row at a time"),
          *OUTPUT, *STRIDES, *sizes(C="channels"), *WINDOW)


def meaning(t: Instance) -> None:
    """The windows joined."""
    size = tuple(t.sizes("KH KW"))
    t.rows(OPS["pooled"](seen(t, t.get("C")), kind=KINDS[t.get("KIND")], window=size,
                         **windows_of(t)))


def lower(site: Site) -> Lowered:
    """Neighbouring windows share the columns that they have in common."""
    x, a, out = site.view(0), site.node.attrs, site.out.type.shape
    macros = {"KIND": KINDS.index(a["kind"]), "BW": BLOCK, **image(site), "C": out[3],
              **window(a["window"], a)}
    body = site.template("pool", macros, {"X": (x.buffer, x.offset)}, site.epilogue(PIXEL, AT))
    return Lowered(body, product(out) * product(a["window"]))


register(Record(
    Contract("pool", "sums and extremes of windows", MACROS, POINTERS[:1], meaning, HOOK),
    {"pooled": lower}))
