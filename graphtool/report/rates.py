"""Measures rates of this machine by the short C loops of rates.h: operations and bytes a second."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from graphtool.emit.headers import used_headers
from graphtool.native.compiler import Compiler

KINDS = ("f32", "f64", "f16", "bf16", "int8", "tile_bf16", "tile_int8")
SOURCE = '#include "rates.h"\n'
ENOUGH = 1 << 24  # bytes read for one timing, or all that there are
SHORT, LONG = 2_000, 0.001  # steps of a first timing; seconds that one shall take
MEETINGS = 200
REPEATS = 9  # of which the fastest counts: what disturbs a loop only ever makes it longer


def loops(compiler: Compiler, folder: Path) -> ctypes.CDLL:
    """The loops, compiled in `folder` with the flags of the compiler."""
    source, headers = folder / "gt_rates.c", used_headers([SOURCE])
    for name, text in {source.name: SOURCE, **headers}.items():
        (folder / name).write_text(text)
    made = compiler.compile(source, "".join(headers.values()))
    compiler.link([made], folder / "gt_rates.so")
    return ctypes.CDLL(str(folder / "gt_rates.so"))


class Rates:
    """The rates of so many threads together; each has `room` bytes of its own to read."""

    def __init__(self, library: ctypes.CDLL, threads: int, room: int) -> None:
        self.held = np.ones((threads, room // 4 + 16), np.float32)
        self.starts = [(-(-row.ctypes.data // 64)) * 64 for row in self.held]
        self.library, self.threads, self.room = library, threads, room

    def rate(self, kind: str) -> float:
        """Operations of a kind a second, in units of 10⁹, by all threads together; 0 if the machine
        has no such instruction. `clock` counts cycles."""
        loop = getattr(self.library, f"gt_rate_{kind}")
        loop.restype, loop.argtypes = ctypes.c_int64, [ctypes.c_int64]
        loop(SHORT)  # a unit that sleeps takes its time to wake
        start = time.perf_counter()
        done: int = loop(SHORT)
        if not done:
            return 0.0
        steps = max(SHORT, int(SHORT * LONG / (time.perf_counter() - start)))
        return self.threads * done / SHORT * steps / self._fastest(lambda _: loop(steps)) / 1e9

    def read(self, size: int) -> float:
        """GB/s of all threads together, of which each reads `size` bytes of its own again and
        again."""
        loop = self.library.gt_rate_read
        loop.restype = ctypes.c_int64
        loop.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        size = min(size, self.room)
        times = max(1, ENOUGH // size)
        done: int = loop(self.starts[0], size // 4, 1) * times
        return self.threads * done / self._fastest(lambda at: loop(at, size // 4, times)) / 1e9

    def meet(self) -> float:
        """Microseconds until all threads have met, one time after another."""
        loop = self.library.gt_rate_meet
        loop.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        best = float("inf")
        with ThreadPoolExecutor(self.threads) as pool:
            for _ in range(REPEATS):
                place = np.zeros(1, np.int64)
                start = time.perf_counter()
                list(pool.map(lambda _, at=place.ctypes.data: loop(at, self.threads, MEETINGS),
                              self.starts))
                best = min(best, time.perf_counter() - start)
        return best / MEETINGS * 1e6

    def _fastest(self, work: Callable[[int], object]) -> float:
        """Seconds of a thread, its own: others may use its processor meanwhile."""
        def seconds(at: int) -> float:
            start = time.thread_time()
            work(at)
            return time.thread_time() - start
        if self.threads == 1:
            return min(seconds(self.starts[0]) for _ in range(REPEATS))
        with ThreadPoolExecutor(self.threads) as pool:
            return min(sum(pool.map(seconds, self.starts)) / self.threads for _ in range(REPEATS))
