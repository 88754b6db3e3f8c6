"""Checks that a program is sound before it becomes C: names, types, buffers, memory, barriers.

It proves nothing about values that are read from data: an index is an error only if it is certainly
outside of its buffer. verify_kernel.py checks the kernels themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from graphtool.dtypes import bool_, int32, int64
from graphtool.errors import InputError
from graphtool.loops.liveness import Life, lifetimes, places_of_runs
from graphtool.loops.program import (
    Bind,
    Branch,
    Buffer,
    Kernel,
    Program,
    Repeat,
    Run,
    Step,
    Times,
    counters,
    runs,
)
from graphtool.loops.sharing import touched_by
from graphtool.loops.verify_kernel import Access, accesses, fault, identifier
from graphtool.symbolic import Dim, bounds, known, mod, symbols

ALIGN = 64
META = {  # what the C depends on
    "lanes": r"[1-9][0-9]{0,2}", "precision": r"strict|default|fast",
    "align": r"[1-9][0-9]{0,2}", "assume": r"nothing|finite|normal", "machine": r"[\w.-]{1,60}",
    "grids": r"[a-z]{5,6}\d{1,6} [\d.e+-]{1,30} -?\d{1,3}(, ?[a-z]{5,6}\d{1,6} [\d.e+-]{1,30} "
             r"-?\d{1,3})*",
    "language": r"[a-z][a-z0-9_-]{0,30}"}
T = TypeVar("T")


def verify(program: Program, where: str = "") -> None:
    """Check a program. Raises InputError GT0370 to GT0379 for the first fault found."""
    try:
        _Program(program).check()
    except InputError as error:
        error.within(where)
        raise


@dataclass(frozen=True)
class _Touch:
    """The memory that one step reads and writes."""

    reads: frozenset[str]
    writes: frozenset[str]
    serial: bool


class _Program:
    def __init__(self, program: Program) -> None:
        self.p = program
        self.buffers = _unique("buffer", [(b.name, b) for b in program.buffers])
        self.kernels = _unique("kernel", [(k.name, k) for k in program.kernels])
        self.dims = frozenset(s.name for s in program.dims)
        self.accesses: dict[str, list[Access]] = {}
        self.idle = False  # inside a loop that is never run
        self.checks = {i: b for i, b in enumerate(program.checks) if b.slot == i}

    def check(self) -> None:
        identifier(self.p.name, "program")
        if len(self.dims) != len(self.p.dims):
            raise fault("GT0370", "a dimension is declared twice")
        if self.p.threads < 1:
            raise fault("GT0379", f"threads is {self.p.threads}, expected 1 or more")
        for key, form in META.items():
            if key in self.p.meta and not re.fullmatch(form, self.p.meta[key]):
                raise fault("GT0379", f"{key} is {self.p.meta[key][:40]!r}", "meta")
        self.only_dims(self.p.arena, "the size of the arena")
        counted = [s.name for s in (*counters(self.p.steps), *self.p.sizes)]
        for name in counted:
            identifier(name, "counter")
        inner = self.dims | set(counted)
        if len(inner) != len(self.dims) + len(counted):
            raise fault("GT0370", "a counter or size is declared twice")
        self.counted = frozenset(counted)
        self.sizes = frozenset(s.name for s in self.p.sizes)
        for e in self.p.requires:
            self.only_dims(e.left, "a requirement")
            self.only_dims(e.right, "a requirement")
        for port in (*self.p.inputs, *self.p.outputs):
            for d in port.shape:
                self.only_dims(d, port.name, self.sizes if port in self.p.outputs else frozenset())
        for out, donor in self.p.donations:
            if not (0 <= out < len(self.p.outputs) and 0 <= donor < len(self.p.inputs)):
                raise fault("GT0379", f"output {out} is donated from input {donor}")
        for b in self.p.buffers:
            self.buffer(b)
        for k in self.p.kernels:
            identifier(k.name, "kernel")
            self.accesses[k.name] = accesses(k, inner)
        self.sequence(self.p.steps)
        self.arena()

    def only_dims(self, d: Dim, place: str, more: frozenset[str] = frozenset()) -> None:
        """Check that d uses only the program's dimensions, and those given."""
        unknown = [s.name for s in symbols(d) if s.name not in self.dims | more]
        if unknown:
            raise fault("GT0371", f"{place} uses {unknown[0]!r}, which is not a dimension of the "
                                  f"program")

    def buffer(self, b: Buffer) -> None:
        identifier(b.name, "buffer")
        self.only_dims(b.size, f"the size of {b.name}")
        self.only_dims(b.offset, f"the offset of {b.name}")
        ports = {"input": self.p.inputs, "output": self.p.outputs}.get(b.space)
        if ports is not None and not (0 <= b.slot < len(ports)
                                      and ports[b.slot].dtype is b.dtype):
            raise fault("GT0373", f"{b.name} is {b.space} {b.slot} of type {b.dtype}, and there is "
                                  f"no such {b.space}")
        if b.space == "check" and (b.dtype is not int32 or b.size != 1
                                   or b is not self.checks.get(b.slot)):
            raise fault("GT0373", f"{b.name} is a check, which is one i32 with a number of its own "
                                  f"from 0 to {len(self.checks) - 1}")
        if (b.space == "weight") != (b.name in dict(self.p.weights)):
            raise fault("GT0373", f"{b.name} is a weight without data, or has data and is not a "
                                  f"weight")
        if (known(b.offset, "<", 0), known(b.size, "<", 0)) != (False, False):
            raise fault("GT0376", f"{b.name} has a negative size or offset")
        if isinstance(b.offset, int) and mod(b.offset, self.p.align):
            raise fault("GT0376", f"{b.name} starts at {b.offset}, which is not a multiple of "
                                  f"{self.p.align}")

    # ---- steps -----------------------------------------------------------------------------

    def sequence(self, steps: Sequence[Step]) -> None:
        """Check steps in order. Threads wait before and after branches and loops."""
        plain: list[tuple[Run, _Touch]] = []
        for s in steps:
            if isinstance(s, Run):
                plain.append((s, self.step(len(plain), s)))
                continue
            self.barriers(plain)
            plain = []
            match s:
                case Bind():
                    self.bind(s)
                case Branch():
                    self.flag(s.pred, s.label)
                    self.sequence(s.then)
                    self.sequence(s.orelse)
                case Repeat():
                    self.flag(s.pred, s.label)
                    self.sequence(s.cond)
                    self.sequence(s.body)
                case Times():
                    self.only_dims(s.extent, f"the extent of {s.counter.name}", self.sizes)
                    outside, self.idle = self.idle, self.idle or known(s.extent, "<=", 0) is True
                    self.sequence(s.body)
                    self.idle = outside
        self.barriers(plain)

    def bind(self, s: Bind) -> None:
        b = self.named(s.buffer, s.label)
        if b.dtype is not int64 or known(b.size, "<=", s.index) is True:
            raise fault("GT0374", f"{s.size.name} is read from {b.name}, which is not an "
                                  f"i64", s.label)
        self.only_dims(s.index, f"the index of {s.size.name}", self.counted)
        self.only_dims(s.most, f"the bound of {s.size.name}")

    def flag(self, name: str, place: str) -> None:
        if self.named(name, place).dtype is not bool_:
            raise fault("GT0374", f"{name} selects steps, but is not a bool", place)

    def step(self, number: int, s: Run) -> _Touch:
        place = f"step {number}: {s.label}"
        kernel = self.kernels.get(s.kernel)
        if kernel is None:
            raise fault("GT0373", f"there is no kernel {s.kernel!r}", place)
        if len(s.args) != len(kernel.params):
            raise fault("GT0374", f"{len(s.args)} buffers are given to {kernel.name}, which takes "
                                  f"{len(kernel.params)}", place)
        if len(s.numbers) != len(kernel.numbers):
            raise fault("GT0374", f"{len(s.numbers)} numbers are given to {kernel.name}, which "
                                  f"takes {len(kernel.numbers)}", place)
        self.only_dims(s.flops, "flops")
        given: dict[str, Buffer] = {}
        for name, p in zip(s.args, kernel.params, strict=True):
            b = given[p.name] = self.named(name, place)
            if b.dtype is not p.dtype:
                raise fault("GT0374", f"{name} is {b.dtype}, {kernel.name} takes {p.dtype} as "
                                      f"{p.name}", place)
            if b.packed != p.packed:
                raise fault("GT0374", f"{name} has {'several elements' if b.packed else 'one'} in "
                                      f"a byte, but {kernel.name} reads it differently", place)
            if not p.const and b.space in ("input", "weight"):
                raise fault("GT0374", f"{kernel.name} writes {name}, which is read-only", place)
        if not self.idle:
            self.ranges(kernel, given, place)
        written = frozenset(a for a, p in zip(s.args, kernel.params, strict=True) if not p.const)
        return _Touch(frozenset(s.args) - written, written, kernel.serial)

    def named(self, name: str, place: str) -> Buffer:
        if name not in self.buffers:
            raise fault("GT0373", f"there is no buffer {name!r}", place)
        return self.buffers[name]

    def ranges(self, kernel: Kernel, given: Mapping[str, Buffer], place: str) -> None:
        """Check that no index of the kernel is certainly outside of the buffer that is passed to
        it."""
        for a in self.accesses[kernel.name]:
            size = given[a.buffer].size
            low, high = bounds(a.index)
            beyond = known(size, "<=", a.index)
            outside = beyond is True or (high is not None and high < 0)
            if a.exact and isinstance(size, int):  # the index reaches both ends of its interval
                outside |= (low is not None and low < 0) or (high is not None and high >= size)
            if outside:
                raise fault("GT0375", f"{kernel.name} touches {a.buffer}[{a.index}], "
                                      f"{given[a.buffer].name} has {size} elements", place)

    # ---- memory ----------------------------------------------------------------------------

    def arena(self) -> None:
        """Check that buffers that are live at the same time do not overlap, and are inside the
        arena."""
        liveness = lifetimes(self.p.steps)
        mine = [b for b in self.p.buffers if b.space == "arena"]
        for b in mine:
            if known(_end(b), "<=", self.p.arena) is False:
                raise fault("GT0376", f"{b.name} ends beyond the arena of {self.p.arena} bytes")
        alive = sorted((b for b in mine if b.name in liveness), key=lambda b: liveness[b.name])
        for i, x in enumerate(alive):
            for y in alive[i + 1:]:
                if liveness[y.name][0] > liveness[x.name][1]:
                    break
                if _overlap(x, y) and not self.shared(x, y, liveness):
                    raise fault("GT0376", f"{x.name} and {y.name} overlap in the arena while both "
                                          f"are in use", f"step {liveness[y.name][0]}")

    def shared(self, x: Buffer, y: Buffer, lives: Mapping[str, Life]) -> bool:
        """Whether x is an operand that a step uses last, y a result that it makes first, and their
        bytes are touched in an order in which none is lost."""
        place = lives[y.name][0]
        if lives[x.name][1] != place or lives[x.name][0] == place or self.dims or self.counted:
            return False
        run = next((r for r, at in zip(runs(self.p.steps), places_of_runs(self.p.steps),
                                       strict=True) if at == place), None)
        if run is None or not (isinstance(x.offset, int) and isinstance(y.offset, int)):
            return False
        if run.args.count(x.name) != 1 or run.args.count(y.name) != 1:
            return False
        kernel = self.kernels[run.kernel]
        read, written = (kernel.params[run.args.index(b.name)].name for b in (x, y))
        touched = touched_by(kernel, read, written, self.p.lanes)
        return touched is not None and touched.at(y.offset - x.offset)

    def barriers(self, plain: Sequence[tuple[Run, _Touch]]) -> None:
        """Check that threads wait between two steps if one writes memory that the other touches.

        Steps that write different elements of one buffer need no barrier between each other.
        """
        since: list[tuple[int, _Touch]] = []
        for i, (run, t) in enumerate(plain):
            for j, before in since:
                if t.serial and before.serial:  # the same thread runs both
                    continue
                if self.meet(before.writes, t.reads, True) or self.meet(
                        t.writes, before.reads, True) or self.meet(t.writes, before.writes, False):
                    raise fault("GT0377", f"there is no barrier between steps {j} and {i}, which "
                                          f"share memory", f"step {i}: {run.label}")
            since = [] if run.barrier else [*since, (i, t)]

    def meet(self, a: frozenset[str], b: frozenset[str], same: bool) -> bool:
        if same and a & b:
            return True
        return any(x != y and _overlap(self.buffers[x], self.buffers[y]) for x in a for y in b)


def _unique(kind: str, rows: list[tuple[str, T]]) -> dict[str, T]:
    table = dict(rows)
    if len(table) != len(rows):
        raise fault("GT0370", f"two {kind}s have the same name")
    return table


def _end(b: Buffer) -> Dim:
    return b.offset + b.bytes_of(b.size)


def _overlap(x: Buffer, y: Buffer) -> bool:
    """Whether two arena buffers certainly share a byte."""
    if x.space != "arena" or y.space != "arena" or 0 in (x.size, y.size):
        return False
    return known(_end(x), "<=", y.offset) is False and known(_end(y), "<=", x.offset) is False
