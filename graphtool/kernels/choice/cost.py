"""What a candidate costs, in microseconds, as a closed form: cycles of the register tiles, bytes
through each level of the caches. Parameters are the target's; nothing is measured here.

The model ranks the alternatives of one site. Its absolute figures leave out what all of them pay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphtool.kernels.choice import BLOCK, Conv, Pool, Product, Recurrence, Site
from graphtool.kernels.choice.cost_attention import attention
from graphtool.kernels.choice.machine import (
    LATENCY,
    UNITS,
    block_cycles,
    ceil,
    fetched,
    longest,
    overlapped,
    streamed,
)
from graphtool.plan import Plan
from graphtool.target import Target, tile_rows

# vector operations of a Winograd transform of one tile, a vector of channels: loads, sums, stores
_INPUT = {2: 32, 4: 110}
_OUTPUT = {2: 24, 4: 80}
_LINE_INPUT = {2: 8, 4: 16}  # and of one three of taps along a line
_LINE_OUTPUT = {2: 9, 4: 18}
_LINE = 64  # bytes of a line of the caches
_DOT = 8  # cycles to begin a dot product in plain loops, and to sum its lanes
_PACK = 4  # cycles to pack a row of less than a vector
_BARRIER = 2.0  # microseconds, with cores that arrive at different times
_START = 0.2  # microseconds, of a kernel on one thread: its loops begin and end
_BLAS = 1.15  # a library packs both operands at every call
_JOIN = 1.5  # cycles of a maximum in which NaN wins, or of loading what is added
_BF16 = 1.8  # multiply-adds a cycle against float32
_GROUP = {1: 4, 2: 2}  # by a site's integers: products that a lane adds up in a step


def cost(site: Site, c: Plan, target: Target) -> float:
    """Expected microseconds of the candidate with all the target's threads."""
    return _COSTS[c.kind](site, c, target)


