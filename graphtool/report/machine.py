"""How fast this machine is: rates of instructions and memory, measured by short loops in C.

`Rates` times the loops of rates.h. `peaks` and `roof_of` bound what a kernel can reach; `measured`
is the row that this machine would have in the table of machines.
"""

from __future__ import annotations

import ctypes
import datetime
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np

from graphtool.emit.headers import used_headers
from graphtool.io.manifest_rows import Choice
from graphtool.ir.op import OPS
from graphtool.ir.plan import Plan, plan
from graphtool.machines import Machine, caches, cores, cpu, model, table
from graphtool.native.compiler import Compiler, find
from graphtool.report.table import Column, Table, optional
from graphtool.target import Target, recognised_here

KINDS = ("f32", "f64", "f16", "bf16", "int8", "tile_bf16", "tile_int8")
SOURCE = '#include "rates.h"\n'
ENOUGH = 1 << 24  # bytes read for one timing, or all that there are
SHORT, LONG = 2_000, 0.001  # steps of a first timing; seconds that one shall take
MEETINGS = 200
REPEATS = 9  # of which the fastest counts: what disturbs a loop only ever makes it longer
FAR = 1 << 26  # bytes: the weights of a network, which fit no cache of most machines
MACHINES: tuple[Column[Machine], ...] = (
    Column("machine", "name"), Column("title"), Column("target", "isa"),
    Column("float32, GFLOP/s", lambda m: f"{m.f32:g}"),
    Column("GB/s", lambda m: " / ".join(f"{b:g}" for b in m.gbps)), Column("source"))
SIZES = (1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)  # bytes read again and again, per thread
_TAPS = 3  # of the filters that Winograd's kernels are for


def loops(compiler: Compiler, folder: Path) -> ctypes.CDLL:
    """The loops, compiled in `folder` with the flags of the compiler."""
    source, headers = folder / "gt_rates.c", used_headers([SOURCE])
    for name, text in {source.name: SOURCE, **headers}.items():
        (folder / name).write_bytes(text.encode())
    library = compiler.compile(source, "".join(headers.values()))
    compiler.link([library], folder / "gt_rates.so")
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
        """GB/s of all threads together; each reads its own `size` bytes again and again."""
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


def measured(name: str = "here", cc: str | None = None) -> Machine:
    """The row of this machine, in a second or two. Raises CompilerError without a C compiler."""
    target = recognised_here()
    l1, l2, l3 = (here or usual for here, usual in zip(
        caches(), (target.l1, target.l2, target.l3), strict=True))
    with TemporaryDirectory(prefix="graphtool-") as folder:
        library = loops(find(cc, target), Path(folder))
        one = Rates(library, 1, FAR)
        rates = {kind: one.rate(kind) for kind in KINDS}
        gbps = [_digits(one.read(size)) for size in _sizes(l1, l2, l3)]
        together, meet = _together(library, gbps[3])
    f32 = rates.pop("f32")
    rates_ = {kind: _digits(rate / f32) for kind, rate in rates.items() if rate}
    return Machine(name, model(), [c for c in [cpu()] if c], target.name, target.lanes,
                   _digits(f32), rates_, l1, l2, l3,
                   (gbps[0], gbps[1], gbps[2], gbps[3]),
                   f"measured {datetime.date.today()} on {cores()} of its cores",
                   _digits(together), _digits(meet))


def _sizes(l1: int, l2: int, l3: int) -> tuple[int, int, int, int]:
    """Bytes to read from each cache, and from beyond: half of it, and of a large third one what
    several threads leave to each of them."""
    return l1 // 2, l2 // 2, min(l3 // 2, max(4 * l2, 8 << 20)), FAR


def _together(library: CDLL, alone: float) -> tuple[float, float]:
    """GB/s that all cores together read of 64 MB each, and microseconds until two have met."""
    if cores() == 1:
        return alone, 0.2
    return Rates(library, cores(), FAR).read(FAR), Rates(library, 2, 1 << 12).meet()


def _digits(x: float) -> float:
    """Three digits: more would not be the same a second later."""
    return float(f"{x:.3g}")


