"""Measures the row that this machine would have in the table of machines, and compares the two."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from ctypes import CDLL
from pathlib import Path
from tempfile import TemporaryDirectory

from graphtool.machines import Machine, caches, cores, cpu, model, table
from graphtool.native.compiler import find
from graphtool.report.rates import KINDS, Rates, loops
from graphtool.report.table import Column, Table, optional
from graphtool.target import Target, recognised_here

FAR = 1 << 26  # bytes: the weights of a network, which fit no cache of most machines


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
    found = {kind: _digits(rate / f32) for kind, rate in rates.items() if rate}
    return Machine(name, model(), [c for c in [cpu()] if c], target.name, target.lanes,
                   _digits(f32), found, l1, l2, l3,
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
    """The row by which kernels for this machine are chosen: its own, or one of the target's generic
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


MACHINES: tuple[Column[Machine], ...] = (
    Column("machine", "name"), Column("title"), Column("target", "isa"),
    Column("float32, GFLOP/s", lambda m: f"{m.f32:g}"),
    Column("GB/s", lambda m: " / ".join(f"{b:g}" for b in m.gbps)), Column("source"))


def distance(known: Machine, here: Machine) -> str:
    """How far the machine at hand is from its row, in short."""
    parts = (("float32", known.f32 * min(1.0, here.lanes / known.lanes), here.f32),
             *((place, a, b) for place, a, b in zip(("L1", "L2", "L3", "64 MB"), known.gbps,
                                                    here.gbps, strict=True)))
    return ", ".join(f"{name} {100 * b / a:.0f} %" for name, a, b in parts)
