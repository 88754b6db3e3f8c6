"""depthwise.h: one filter a channel, channels last; it can sum the rows that it makes."""

from __future__ import annotations

from graphtool.ir.graph import Node, Value
from graphtool.ir.op import OPS
from graphtool.kernels import images
from graphtool.kernels.images import AT, HOOK, OUTPUT, PIXEL, STRIDES, WINDOW, image, window
from graphtool.kernels.record import Record, register, rows_of_neighbours
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import HALF, half_macros
from graphtool.loops.contract import Contract, Macro, Pointer, literals, sizes
from graphtool.loops.instance import Instance
from graphtool.loops.ir import MacroValue
from graphtool.loops.view import View
from graphtool.symbolic import Dim, product, symbol_of

MACROS = (
    HALF, *literals(BH="rows of the register block", BW="pixels of a row of it, at most",
                    CB="vectors of channels that one sweep over the image takes"),
    *OUTPUT, *STRIDES, *sizes(C="channels"), *WINDOW,
    Macro("XT", "size", "elements from one tap of a row to the next: of neighbours that are one "
                        "pixel less than a pixel", None),
    Macro("YW", "size", "of the rows that are summed, from pixel to pixel", None),
    Macro("YC", "size", "from channel to channel", None),
    Macro("SUMC", "size", "of the sums, from channel to channel", None))
POINTERS = (*images.POINTERS,
            Pointer("Y", "where the epilogue stores row oh of image n", ("n", "oh"), False, True),
            Pointer("SUMS", "where the sums of that row go", ("n", "oh"), False, True))


def meaning(t: Instance) -> None:
    """The convolution; then the sums of the rows that the hook has stored."""
    c, n, oh, ow, kh, kw, dw = t.sizes("C BATCH OH OW KH KW DW")
    w = t.array("W", (kh, kw, c))
    if t.has("XT"):  # `count` neighbours are one pixel, of stride 1
        channels = t.get("XT") // dw
        x = images.seen(t, channels, channels, ow * (c // channels))
    else:
        x = images.seen(t, c)
    t.rows(OPS["depthwise"](x, w, **images.windows_of(t)))
    for at in ((i, j) for i in range(n) for j in range(oh) if t.has("SUMS")):
        rows = t.array("Y", (ow, c), (t.get("YW"), t.get("YC")), at)
        t.store("SUMS", rows.sum(0), (t.get("SUMC"),), at)


def lower(site: Site) -> Lowered:
    """Blocks of rows and pixels as they were chosen."""
    x, w, a, plan = site.view(0), site.view(1), site.node.attrs, site.plan
    kh, kw, c = w.shape
    macros: dict[str, MacroValue] = {
        **half_macros(x.dtype), "BH": plan["high"], "BW": 7, "CB": plan["block"],
        **image(site), "C": c, **window((kh, kw), a)}
    if c != x.shape[3]:  # neighbours as one pixel
        macros["XW"], macros["XT"] = c, x.shape[3] * a["dilation"][1]
    pointers: dict[str, tuple[str, Dim]] = {"X": (x.buffer, x.offset), "W": (w.buffer, w.offset)}
    if found := site.summed_rows():
        y, sums = found
        macros |= {"YW": y.strides[2], "YC": y.strides[3], "SUMC": sums.strides[3]}
        row = (*map(symbol_of, PIXEL[:2]), 0, 0)
        pointers |= {"Y": (y.buffer, y.index(row)), "SUMS": (sums.buffer, sums.index(row))}
    hook = site.epilogue(PIXEL, AT)
    return Lowered(site.template("depthwise", macros, pointers, hook),
                   product(site.out.type.shape) * kh * kw * 2)


def reads(node: Node, x: Value, view: View) -> bool:
    """No gap between pixels where several of them are one."""
    if x is node.inputs[0] and _neighbours(node) and view.strides[2] != view.shape[3]:
        return False
    return rows_of_neighbours(node, x, view)


def _neighbours(node: Node) -> bool:
    x, w = (v.type.shape for v in node.inputs if isinstance(v, Value))
    return x[3] != w[2]


register(Record(
    Contract("depthwise", "a convolution with one filter a channel", MACROS, POINTERS, meaning,
             HOOK), {"depthwise": lower}, reads, sums_rows=True))
