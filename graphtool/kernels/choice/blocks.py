"""The cost of sums by a matrix unit: tiles of 16 rows, a step along the depth at a time."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from graphtool import dtypes
from graphtool.ir.plan import Plan
from graphtool.kernels.choice.contractions import moving, product_traffic
from graphtool.kernels.choice.machine import ceil, fetched, longest, overlapped, streamed
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.target import Target

SEGMENT = 16  # rows of a tile
STEP = 64  # bytes along the depth of a tile
FEWEST = 9  # cycles of a product of two tiles, however few rows they have
BEGIN = 0.4  # microseconds to set up the unit for a kernel, measured on a Xeon
FINISH = 128  # cycles to store the sums of a block of two segments, and to hand them out
COPIED = 3  # cycles to copy a row of the last step, where that is not full
GATHERED = 1024  # the most bytes that are copied together for an output
RESIDENT = 1 << 20  # bytes of lines that stay in the second-level cache


def fits_unit(s: Conv | Product, target: Target, bf16: bool) -> bool:
    """Whether the unit has instructions for the operands: bytes; numbers of 16 bits; or with `bf16`
    float32 that is rounded to bfloat16."""
    if s.dtype is dtypes.float16:
        return target.amx_fp16
    return target.amx and s.dtype is not dtypes.int16 and (s.dtype is not dtypes.float32 or bf16)


def size(s: Conv | Product) -> int:
    """Bytes of an element."""
    return 1 if s.dtype.is_integer else 2


def block_cycles(rows: int, runs: int, run: int) -> float:
    """Cycles of a block of two segments and a panel, for sums over `runs` runs of so many bytes."""
    steps = ceil(run, STEP)
    copies = 2 * rows * COPIED if run % STEP else 0
    return runs * (steps * 4 * max(FEWEST, rows) + copies) + FINISH


def rounding(s: Conv | Product, t: Target, elements: int) -> float:
    """Microseconds that the kernel before takes to round so many elements to bfloat16."""
    return elements / t.lanes / t.threads / t.mhz if s.dtype is dtypes.float32 else 0.0


def product_cost(s: Product, _: Plan, t: Target) -> float:
    """Expected microseconds of a product."""
    width, segments, panels = size(s), max(1, ceil(s.m, SEGMENT)), ceil(s.n, t.nr)
    blocks = ceil(segments, 2)
    b = panels * t.nr * ceil(s.k * width, STEP) * STEP
    units = s.batch * panels * blocks
    mine = longest(units, t.threads) / units
    cycles = block_cycles(ceil(s.m, segments), 1, s.k * width) * segments / 2 / blocks
    traffic = product_traffic(s, t, panels, b, mine, width, RESIDENT)
    before = moving(s, t) if s.dtype.is_integer else rounding(s, t, s.batch * s.m * s.k)
    return BEGIN + overlapped(t, units * mine * cycles, traffic) + before


def gathered(s: Conv) -> bool:
    """Whether what an output reads is copied together: where runs would leave tiles half empty."""
    taps, run = s.kh * s.kw, s.c * size(s)
    return taps > 1 and run % STEP > 0 and taps * run <= GATHERED


def can_fill(s: Conv) -> bool:
    """Whether a row of the window is adjacent elements, of pixels that do not fill tiles."""
    return s.kw > 1 and s.dw == 1 and s.c * size(s) % STEP > 0


def filled(s: Conv) -> Conv:
    """The convolution with channels and columns of zeros added to the window, the fewest for which
    its rows fill whole tiles."""
    step = STEP // size(s)
    few = [(c, s.kw + (-s.kw % (step // gcd(c, step)))) for c in range(s.c, s.c + step)]
    c, kw = min(few, key=lambda pair: (pair[0] * pair[1], pair[0]))
    return replace(s, c=c, kw=kw)


def conv_bytes(s: Conv, p: Plan, t: Target) -> int:
    """Bytes of the packed filters."""
    whole = p.get("filled", 0)
    s = filled(s) if whole else s
    taps, run = s.kh * s.kw, s.c * size(s)
    runs, run = (1, taps * run) if whole or gathered(s) else (taps, run)
    return ceil(s.o, t.nr) * t.nr * runs * ceil(run, STEP) * STEP


def conv_cost(s: Conv, p: Plan, t: Target) -> float:
    """Expected microseconds of a convolution."""
    whole = p.get("filled", 0)
    s = filled(s) if whole else s
    width, panels, taps = size(s), ceil(s.o, t.nr), s.kh * s.kw
    parts = ceil(s.w, SEGMENT)
    lines = s.n * s.h * parts
    units = panels * ceil(lines, 2)
    mine = longest(units, t.threads) / units
    rows, run = ceil(s.w, parts), s.c * width
    if whole:
        cycles = block_cycles(rows, s.kh, s.kw * run)
    elif gathered(s):
        copied = 2 * rows * s.kh * ceil(s.kw * run, STEP) * COPIED
        cycles = block_cycles(rows, 1, ceil(taps * run, STEP) * STEP) + copied
    else:
        cycles = block_cycles(rows, taps, run)
    work = panels * lines / 2 * mine * cycles
    image, weights = s.n * s.h * s.sh * s.sw * s.w * s.c * width, conv_bytes(s, p, t)
    chunks = max(1.0, image * mine / RESIDENT)
    traffic = streamed(t, weights, chunks * mine) + fetched(
        t, panels * image * mine, min(image, RESIDENT))
    return BEGIN + overlapped(t, work, traffic) + rounding(s, t, image // width)
