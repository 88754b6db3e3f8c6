"""Measures this machine's peak float32 flops and read bandwidth, by short loops in C.

The loops are compiled with the flags of the profiled build; other element types may be faster.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from graphtool.native.compiler import Compiler
from graphtool.report.rates import Rates, loops

SIZES = (1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)  # bytes read again and again, per thread


class Bandwidth(msgspec.Struct):
    """The read bandwidth of all threads together for arrays of `bytes` in total, in GB/s."""

    bytes: int
    gbps: float


class Peaks(msgspec.Struct):
    """The peaks of all threads together."""

    gflops: float
    bandwidth: list[Bandwidth]

    def gbps(self, amount: int) -> float:
        """The bandwidth in GB/s for that many bytes, which may fit into a cache."""
        held = (b.gbps for b in self.bandwidth if b.bytes >= amount)
        return next(held, self.bandwidth[-1].gbps)

    def least_us(self, flops: int, amount: int) -> float:
        """The least time in µs for this number of flops and bytes."""
        return max(flops / self.gflops, amount / self.gbps(amount)) / 1000


def peaks(compiler: Compiler, threads: int, folder: Path) -> Peaks:
    """Measure the peaks, in about 0.2 s; the C code is compiled in `folder`."""
    here = Rates(loops(compiler, folder), threads, SIZES[-1])
    flops, rates = here.rate("f32"), [here.read(size) for size in SIZES]
    # a larger array that was read faster tells that the smaller one was disturbed
    rates = [max(rates[i:]) for i in range(len(rates))]
    return Peaks(flops, [Bandwidth(threads * s, r) for s, r in zip(SIZES, rates, strict=True)])
