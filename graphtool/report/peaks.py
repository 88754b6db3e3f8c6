"""Measures this machine's peak flops and read bandwidth, by short loops in C.

The loops are compiled with the flags of the profiled build.
"""

from __future__ import annotations

from collections.abc import Iterable
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
    """The peaks of all threads together: `gflops` of float32; `rates` has those of the other
    instructions that the kernels are for, such as bf16 and tile_int8."""

    gflops: float
    bandwidth: list[Bandwidth]
    rates: dict[str, float] = {}

    def gbps(self, amount: int) -> float:
        """The bandwidth in GB/s for that many bytes, which may fit into a cache."""
        held = (b.gbps for b in self.bandwidth if b.bytes >= amount)
        return next(held, self.bandwidth[-1].gbps)

    def least_us(self, flops: float, amount: int, kind: str = "f32") -> float:
        """The least time in µs for this number of flops of a kind, and of bytes."""
        rate = self.rates.get(kind) or self.gflops
        return max(flops / rate, amount / self.gbps(amount)) / 1000


def peaks(compiler: Compiler, threads: int, folder: Path, kinds: Iterable[str] = ()) -> Peaks:
    """Measure the peaks, those of float32 and of other `kinds` of rates, in about 0.2 s; the C code
    is compiled in `folder`."""
    here = Rates(loops(compiler, folder), threads, SIZES[-1])
    flops, rates = here.rate("f32"), [here.read(size) for size in SIZES]
    # a larger array that was read faster tells that the smaller one was disturbed
    rates = [max(rates[i:]) for i in range(len(rates))]
    found = {kind: here.rate(kind) for kind in sorted({*kinds} - {"f32"})}
    return Peaks(flops, [Bandwidth(threads * s, r) for s, r in zip(SIZES, rates, strict=True)],
                 {kind: rate for kind, rate in found.items() if rate})
