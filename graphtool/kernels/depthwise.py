"""depthwise.h: one filter for each channel, channels last; it can also sum the rows that it
computes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphtool import ops as o
from graphtool.kernels.choice.machine import LATENCY, UNITS
from graphtool.kernels.choice.sites import BLOCK
from graphtool.kernels.images import (
    HOOK, OUTPUT, PIXEL, STRIDES, UNPADDED, WINDOW, image, over_pixels, padded, padded_space,
    seen_unpadded, unpadded, window)
from graphtool.kernels.kit import (
    HALF, Alternative, Area, Chosen, Contract, Conv, Dim, Form, Instance, Lowered, Macro,
    MacroValue, Node, Numbers, Parameter, Plan, Pointer, Record, Rows, Rules, Target,
    TensorType, Use, Value, View, ceil, ceildiv, elements, fetched, half_macros, if_zeros, images,
    literals, longest, narrowed, need, number, overlapped, product, register, rounding,
    rows_of_neighbours, sizes, summed, sums, symbol_of, target_op)

MACROS = (
    HALF, *literals(BH="rows of the register block", BW="the greatest number of pixels in a row "
                                                        "of it",
                    CB="vectors of channels in one pass over the image"),
    *OUTPUT, *STRIDES, *sizes(C="channels"), *WINDOW, *UNPADDED,
    Macro("XT", "size", "elements between adjacent taps of a row; less than a pixel if several "
                        "pixels are taken as one", None),
    Macro("YW", "size", "elements between adjacent pixels of the rows that are summed", None),
    Macro("YC", "size", "elements between adjacent channels of these rows", None),
    Macro("SUMC", "size", "elements between adjacent channels of the sums", None))
POINTERS = (*images.POINTERS,
            Pointer("Y", "the memory to which the epilogue stores row oh of image n", ("n", "oh"),
                    False, True),
            Pointer("SUMS", "memory for the sums of that row", ("n", "oh"), False, True))


def meaning(t: Instance) -> None:
    """The convolution, then the sums of the rows that the hook has stored."""
    c, n, oh, ow, dw = t.sizes("C BATCH OH OW DW")
    if t.has("XT"):  # `count` adjacent pixels are taken as one, with stride 1
        channels = t.get("XT") // dw
        x = images.seen(t, channels, channels, ow * (c // channels))
        attrs = images.windows_of(t)
    else:
        x, attrs = seen_unpadded(t, c)
    t.rows(o.depthwise(x, t.read("W"), **attrs))
    for at in ((i, j) for i in range(n) for j in range(oh) if t.has("SUMS")):
        t.write("SUMS", t.read("Y", *at).sum(0), *at)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    n, oh, ow, c, kh, kw = t.sizes("BATCH OH OW C KH KW")
    kind = number(t)
    images.fits_block(t)
    t.need(t.get("CB") > 0, "CB > 0")
    t.need(not t.has("XT") or (t.get("SW") == 1 and not t.has("PT")),
           "a stride of 1, and padding in memory, where taps lie in a pixel")
    yield Rows((n, oh, ow, c))
    yield images.image_area(t, c, kind)
    yield Area("W", (kh, kw, c), None, (), kind)
    if t.has("SUMS"):
        t.need(t.has("Y"), "rows that are summed")
        yield Area("Y", (ow, c), tuple(t.sizes("YW YC")), (n, oh))
        yield Area("SUMS", (c,), (t.get("SUMC"),), (n, oh))


def teams(macros: Mapping[str, Any], _: int) -> Dim:
    """The blocks of a device: a thread has a channel of some pixels of a row, or of the whole row
    if it sums that."""
    strips = 1 if macros["SUMC"] is not None else ceildiv(macros["OW"], macros["BW"])
    return ceildiv(macros["BATCH"] * macros["OH"] * strips * macros["C"], TEAM)


def lower(use: Use) -> Lowered:
    """The use of the template, with the blocks of rows and pixels that were chosen."""
    x, w, a, plan = use.view(0), use.view(1), use.node.attrs, use.plan
    kh, kw, c = w.shape
    macros: dict[str, MacroValue] = {
        **half_macros(x.dtype), "BH": plan["high"], "BW": ON_DEVICE if use.target.devices else 7,
        "CB": plan["block"], **image(use), "C": c, **window((kh, kw), a), **unpadded(use)}
    if c != x.shape[3]:  # adjacent pixels are taken as one
        macros["XW"], macros["XT"] = c, x.shape[3] * a["dilation"][1]
    pointers: dict[str, tuple[str, Dim]] = {}
    if pair := use.summed_rows():
        y, sums = pair
        macros |= {"YW": y.strides[2], "YC": y.strides[3], "SUMC": sums.strides[3]}
        row = (*map(symbol_of, PIXEL[:2]), 0, 0)
        pointers = {"Y": (y.buffer, y.index(row)), "SUMS": (sums.buffer, sums.index(row))}
    return over_pixels(use, "depthwise", macros, product(use.out.type.shape) * kh * kw * 2,
                       **pointers)


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read x here: without gaps between pixels if several are taken as one."""
    if x is node.inputs[0] and _neighbours(node) and view.strides[2] != view.shape[3]:
        return False
    return rows_of_neighbours(node, x, view)


