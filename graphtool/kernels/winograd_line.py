"""winograd_line.h: convolution of stride 1 by Winograd's short sums along one axis."""

from __future__ import annotations

from graphtool.ir.op import OPS
from graphtool.kernels import images
from graphtool.kernels.images import AT, HOOK, PIXEL
from graphtool.kernels.record import Record, register
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import TILE, panel_vectors
from graphtool.kernels.winograd import WORK
from graphtool.loops.contract import Contract, flags, literals, sizes
from graphtool.loops.instance import Instance
from graphtool.loops.ir import MacroValue
from graphtool.symbolic import Symbol, product, symbol_of
from graphtool.target import tile_rows

MACROS = (
    *literals(TILE="m: a tile gives m outputs of a line"), *TILE,
    *literals(GROUP="tiles that are transformed and multiplied together"),
    *flags(UPRIGHT="lines run down the columns of the image"),
    *sizes(BATCH="images", ACROSS="lines of outputs", ALONG="outputs of a line",
           C="input channels", O="output channels", KA="lines of the window", KL="taps of a line",
           DA="dilation across the lines", DL="dilation along them",
           XN="elements from an image to the next", XA="from a line to the next",
           XL="from one of a line to the next"))


def meaning(t: Instance) -> None:
    """The convolution whose filters the weights were transformed from."""
    m, upright, c, o, n = t.sizes("TILE UPRIGHT C O BATCH")
    ka, kl, da, dl, xn, xa, xl = t.sizes("KA KL DA DL XN XA XL")
    nr = t.get("NV") * t.lanes
    across = (t.get("ACROSS") + (ka - 1) * da, xa, ka, da)
    along = (t.get("ALONG") + (kl - 1) * dl, xl, kl, dl)
    (h, xh, kh, dh), (w, xw, kw, dw) = (along, across) if upright else (across, along)
    weights = t.array("W", (m + 2, -(-o // nr), ka * -(-kl // 3) * c, nr))
    t.rows(OPS["winograd_line"](t.array("X", (n, h, w, c), (xn, xh, xw, 1)), weights, channels=o,
                                tile=m, window=(kh, kw), dilation=(dh, dw), upright=upright))


def lower(site: Site) -> Lowered:
    """A share of the workspace holds a group's tiles before and after the products."""
    x, w, a = site.view(0), site.view(1), site.node.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    nv, group, channels = panel_vectors(site.target, nr), site.plan["group"], a["channels"]
    share = points * (group * (-(-depth // site.target.lanes) * site.target.lanes + 16) + 16)
    share += points * (group * (-(-channels // nr) * nr + 16) + 16)
    work = site.scratch(share)
    n, oh, ow, _ = site.out.type.shape
    high, wide = zip(a["window"], x.strides[1:3], (oh, ow), a["dilation"], strict=True)
    across, along = (wide, high) if a["upright"] else (high, wide)
    macros: dict[str, MacroValue] = {
        "TILE": a["tile"], "MR": tile_rows(site.target, nv, group), "NV": nv, "GROUP": group,
        "UPRIGHT": a["upright"], "BATCH": n, "ACROSS": across[2], "ALONG": along[2],
        "C": x.shape[3], "O": channels, "KA": across[0], "KL": along[0], "DA": across[3],
        "DL": along[3], "XN": x.strides[0], "XA": across[1], "XL": along[1]}
    pointers = {"X": (x.buffer, x.offset), "W": (w.buffer, w.offset),
                "WORK": (work, symbol_of(Symbol("t", 0, None)) * share)}
    body = site.template("winograd_line", macros, pointers, site.epilogue(PIXEL, AT))
    return Lowered(body, product(site.out.type.shape) * product(a["window"]) * x.shape[3] * 2)


register(Record(
    Contract("winograd_line", "a convolution by Winograd's short sums along one axis", MACROS,
             (*images.POINTERS, WORK), meaning, HOOK), {"winograd_line": lower}))