def held(site: Site, c: Plan, target: Target) -> int:
    """Bytes of the candidate's weights, which stay in memory as long as the model does."""
    if not isinstance(site, Conv) or not site.constant or c.kind == "depthwise":
        return 0
    points = site.kh * site.kw
    if c.kind == "winograd":
        points = (c.get("tile", 2) + 2) ** 2
    elif c.kind == "line":
        points = (c.get("tile", 2) + 2) * _threes(site)
    columns = site.o // site.groups
    nv = panel(columns, site.groups, target) if c.kind == "winograd" else c.get(
        "nv", 1 if columns <= target.lanes else target.nv)
    panels = site.groups * ceil(site.o // site.groups, nv * target.lanes)
    width = 2 if c.kind == "bf16" else 4
    if site.integer:
        width = 2 if c.kind == "winograd" else 4 // _GROUP[site.integer]
    return points * panels * nv * target.lanes * (site.c // site.groups) * width


def panel(columns: int, groups: int, target: Target) -> int:
    """Vectors across a panel of transformed weights for the columns of one group. Those of several
    groups must fill theirs, as panels stand beside each other: 0 where they can't.
    """
    usual = 1 if columns <= target.lanes else target.nv
    whole = [nv for nv in range(usual, 0, -1) if columns % (nv * target.lanes) == 0]
    return usual if groups == 1 else next(iter(whole), 0)


def _pair(t: Target) -> int:
    """Instructions that add products of pairs of 16 bits to sums."""
    return t.pair[t.dot8]


def _integers(s: Conv | Product, t: Target) -> tuple[float, int]:
    """Multiply-adds an instruction against one of float32, and bytes of an element."""
    group = _GROUP[s.integer]
    return group / (1 if s.integer == 1 else _pair(t)), 4 // group


def _direct(s: Site, c: Plan, t: Target, speed: float = 1.0, width: int = 4) -> float:
    assert isinstance(s, Conv)
    if s.integer:
        speed, width = _integers(s, t)
    nv = c.get("nv", t.nv)
    nr, depth = nv * t.lanes, s.kh * s.kw * s.c // s.groups
    panels = s.groups * ceil(s.o // s.groups, nr)
    weights = panels * depth * nr * width
    rows = s.n * s.h
    mine = max(1 / t.threads, longest(rows * panels, t.threads) / (rows * panels))
    work = rows * panels * depth * block_cycles(s.w, tile_rows(t, nv, None), nv) * mine / speed
    line = s.sh * s.c * s.sw * s.w * width
    image = rows * line
    if c.get("rows", 1):
        traffic = streamed(t, weights, rows * mine) + fetched(t, image * mine, image)
    else:
        chunk = max(line, 0.6 * t.l2)
        chunks = max(1.0, image * mine / chunk)
        traffic = (streamed(t, weights, chunks * mine)
                   + fetched(t, panels * image * mine, min(image, chunk)))
    return overlapped(t, work, traffic)


def _winograd(s: Site, c: Plan, t: Target) -> float:
    assert isinstance(s, Conv)
    m, group, shared = c.get("tile", 2), c.get("group", 28), c.get("shared", 0)
    depth, columns = s.c // s.groups, s.o // s.groups
    points, nv = (m + 2) ** 2, panel(columns, s.groups, t)
    nr = nv * t.lanes
    slow = 1.0
    if s.integer:  # integers are multiplied as pairs of 16 bits
        depth, slow = ceil(depth, 2), _pair(t)
    panels, all_tiles = s.groups * ceil(columns, nr), s.n * ceil(s.h, m) * ceil(s.w, m)
    own = longest(all_tiles, t.threads)
    tiles, split = (all_tiles, t.threads) if shared else (own, 1)
    groups = ceil(tiles, group)
    last = tiles - (groups - 1) * group
    most = tile_rows(t, nv, group)
    step = (groups - 1) * block_cycles(group, most, nv) + block_cycles(last, most, nv)
    weights = points * panels * depth * nr * 4 / split
    products = overlapped(t, points * panels * depth * step * slow / split,
                     streamed(t, weights, groups))
    ends = own * (_INPUT[m] * ceil(depth * s.groups, t.lanes) + _OUTPUT[m] * ceil(s.o, t.lanes))
    planes = points * min(group, tiles) * (depth * s.groups + panels * nr + 32) * 4
    # threads that share the planes read in their second phase what the others wrote in the first
    moved = fetched(t, (4 if shared else 2) * planes * groups / split, max(planes, t.l2 * shared))
    # weights that are no constants are read, combined along both axes and packed at every call
    transform = 0 if s.constant else fetched(t, 5 * split * weights / t.threads, split * weights)
    return products + ends / t.mhz + moved + 2 * _BARRIER * shared + transform


def _threes(s: Conv) -> int:
    """Threes of taps in the window, along the axis that has fewer."""
    return s.kw * ceil(s.kh, 3) if s.upright else s.kh * ceil(s.kw, 3)


def _line(s: Site, c: Plan, t: Target) -> float:
    """Transforms along one axis: each line of the window, and each three of it, has its own."""
    assert isinstance(s, Conv)
    m, group = c.get("tile", 2), c.get("group", 28)
    across, along, apart = (s.w, s.h, s.dh) if s.upright else (s.h, s.w, s.dw)
    nv, threes = c.get("nv", t.nv), _threes(s)
    nr, depth = nv * t.lanes, threes * s.c
    panels, tiles = ceil(s.o, nr), s.n * across * ceil(along, m * apart) * apart
    own = longest(tiles, t.threads)
    groups = ceil(own, group)
    most, last = tile_rows(t, nv, group), own - (groups - 1) * group
    step = (groups - 1) * block_cycles(group, most, nv) + block_cycles(last, most, nv)
    weights = (m + 2) * panels * depth * nr * 4
    products = overlapped(t, (m + 2) * panels * depth * step, streamed(t, weights, groups))
    ends = own * (_LINE_INPUT[m] * threes * ceil(s.c, t.lanes)
                  + _LINE_OUTPUT[m] * ceil(s.o, t.lanes))
    planes = (m + 2) * min(group, own) * (depth + panels * nr + 32) * 4
    return products + ends / t.mhz + fetched(t, 2 * planes * groups, planes)


def _depthwise(s: Site, c: Plan, t: Target) -> float:
    """Sums that wait for themselves bind it, or loads of the cache: an input pixel is read once a
    row of the window and of the block.
    """
    assert isinstance(s, Conv)
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


def _depthwise_quads(s: Conv, c: Plan, t: Target) -> float:
    """Four rows of the input are one operand, put together of four loads; a block of rows shares
    what it can."""
    high, width = c.get("high", 1), 7
    quads = ceil((high - 1) * s.sh + s.kh, 4)
    columns = (width - 1) * s.sw + (s.kw - 1) * s.dw + 1
    blocks = longest(ceil(s.n * s.h, high), t.threads) * ceil(s.w, width) * ceil(s.c, t.lanes)
    sums = quads * high * s.kw * width / UNITS
    return blocks * (max(sums, 3 * quads * columns) + 40) / t.mhz


def _gemm(s: Site, c: Plan, t: Target, speed: float = 1.0, width: int = 4) -> float:
    assert isinstance(s, Product)
    if s.integer:
        speed, width = _integers(s, t)
    nv = c.get("nv", t.nv)
    panels = ceil(s.n, nv * t.lanes)
    b = panels * nv * t.lanes * s.k * width
    a = s.m * s.k * width
    most = tile_rows(t, nv, s.m)
    units = s.batch * panels * ceil(s.m, most)
    mine = longest(units, t.threads) / units
    work = s.batch * panels * s.k * block_cycles(s.m, most, nv) * mine / speed
    kept = c.get("resident", 640) * 1024 or a
    chunks = max(1.0, a / kept)
    traffic = fetched(t, s.batch * chunks * b * mine, b) + fetched(
        t, s.batch * panels * a * mine, min(a, kept))
    if t.threads > 1 and s.batch == 1:  # what crosses from one core to the other
        crossing = b if c.get("split", _split(s)) == 1 else a + s.m * s.n * 4
        traffic += fetched(t, crossing / t.threads, t.l2)
    return overlapped(t, work, traffic)


def tiled(s: Product, target: Target, adjacent: bool) -> bool:
    """Whether the panel's empty columns cost less than plain loops would: dot products along the
    depth where columns are adjacent, else a walk across B for each element.
    """
    columns = _DOT + 2 * ceil(s.k, target.lanes) if adjacent or s.n == 1 else s.k
    plain = s.batch * s.m * s.n * columns
    packing = 0 if s.constant else s.batch * _PACK * s.k
    panel = Plan("gemm", (("nv", 1),))
    return cost(s, panel, replace(target, threads=1)) + packing / target.mhz < plain / target.mhz


def _split(s: Product) -> int:
    return 1 if s.m * (s.k + s.n) >= s.k * s.n else 2


def _bf16(s: Site, c: Plan, t: Target) -> float:
    """Dot products of pairs; the operand that is not bfloat16 yet is rounded in the kernel before.
    """
    if isinstance(s, Conv):
        rounded = 0 if s.half else s.n * s.h * s.sh * s.w * s.sw * s.c
        return _direct(s, c, t, _BF16, 2) + rounded / t.lanes / t.threads / t.mhz
    assert isinstance(s, Product)
    rounded = 0 if s.half else s.batch * s.m * s.k
    return _gemm(s, c, t, _BF16, 2) + rounded / t.lanes / t.threads / t.mhz


def _blas(s: Site, _: Plan, t: Target) -> float:
    assert isinstance(s, Product)
    packing = fetched(t, 2 * (s.m * s.k + s.n * s.k) * 4 * s.batch / t.threads, t.l2)
    return _BLAS * _gemm(s, Plan("gemm"), t) + packing


def _panels(s: Site, c: Plan, t: Target) -> float:
    """A few rows are multiplied in one tile, whose k-step starts two multiply-adds and two loads or
    prefetches a cycle, and takes five at least. More rows fill their tiles at any width: the least
    padding counts.
    """
    assert isinstance(s, Recurrence)
    nv = c.get("nv", t.nv)
    step = max(s.few * nv / UNITS, s.few / UNITS + nv, 5) if s.few else s.batch * nv / UNITS
    steps = s.steps * s.directions * s.parts * ceil(s.n, nv * t.lanes) * s.k
    return steps * step / max(1, t.threads) / t.mhz


def _windows(s: Site, _: Plan, t: Target) -> float:
    assert isinstance(s, Pool)
    return _pooled(s, t, s.kh * s.kw * _JOIN)


def _columns(s: Site, _: Plan, t: Target) -> float:
    """Each column of a block is joined once, then those of each window; sums go by memory."""
    assert isinstance(s, Pool)
    columns = s.columns / BLOCK
    return _pooled(s, t, ((s.kh - 1) * columns + s.kw - 1) * _JOIN + 3)


def _pooled(s: Pool, t: Target, steps: float) -> float:
    """`steps` cycles for a vector of outputs."""
    rows = longest(s.n * s.h, t.threads)
    image = rows * s.sh * s.w * s.sw * s.c * 4
    return overlapped(t, rows * s.w * ceil(s.c, t.lanes) * steps, fetched(t, image, image))


_COSTS: dict[str, Callable[[Site, Plan, Target], float]] = {
    "direct": _direct, "winograd": _winograd, "line": _line, "depthwise": _depthwise,
    "gemm": _gemm, "bf16": _bf16, "blas": _blas, "panels": _panels, "windows": _windows,
    "columns": _columns, "attention": attention}


def gate(target: Target, image: int, weights: int) -> tuple[float, float]:
    """Expected microseconds of multiplying an image of so many bytes in a pass of its own, and of
    scaling the weights that read it in place of that.
    """
    share = image / max(1, target.threads)
    alone = fetched(target, 2 * share, 2 * share)
    scaled = (streamed(target, weights, 1) + fetched(target, weights, weights)) / max(
        1, target.threads)
    return alone, scaled


def layer(target: Target, flops: int, moved: int, weights: int, turns: int) -> float:
    """Expected microseconds of a layer whose batch is taken in `turns`: its activations, `moved`
    bytes in all, come out of the level that holds those of a turn, its weights are read each turn.

    Neither hides behind the arithmetic: what a layer left in a cache is gone by half of its size.
    """
    threads = max(1, target.threads)
    work = flops / (2 * UNITS * target.lanes * threads) / target.mhz
    resident = 2 * moved / turns
    own = resident / threads
    traffic = fetched(target, moved / threads, own if own <= 0.75 * target.l2 else resident)
    start = _BARRIER if threads > 1 else _START
    return work + traffic + streamed(target, weights, turns) + turns * start
