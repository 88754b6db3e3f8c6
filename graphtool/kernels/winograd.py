"""winograd.h: 3×3 convolution of stride 1 by Winograd's short sums, of floats or small integers."""

from __future__ import annotations

from graphtool import dtypes
from graphtool.ir.op import OPS
from graphtool.kernels import images
from graphtool.kernels.images import AT, HOOK, OUTPUT, PIXEL, STRIDES, image
from graphtool.kernels.record import Record, register
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import HALF, TILE, half_macros, panel_vectors
from graphtool.loops.contract import Contract, Macro, Pointer, literals, mark, sizes
from graphtool.loops.instance import Instance
from graphtool.loops.ir import MacroValue
from graphtool.symbolic import Symbol, product, symbol_of
from graphtool.target import tile_rows

WORK = Pointer("WORK", "what thread t transforms into", ("t",), writes=True)
MACROS = (
    HALF, Macro("INTEGERS", "literal", "all is of integers: 1 for an input of u8, 2 of i16", None),
    *literals(TILE="m: a tile gives m × m outputs"), *TILE,
    *literals(GROUP="tiles that are transformed and multiplied together"), *OUTPUT, *STRIDES,
    *sizes(C="input channels", O="output channels"),
    Macro("GROUPS", "size", "groups of channels", 1),
    mark("SHARED", "all threads work on all tiles, in one workspace"))


def meaning(t: Instance) -> None:
    """The convolution whose filters the weights were transformed from."""
    m, c, o, n, oh, ow = t.sizes("TILE C O BATCH OH OW")
    groups, nr = t.get("GROUPS"), t.get("NV") * t.lanes
    x = t.array("X", (n, oh + 2, ow + 2, c), (*t.sizes("XN XH XW"), 1))
    shape = ((m + 2) ** 2, -(-o // nr))
    if t.has("INTEGERS"):
        w = t.array("W", (*shape, -(-c // 2), nr * 2))
        t.rows(OPS["winograd_int"](x, w, channels=o, tile=m))
    else:
        w = t.array("W", (*shape, c // groups, nr))
        t.rows(OPS["winograd"](x, w, channels=o, tile=m, groups=groups))


def lower(site: Site) -> Lowered:
    """A share of the workspace holds a group's tiles before and after the products."""
    x, w, a = site.view(0), site.view(1), site.node.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    channels, c, kind = a["channels"], x.shape[3], half_macros(x.dtype)
    if site.node.op.name == "winograd_int":  # pairs of numbers of 16 bits
        nr, kind = nr // 2, {"INTEGERS": 1 if x.dtype is dtypes.uint8 else 2}
    nv = panel_vectors(site.target, nr)
    group, groups = site.plan["group"], a.get("groups", 1)
    rounded_c = -(-depth * groups // site.target.lanes) * site.target.lanes
    rounded_o = -(-channels // nr) * nr
    share = points * (group * (rounded_c + 16) + 16) + points * (group * (rounded_o + 16) + 16)
    shared = site.plan["shared"]
    work = site.scratch(share, 1 if shared else None)
    macros: dict[str, MacroValue] = {
        **kind, "TILE": a["tile"], "MR": tile_rows(site.target, nv, group), "NV": nv,
        "GROUP": group, **image(site), "C": c, "O": channels,
        **({"GROUPS": groups} if groups > 1 else {}), **({"SHARED": True} if shared else {})}
    pointers = {"X": (x.buffer, x.offset), "W": (w.buffer, w.offset),
                "WORK": (work, symbol_of(Symbol("t", 0, None)) * share)}
    flops = product(site.out.type.shape) * 9 * c // groups * 2
    return Lowered(site.template("winograd", macros, pointers, site.epilogue(PIXEL, AT)), flops)


register(Record(
    Contract("winograd", "a 3×3 convolution by Winograd's short sums", MACROS,
             (*images.POINTERS, WORK), meaning, HOOK),
    {"winograd": lower, "winograd_int": lower}))