def figures(m: Machine) -> Iterator[tuple[str, float]]:
    """The figures of a row, each with its name."""
    yield "float32, GFLOP/s", m.f32
    for kind, rate in m.rates.items():
        yield f"{kind}, times float32", rate
    for place, rate in zip(("L1", "L2", "L3", "64 MB"), m.gbps, strict=True):
        yield f"{place}, GB/s", rate
    if m.all_gbps:
        yield "64 MB each, all cores, GB/s", m.all_gbps


def against(target: Target) -> Machine:
    """The row for the choice of kernels on this machine: its own, or one of the target's generic
    figures."""
    if target.machine in table():
        return table()[target.machine]
    return Machine(target.machine, target.title, [], target.name, target.lanes,
                   target.mhz * 4 * target.lanes / 1000,
                   {"bf16": target.dots} if target.bf16 else {}, target.l1, target.l2, target.l3,
                   target.bandwidth, "the target's own figures")


def compared(known: Machine, here: Machine) -> Table:
    """Each figure, known and measured."""
    before = dict(figures(known))
    return Table(("", "the row", "measured", "measured / row"), [
        (name, optional(".3g", before.get(name)), f"{rate:.3g}",
         f"{rate / before[name]:.2f}" if name in before else "") for name, rate in figures(here)])


def distance(known: Machine, here: Machine) -> str:
    """How far the machine at hand is from its row, in short."""
    parts = (("float32", known.f32 * min(1.0, here.lanes / known.lanes), here.f32),
             *((place, a, b) for place, a, b in zip(("L1", "L2", "L3", "64 MB"), known.gbps,
                                                    here.gbps, strict=True)))
    return ", ".join(f"{name} {100 * b / a:.0f} %" for name, a, b in parts)


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
    by_kind = {kind: here.rate(kind) for kind in sorted({*kinds} - {"f32"})}
    return Peaks(flops, [Bandwidth(threads * s, r) for s, r in zip(SIZES, rates, strict=True)],
                 {kind: rate for kind, rate in by_kind.items() if rate})


def roof_of(choice: Choice | None) -> tuple[str, float]:
    """The kind of rate that bounds the kernel of a step, and how many multiplications it does for
    one that the op's definition has: Winograd's do with fewer."""
    if choice is None or not choice.us:
        return "f32", 1.0
    chosen = plan(next(iter(choice.us)))
    kind = "bf16" if chosen.get("rounded", 0) else _rate(chosen)
    if kind == "tile_bf16" and re.search(r"\bdtype=u8\b", choice.site):
        kind = "tile_int8"
    return kind, _multiplied(chosen)


def device_peaks(target: Target) -> Peaks:
    """What the data sheet of a device promises."""
    rates = {kind: rate for kind, rate in target.roof.items() if kind not in ("f32", "gbps")}
    return Peaks(target.roof["f32"], [Bandwidth(1 << 62, target.roof["gbps"])], rates)


def device_roof(choice: Choice | None) -> tuple[str, float]:
    """As `roof_of`, for a kernel of a device: numbers in two parts are multiplied three times."""
    if choice is None or not choice.us:
        return "f32", 1.0
    chosen = plan(next(iter(choice.us)))
    if _rate(chosen) == "bf16" or re.search(r"\bdtype=b?f(loat)?16\b", choice.site):
        return "bf16", 1.0
    return {1: ("tf32", 3.0), 2: ("tf32", 1.0)}.get(chosen.get("unit", 0), ("f32", 1.0))


def _rate(chosen: Plan) -> str:
    """The rate of the form that the plan has."""
    forms = (form for op in OPS.values() for form in op.plans)
    return next((form.rate for form in forms if form.kind == chosen.kind), "f32")


def _multiplied(chosen: Plan) -> float:
    """Of a tile of n outputs along an axis, n + 2 products stand for 3 n. Of numbers in parts, all
    products of parts are counted that are not too small."""
    if parts := chosen.get("parts", 0):
        return parts * (parts + 1) / 2
    tile = chosen.get("tile", 0)
    if not chosen.kind.startswith("winograd") or not tile:
        return 1.0
    axes = 1 if chosen.kind == "winograd_line" else 2
    return ((tile + _TAPS - 1) / (_TAPS * tile)) ** axes
