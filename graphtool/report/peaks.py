"""Measures this machine's peak float32 flops and read bandwidth, by short loops in C.

The loops are compiled with the flags of the profiled build; other element types may be faster.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from graphtool.emit.headers import used_headers
from graphtool.native.compiler import Compiler

SIZES = (1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)  # bytes read again and again, per thread
ENOUGH = 1 << 26  # bytes read for one timing
FLOPS = 80_000_000  # for another
REPEATS = 3

SOURCE = """#include "prelude.h"
typedef float lanes __attribute__((vector_size(4 * GT_LANES)));
enum { ROWS = 12 };

__attribute__((visibility("default"))) float gt_peak_flops(int64_t flops, float by)
{
    lanes acc[ROWS], factor = (lanes){0} + by;
    for (int r = 0; r < ROWS; r++) acc[r] = (lanes){0} + (float)r;
    for (int64_t n = 0; n < flops / (2 * ROWS * GT_LANES); n++)
        for (int r = 0; r < ROWS; r++) acc[r] = acc[r] * factor + factor;
    lanes sum = {0};
    for (int r = 0; r < ROWS; r++) sum += acc[r];
    float total = 0;
    for (int l = 0; l < GT_LANES; l++) total += ((float *)&sum)[l];
    return total;
}

__attribute__((visibility("default"))) float gt_peak_read(const float *x, int64_t count,
                                                          int64_t times)
{
    lanes acc[8] = {{0}};
    for (int64_t n = 0; n < times; n++) {
        for (int64_t i = 0; i + 8 * GT_LANES <= count; i += 8 * GT_LANES)
            for (int r = 0; r < 8; r++) acc[r] += *(const lanes *)(x + i + r * GT_LANES);
        __asm__ volatile("" ::: "memory");
    }
    lanes sum = {0};
    for (int r = 0; r < 8; r++) sum += acc[r];
    float total = 0;
    for (int l = 0; l < GT_LANES; l++) total += ((float *)&sum)[l];
    return total;
}
"""


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
    source = folder / "gt_peaks.c"
    for name, text in {source.name: SOURCE, **used_headers([SOURCE])}.items():
        (folder / name).write_text(text)
    compiler.link([compiler.compile(source, "")], folder / "gt_peaks.so")
    library = ctypes.CDLL(str(folder / "gt_peaks.so"))
    room = np.ones((threads, SIZES[-1] // 4 + 16), np.float32)
    starts = [(-(-row.ctypes.data // 64)) * 64 for row in room]
    with ThreadPoolExecutor(threads) as pool:
        def fastest(work: Callable[[int], object]) -> float:
            return min(_seconds(pool, starts, work) for _ in range(REPEATS))

        def read(size: int, at: int) -> None:
            library.gt_peak_read(ctypes.c_void_p(at), ctypes.c_int64(size // 4),
                                 ctypes.c_int64(ENOUGH // size))

        def flops(_: int) -> None:
            library.gt_peak_flops(ctypes.c_int64(FLOPS), ctypes.c_float(0.5))
        best = fastest(flops)
        took = [fastest(partial(read, size)) for size in SIZES]
    rates = [threads * ENOUGH / t / 1e9 for t in took]
    # a larger array that was read faster tells that the smaller one was disturbed
    rates = [max(rates[i:]) for i in range(len(rates))]
    return Peaks(threads * FLOPS / best / 1e9, [
        Bandwidth(threads * s, r) for s, r in zip(SIZES, rates, strict=True)])


def _seconds(pool: ThreadPoolExecutor, starts: list[int], work: Callable[[int], object]) -> float:
    start = time.perf_counter()
    list(pool.map(work, starts))
    return time.perf_counter() - start
