"""depthwise.h: one filter a channel, channels last; it can sum the rows that it makes."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Node, TensorType, Value
from graphtool.kernels import images
from graphtool.kernels.choice.alternatives import Alternative, Chosen
from graphtool.kernels.choice.machine import LATENCY, UNITS, ceil, fetched, longest, overlapped
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import BLOCK, Conv
from graphtool.kernels.images import AT, HOOK, OUTPUT, PIXEL, STRIDES, WINDOW, image, space, window
from graphtool.kernels.record import Record, register, rows_of_neighbours, target_op
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import HALF, half_macros, summed, sums
from graphtool.loops.contract import Contract, Macro, Pointer, literals, sizes
from graphtool.loops.instance import Instance
from graphtool.loops.ir import MacroValue
from graphtool.loops.view import View
from graphtool.ops.common import need
from graphtool.ops.costs import elements
from graphtool.plan import Form, Parameter, Plan
from graphtool.symbolic import Dim, product, symbol_of
from graphtool.target import Target

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
    t.rows(o.depthwise(x, w, **images.windows_of(t)))
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


# ---- the op ------------------------------------------------------------------------------------

DEPTHWISE = Form("depthwise", (
    Parameter("block", "vectors of channels in a sweep over the image", 1, least=1),
    Parameter("high", "output rows of a register block", 1, least=1, most=2)))


def _infer(x: TensorType, w: TensorType, *, strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 3, f"depthwise of {x} with {w}")
    height, width = space(x, w.shape[:2], strides, dilation)
    if w.shape[2] == x.shape[3]:
        return TensorType(sums(x.dtype), (x.shape[0], height, width, w.shape[2]))
    count = w.shape[2] // x.shape[3]  # adjacent pixels of x that count as one pixel
    need(w.shape[2] == count * x.shape[3] and width == width // count * count
         and strides[1] == 1, f"depthwise of {x} with {w}")
    return TensorType(sums(x.dtype), (x.shape[0], height, width // count, w.shape[2]))


def _decompose(x: Any, w: Any, *, strides: Any, dilation: Any, plan: Plan | None = None) -> Any:
    x, w = summed(x, w)
    (kh, kw, wide), c = w.shape, x.shape[3]
    own = o.slice(w, start=(0, 0, 0), limit=(kh, kw, c), strides=(1, 1, 1)) if c != wide else w
    y = o.conv(x, o.reshape(o.transpose(own, perm=(2, 0, 1)), shape=(c, 1, kh, kw)),
               strides=strides, rhs_dilation=dilation, groups=c, channels_last=True)
    n, height, width, _ = y.shape
    return y if c == wide else o.reshape(y, shape=(n, height, width * c // wide, wide))


def _flops(y: TensorType, _x: TensorType, w: TensorType, **_: Any) -> Dim:
    return 2 * elements(y) * product(w.shape[:2])


OP = target_op("depthwise", _infer, _decompose, DEPTHWISE, _flops,
               "2-d convolution with one filter for each channel, channels last, weights [KH, KW, "
               "C]; x includes its padding. If the weights have more channels than x, adjacent "
               "pixels of x are taken as one pixel with that many channels")


# ---- plans and their costs ---------------------------------------------------------------------

_LINE = 64  # bytes of a line of the caches


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Vectors of channels in a sweep, and output rows of a register block: two where the registers
    hold them, or each sum waits for itself. All channels in one sweep read an image in order; of
    large windows more would be read again than the first cache holds.
    """
    every = ceil(s.c, target.lanes)
    tall = s.sh == s.sw == 1 and 2 * BLOCK + s.kw + 1 <= target.registers
    sweeps = [1, *((2,) if tall else ()), 4, *((every,) if every > 4 and s.kh <= 3 else ())]
    return [DEPTHWISE.plan(block=b, high=high) for b in sweeps
            if b == 1 or (b - 1) * target.lanes < s.c for high in ((2, 1) if tall else (1,))]


def cost(s: Conv, c: Plan, t: Target) -> float:
    """Microseconds. Sums that wait for themselves bind it, or loads of the cache: an input pixel is
    read once a row of the window and of the block.
    """
    vectors, high = c.get("block", 1), c.get("high", 1)
    columns = (BLOCK - 1) * s.sw + (s.kw - 1) * s.dw + 1
    blocks = longest(s.n * s.h, t.threads) * ceil(s.w, BLOCK) * ceil(s.c, t.lanes)
    sums = s.kh * s.kw * max(BLOCK * high / UNITS, LATENCY) / high
    loads = (s.kh * columns + s.kh * s.kw / high) / UNITS
    begun = 40 / high + 12 / min(vectors, 4)  # a block of rows, and a sweep over channels
    return overlapped(t, blocks * (max(sums, loads) + begun), _swept(s, vectors, t))


def _swept(s: Conv, vectors: int, t: Target) -> float:
    """Microseconds for the image, so many vectors of channels at a time: those of a part of a line
    fetch it again. Rows that neighbours share are in the first cache if a band of a sweep's
    channels is; where a sweep takes all channels, they are in the second one.
    """
    image = s.n * s.h * s.sh * s.w * s.sw * s.c * 4 / t.threads
    if vectors > 1 and vectors * t.lanes >= s.c:
        return max(fetched(t, image, image), fetched(t, image * s.kh / s.sh, t.l2 / 2))
    piece = vectors * t.lanes * 4
    lines = max(1.0, _LINE / piece) if vectors * t.lanes < s.c else 1.0
    band = s.kh * s.w * s.sw * piece
    return fetched(t, image * lines * (1 if band <= 0.75 * t.l1 else 1.5), image)


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution with filters [KH, KW, C]; where channels are few, neighbours are one pixel.
    """
    out, _, kh, kw = w.shape
    flat = o.transpose(o.reshape(w, shape=(out, kh, kw)), perm=(1, 2, 0))
    width = x.shape[2] - (kw - 1) * dilation[1]
    count = neighbours(width, out, chosen.target.lanes) if (
        strides[1] == 1 and isinstance(width, int) and chosen.site.constant) else 1
    y = chosen.emit(OP, x, flat if count == 1 else _repeated(flat, count),
                    strides=strides, dilation=dilation)
    return y if count == 1 else o.reshape(y, shape=(*y.shape[:2], y.shape[2] * count, out))


def neighbours(width: Any, channels: Any, lanes: int) -> int:
    """How many pixels of a row of known width a convolution of stride 1 takes for one, where a
    pixel's channels do not fill a vector: as fill theirs best.
    """
    fit = [p for p in range(1, width + 1) if width % p == 0 and p * channels >= lanes]
    full = {p: -(-p * channels // lanes) * lanes / (p * channels) for p in fit}
    return min(fit, key=lambda p: (full[p], p), default=1) if channels < lanes else 1


def _repeated(w: Any, count: int) -> Any:
    """The filters [KH,KW,C] of so many neighbours as one pixel: [KH,KW,count·C]."""
    kh, kw, c = w.shape
    each = o.broadcast(o.reshape(w, shape=(kh, kw, 1, c)), shape=(kh, kw, count, c))
    return o.reshape(each, shape=(kh, kw, count * c))


SERVES = (Alternative(Conv, DEPTHWISE, plans, cost, make,
                      takes=lambda s: s.depthwise and not s.integer),)

register(Record(
    Contract("depthwise", "a convolution with one filter a channel", MACROS, POINTERS, meaning,
             HOOK), {"depthwise": lower}, reads, sums_rows=True, serves=SERVES))
