"""The cost of products with packed weights: as float32, as integers, in bfloat16."""

from __future__ import annotations

from graphtool.ir.plan import Plan
from graphtool.kernels.choice.machine import UNITS, ceil, overlapped, streamed
from graphtool.kernels.choice.sites import Packed
from graphtool.target import Target

FEW = 2  # tiles of rows; weights in panels are unpacked again for each tile
UNPACK = 1  # cycles to make a vector of floats of weights in panels, in a register
STORE = 2  # further cycles to make it once for all rows, in memory
GATHER = 7  # cycles for a vector of weights that lie row by row
SINGLE, EIGHT = 2.3, 9  # cycles to unpack such a vector and multiply one row by it, or eight
WIDEN = 2  # cycles to make a vector of floats of packed weights
MANY = 16  # rows for which a panel of weights is widened once
UNIT = 8  # rows from which on a matrix unit can pay
ROUND = 3  # cycles to round a vector of activations


def rows(target: Target, limit: int | None) -> int:
    """Rows whose sums fit the registers: of each the integers of a block, and the total."""
    most = 12 if target.registers >= 32 else 5
    return most if limit is None else max(1, min(most, limit))


def _bytes(s: Packed, size: int) -> float:
    """Bytes of the weights, with tables whose numbers have so many bytes."""
    return s.n * (s.k * s.bits / 8 + ceil(s.k, s.block) * size * (2 if s.zeros else 1))


def exact_cost(s: Packed, _: Plan, t: Target) -> float:
    """Expected microseconds with weights that are unpacked to float32."""
    vectors = s.n * s.k / t.lanes
    if s.m >= MANY:
        work, times = vectors * (GATHER + s.m * 1.4 / UNITS), 1
    else:
        work, times = vectors * (s.m // 8 * EIGHT + s.m % 8 * SINGLE), s.m // 8 + s.m % 8
    rounding = s.m * s.k / t.lanes * ROUND / t.mhz if s.q8 else 0.0
    return overlapped(t, work / t.threads, streamed(
        t, _bytes(s, 4), times / t.threads)) + rounding


def f32_cost(s: Packed, _: Plan, t: Target) -> float:
    """Expected microseconds with weights that become numbers in panels: for each of few tiles of
    rows again, which are copied, or once."""
    vectors, tiles = ceil(s.n, t.lanes) * s.k, ceil(s.m, rows(t, s.m))
    few = tiles <= FEW
    unpack, row = (tiles * UNPACK, 1.3) if few else (UNPACK + STORE, 1.0)
    work = vectors * (unpack + s.m * row / UNITS)
    copies = s.m * s.k / t.lanes / t.mhz if few else 0.0
    return overlapped(t, work / t.threads, streamed(t, _bytes(s, 2), 1 / t.threads)) + copies


def q8_cost(s: Packed, _: Plan, t: Target) -> float:
    """Expected microseconds with activations of 8 bits."""
    fields, blocks = s.n * s.k / t.lanes / 4, ceil(s.n, t.lanes) * ceil(s.k, s.block)
    dot = 1.0 if t.dot8 else 3.0
    tiles = ceil(s.m, rows(t, s.m))
    work = fields * (tiles + s.m * dot / UNITS) + blocks * s.m * 1.5
    return overlapped(t, work / t.threads, streamed(
        t, _bytes(s, 2), 1 / t.threads)) + s.m * s.k / t.lanes * ROUND / t.mhz


def bf16_cost(s: Packed, _: Plan, t: Target) -> float:
    """Expected microseconds in bfloat16 by a matrix unit. Each thread rounds all rows."""
    steps = ceil(s.n, t.nr) * ceil(s.k, 32)
    work = s.n * s.k / t.lanes * WIDEN + steps * ceil(s.m, 16) / 2 * 64
    return overlapped(t, work / t.threads, streamed(
        t, _bytes(s, 2), 1 / t.threads)) + s.m * s.k / t.lanes / t.mhz