def _neighbours(node: Node) -> bool:
    x, w = (v.type.shape for v in node.inputs if isinstance(v, Value))
    return x[3] != w[2]


# ---- the op ------------------------------------------------------------------------------------

ON_DEVICE = 4  # pixels that a thread of a device computes
TEAM = 128  # threads of a block
Padding = tuple[tuple[int, int], tuple[int, int]] | None  # that is not in memory
DEPTHWISE = Form("depthwise", (
    Parameter("block", "vectors of channels in a sweep over the image", 1, least=1),
    Parameter("high", "output rows of a register block", 1, least=1, most=2),
    Parameter("rounded", "1: the image and the filters are rounded to bfloat16", 0, most=1)))


def _infer(x: TensorType, w: TensorType, *, strides: tuple[int, int],
           dilation: tuple[int, int] = (1, 1), padding: Padding = None,
           plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 3, f"depthwise of {x} with {w}")
    _, height, width = padded_space(x, w.shape[:2], strides, dilation, padding)
    if w.shape[2] == x.shape[3]:
        return TensorType(sums(x.dtype), (x.shape[0], height, width, w.shape[2]))
    count = w.shape[2] // x.shape[3]  # adjacent pixels of x that count as one pixel
    need(w.shape[2] == count * x.shape[3] and width == width // count * count
         and strides[1] == 1 and padding is None, f"depthwise of {x} with {w}")
    return TensorType(sums(x.dtype), (x.shape[0], height, width // count, w.shape[2]))


def _decompose(x: Any, w: Any, *, strides: Any, dilation: Any, padding: Padding = None,
               plan: Plan | None = None) -> Any:
    x, w = summed(padded(x, padding), w)
    (kh, kw, wide), c = w.shape, x.shape[3]
    filters = o.slice(w, start=(0, 0, 0), limit=(kh, kw, c), strides=(1, 1, 1)) if c != wide else w
    y = o.conv(x, o.reshape(o.transpose(filters, perm=(2, 0, 1)), shape=(c, 1, kh, kw)),
               strides=strides, rhs_dilation=dilation, groups=c, channels_last=True)
    n, height, width, _ = y.shape
    return y if c == wide else o.reshape(y, shape=(n, height, width * c // wide, wide))


def _flops(y: TensorType, _x: TensorType, w: TensorType, **_: Any) -> Dim:
    return 2 * elements(y) * product(w.shape[:2])


OP = target_op("depthwise", _infer, _decompose, DEPTHWISE, _flops,
               "2-d convolution with one filter for each channel, channels last, weights [KH, KW, "
               "C]; x includes its padding, but for `padding`. If the weights have more channels "
               "than x, adjacent pixels of x are taken as one pixel with that many channels")


# ---- plans and their costs ---------------------------------------------------------------------

_LINE = 64  # bytes of a cache line
WIDENED = 0.5  # cycles more for a load of 16-bit numbers, which become floats


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Vectors of channels in one pass, and output rows of a register block.

    A block has two rows if the registers hold them; with one row each sum waits for its previous
    addition. A pass over all channels reads the image in order; it is not used for large windows,
    because it would read more again than the first cache holds.
    """
    if target.devices:
        return [DEPTHWISE.plan(block=1, high=1)]
    every = ceil(s.c, target.lanes)
    tall = s.sh == s.sw == 1 and 2 * BLOCK + s.kw + 1 <= target.registers
    sweeps = [1, *((2,) if tall else ()), 4, *((every,) if every > 4 and s.kh <= 3 else ())]
    kinds = (0, 1) if rules.bf16 and target.bf16 and not s.dtype.is_narrow else (0,)
    return [DEPTHWISE.plan(block=b, high=high, rounded=rounded) for rounded in kinds
            for b in sweeps if b == 1 or (b - 1) * target.lanes < s.c
            for high in ((2, 1) if tall else (1,))]


def cost(s: Conv, c: Plan, t: Target) -> float:
    """Expected microseconds.

    The limit is the latency of additions to the same sum, or loads from the cache: an input pixel
    is loaded once for each row of the window and of the block.
    """
    vectors, high, rounded = c.get("block", 1), c.get("high", 1), c.get("rounded", 0)
    columns = (BLOCK - 1) * s.sw + (s.kw - 1) * s.dw + 1
    blocks = longest(s.n * s.h, t.threads) * ceil(s.w, BLOCK) * ceil(s.c, t.lanes)
    sums = s.kh * s.kw * max(BLOCK * high / UNITS, LATENCY) / high
    loads = (s.kh * columns + s.kh * s.kw / high) / UNITS
    begun = 40 / high + 12 / min(vectors, 4)  # to begin a block of rows, and a pass over channels
    if s.dtype.is_narrow or rounded:
        sums += loads * WIDENED
    work = blocks * (max(sums, loads) + begun)
    time = overlapped(t, work, _swept(s, vectors, 2 if s.dtype.is_narrow or rounded else 4, t))
    return max(time / 2, time + _rounding(s, t)) if rounded else time


def _rounding(s: Conv, t: Target) -> float:
    """Microseconds that the kernel before takes to round the image, minus the time that it saves
    because it writes half of the bytes."""
    image = s.n * s.h * s.sh * s.w * s.sw * s.c
    return image / t.lanes / t.threads / t.mhz - fetched(t, image * 2 / t.threads, image * 4)


def _swept(s: Conv, vectors: int, width: int, t: Target) -> float:
    """Microseconds to read the image, so many vectors of channels of `width` bytes in one pass.

    Vectors that are less than a cache line fetch the line again, and lines that lie apart come more
    slowly from the far caches. Rows that adjacent windows share come from the first cache if a
    band of the pass's channels fits there, and from the second one if a pass takes all channels.
    """
    image = s.n * s.h * s.sh * s.w * s.sw * s.c * width / t.threads
    if vectors > 1 and vectors * t.lanes >= s.c:
        return max(fetched(t, image, image), fetched(t, image * s.kh / s.sh, t.l2 / 2))
    piece = vectors * t.lanes * width
    lines = max(1.0, _LINE / piece) if vectors * t.lanes < s.c else 1.0
    band = s.kh * s.w * s.sw * piece
    again, apart = 1 if band <= 0.75 * t.l1 else 1.5, 1 if image <= t.l2 else 1.5
    return fetched(t, image * lines * again * apart, image)


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int,
         **padding: Padding) -> Any:
    """The convolution node with filters [KH, KW, C]; if channels are few, several adjacent
    pixels are taken as one. `padding` is what is not part of x, on a device."""
    out, _, kh, kw = w.shape
    flat = o.transpose(o.reshape(w, shape=(out, kh, kw)), perm=(1, 2, 0))
    if chosen.plan.get("rounded", 0):
        x, flat = narrowed(x), narrowed(flat)
    width = x.shape[2] - (kw - 1) * dilation[1]
    count = neighbours(width, out, chosen.target.lanes) if (
        strides[1] == 1 and isinstance(width, int) and chosen.site.constant
        and not chosen.target.devices) else 1
    y = chosen.emit(OP, x, flat if count == 1 else _repeated(flat, count),
                    strides=strides, dilation=dilation, **padding)
    return y if count == 1 else o.reshape(y, shape=(*y.shape[:2], y.shape[2] * count, out))


def neighbours(width: Any, channels: Any, lanes: int) -> int:
    """How many pixels of a row a convolution of stride 1 takes as one.

    Used if the channels of a pixel do not fill a vector: the number whose channels fill vectors
    best. `width`, the pixels of a row, must be known.
    """
    fit = [p for p in range(1, width + 1) if width % p == 0 and p * channels >= lanes]
    full = {p: -(-p * channels // lanes) * lanes / (p * channels) for p in fit}
    return min(fit, key=lambda p: (full[p], p), default=1) if channels < lanes else 1


def _repeated(w: Any, count: int) -> Any:
    """The filters [KH, KW, C] for so many pixels taken as one: [KH, KW, count·C]."""
    kh, kw, c = w.shape
    each = o.broadcast(o.reshape(w, shape=(kh, kw, 1, c)), shape=(kh, kw, count, c))
    return o.reshape(each, shape=(kh, kw, count * c))


SERVES = (Alternative(Conv, DEPTHWISE, plans, cost, make,
                      takes=lambda s: s.depthwise and not s.dtype.is_integer, assumes=if_zeros,
              error=lambda s, p: rounding.bf16(s.kh * s.kw) if p.get("rounded", 0) else 0.0),)

register(Record(
    Contract("depthwise", "a convolution with one filter for each channel", MACROS, POINTERS,
             meaning,
             HOOK, touches=touches, grain="shares", languages={"c": ".h", "cuda": "_cuda.h"},
             teams=teams),
    {"depthwise": lower}, reads, sums=(2,), serves=SERVES))
