"""`size`: the bytes of flash, RAM and stack that a call of a model takes, kernel by kernel, and
whether they are within limits.

Flash is code, constants and weights; RAM is the arena, the inputs and the outputs, which the caller
holds, and the static data. What the C library and the compiler's runtime add is not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import msgspec

from graphtool.compile.build import TEXTS
from graphtool.compile.lowering import functions
from graphtool.compile.options import MODEL, PROGRAM, Build
from graphtool.compile.texts import precision
from graphtool.compile.unit import LibraryUnit
from graphtool.errors import UsageError
from graphtool.loops.liveness import Life, covered, lifetimes, places_of_runs
from graphtool.loops.program import SCRATCH, Buffer, Program
from graphtool.loops.totals import executions
from graphtool.native.compiler import find
from graphtool.native.footprint import Footprint, footprint
from graphtool.report.table import Column, human
from graphtool.symbolic import Dim, evaluate, symbols

_BARS = 24  # the width of the picture
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class KernelSize(msgspec.Struct):
    """One call of a kernel: bytes of its code (null: in the code of its caller), which all its
    calls share, of the weights that it reads, of the arena that is live while it runs, and the
    operations of all its iterations."""

    kernel: str
    what: str
    at: str
    code: int | None
    weights: int
    live: int
    operations: int


class Held(msgspec.Struct):
    """A value in the arena while the most of it is live, its type and its bytes."""

    value: str
    type: str
    bytes: int


class Limit(msgspec.Struct):
    """A limit that was asked for, of flash, ram or stack: bytes at most, and found (null: no bound
    is known); `ok`: it is kept."""

    of: str
    most: int
    found: int | None
    ok: bool


class SizeReport(msgspec.Struct):
    """`size --json`; schemas/size.schema.json is made from it.

    Sizes are bytes. `code` is null for a compiler whose objects are not read; `stack` is null where
    there is no bound, which `stack_why` explains. `stack_path` are the functions of the deepest
    chain of calls, `stack_outside` functions that it does not count: they are in other libraries. A
    multiply-add is two operations. `dims` are the sizes for which all this holds. `peak` are the
    values in the arena while kernel `peak_kernel` runs, when most of it is live. `met`: all limits
    are kept.
    """

    name: str
    target: str
    compiler: str
    dims: dict[str, int]
    flash: int | None
    code: int | None
    constants: int
    weights: int
    ram: int
    arena: int
    live: int
    inputs: int
    outputs: int
    static: int
    stack: int | None
    stack_why: str
    stack_path: list[str]
    stack_outside: list[str]
    operations: int
    kernels: list[KernelSize]
    peak_kernel: str
    peak: list[Held]
    limits: list[Limit]
    met: bool


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The most bytes of flash, RAM and stack, where they are limited."""

    flash: int | None = None
    ram: int | None = None
    stack: int | None = None


def byte_count(option: str, given: str | int | None) -> int | None:
    """The bytes that an option names, as in 64K. Raises UsageError GT3059."""
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    match = re.fullmatch(r"(\d+)\s*([kmg]?)(i?b)?", str(given).lower())
    if match is None:
        raise UsageError("GT3059", f"{option} {given!r} is no number of bytes", hint="as in 64K")
    return int(match[1]) * _UNITS[match[2]]


def within(unit: LibraryUnit, how: Build) -> Build:
    """The options with which the unit keeps --max-ram and --max-flash: as given, with the kernels
    of fewer bytes, or with rows that are streamed through the first layers.

    Raises UsageError GT2109 where these need too much as well, with the nodes that need the most
    and what would help; else what `measured` raises.
    """
    limits = MemoryLimits(byte_count("--max-flash", how.max_flash),
                          byte_count("--max-ram", how.max_ram))
    if limits == MemoryLimits():
        return how
    for one in _choices(unit, how, limits):
        report = measured(unit, one, {}, limits)
        if report.dims:
            raise UsageError("GT2109", f"{report.name} has open sizes, and --max-ram and "
                                       "--max-flash are for fixed ones",
                             where=", ".join(report.dims),
                             hint="fix them at the import, as by --dynamic batch=1; or measure "
                                  "some by `graphtool size --dim`")
        if report.met:
            return one
    told = list(broken(report))
    heads = [line for line in told if not line.startswith("  ")]
    more = [line.strip() for line in told if line.startswith("  ")]
    helps = [line.removeprefix("help: ") for line in more if line.startswith("help: ")]
    raise UsageError("GT2109", f"{report.name} does not fit: {'; '.join(heads)}",
                     where="; ".join(line for line in more if not line.startswith("help: ")),
                     hint="; ".join(helps) or "a smaller model, or other limits")


def _choices(unit: LibraryUnit, how: Build, limits: MemoryLimits) -> list[Build]:
    """The options as given, then with kernels of fewer bytes, then with rows that are streamed."""
    if unit.kind != MODEL or how.objective == "ram":
        return [how]
    small = how.objective == "size" or (how.objective == "usual" and unit.target.freestanding)
    chosen = [how] if small else [how, replace(how, objective="size")]
    return chosen if limits.ram is None else [*chosen, replace(how, objective="ram")]


def measured(unit: LibraryUnit, how: Build, dims: Mapping[str, int], limits: MemoryLimits
             ) -> SizeReport:
    """The report of a unit of one function, which is compiled here.

    Raises UsageError GT3058 for another unit, GT2107 for a device, CompilerError GT212x when a
    compiler is missing or fails, and what the passes, `lower` and the texts raise.
    """
    if unit.kind not in (MODEL, PROGRAM):
        raise UsageError("GT3058", "sizes are of one function", hint="name the graph of a model")
    if unit.target.grid:
        raise UsageError("GT2107", f"code for {unit.target.name} is not measured",
                         hint="build.json and NAME.h of a build say what memory it needs")
    how = how.fitted(unit.target)
    function_of = functions(unit, how)
    (function,) = function_of.values()
    program = function.program
    compiler = find(how.cc, unit.target, threads=False).of_class(precision(program))
    texts = TEXTS[unit.kind](unit, function_of, how).files
    foot = footprint(texts, compiler, f"{program.name}_run", leave=(
        f"{program.name}_example.c", f"{program.name}_load.c"))
    return sized(program, foot, compiler.version, dims, limits)


def sized(program: Program, foot: Footprint, compiler: str, dims: Mapping[str, int],
          limits: MemoryLimits) -> SizeReport:
    """The report of a program whose C has the footprint `foot`. Open dims that are not given have
    their least sizes, those that a run computes their greatest."""
    sizes = _sizes(program, dims)
    count = _Count(program, sizes)
    rows = count.rows(foot.functions, f"{program.name}_")
    weights = count.total("weight")
    ports = (count.total("input"), count.total("output"))
    arena = count.of(program.arena)
    flash = None if foot.code is None else foot.code + foot.constants + weights
    ram = arena + sum(ports) + foot.data
    top = max(rows, key=lambda r: r.live, default=None)
    bounds = [Limit(of, most, got, got is not None and got <= most) for of, most, got in (
        ("flash", limits.flash, flash), ("ram", limits.ram, ram),
        ("stack", limits.stack, foot.stack.bytes)) if most is not None]
    return SizeReport(
        program.name, program.meta.get("target", ""), compiler,
        {s.name: sizes[s.name] for s in program.dims}, flash, foot.code, foot.constants, weights,
        ram, arena, top.live if top else 0, *ports, foot.data, foot.stack.bytes, foot.stack.why,
        list(foot.stack.path), list(foot.stack.outside), sum(r.operations for r in rows), rows,
        top.kernel if top else "", count.held(rows.index(top)) if top else [], bounds,
        all(b.ok for b in bounds))


def _sizes(program: Program, dims: Mapping[str, int]) -> dict[str, int]:
    """A value for every symbol of the program."""
    least = {s.name: max(s.lo or 0, 1, s.offset) for s in program.dims}
    least |= {s.name: s.hi if s.hi is not None else 1 for s in program.sizes}
    return least | dict(dims)


class _Count:
    """The bytes of a program's buffers at the given sizes."""

    def __init__(self, program: Program, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        dims = frozenset(s.name for s in (*program.dims, *program.sizes))
        self.runs = list(executions(program.steps, dims))
        self.places = places_of_runs(program.steps)
        self.buffers = {b.name: b for b in program.buffers}
        self.lives: dict[str, Life] = lifetimes(program.steps)

    def of(self, d: Dim) -> int:
        """The value of a size; a counter of a loop over steps counts as 1."""
        return evaluate(d, {s.name: self.sizes.get(s.name, 1) for s in symbols(d)})

    def bytes(self, b: Buffer) -> int:
        """The bytes of a buffer."""
        return self.of(b.bytes_of(b.size))

    def total(self, space: str) -> int:
        """The bytes of all buffers of a space."""
        return sum(self.bytes(b) for b in self.buffers.values() if b.space == space)

    def live(self, at: int) -> list[Buffer]:
        """The buffers of the arena that are live at a place, the largest first."""
        buffers = [b for b in self.buffers.values() if b.space == "arena" and b.name in self.lives
                 and self.lives[b.name][0] <= at <= self.lives[b.name][1]]
        return sorted(buffers, key=self.bytes, reverse=True)

    def rows(self, functions: Mapping[str, int], start: str) -> list[KernelSize]:
        """A row for each call of a kernel, whose function in C is called so after `start`."""
        return [KernelSize(
            run.kernel, run.label, run.where, _code_of(start + run.kernel, functions),
            sum(self.bytes(self.buffers[a]) for a in dict.fromkeys(run.args)
                if self.buffers[a].space == "weight"),
            covered((self.of(b.offset), self.bytes(b)) for b in self.live(at)),
            self.of(run.flops * times))
            for (run, times), at in zip(self.runs, self.places, strict=True)]

    def held(self, row: int) -> list[Held]:
        """What the arena holds while the call of a row runs."""
        return [Held(b.label or b.name, b.dtype.short, self.bytes(b))
                for b in self.live(self.places[row])]


def _code_of(kernel: str, functions: Mapping[str, int]) -> int | None:
    """The bytes of a kernel's function and of those that only it has: KERNEL_0, KERNEL_0_tile."""
    sizes = [size for name, size in functions.items()
           if name == kernel or name.startswith((f"{kernel}_", f"{kernel}."))]
    return sum(sizes) if sizes else None


COLUMNS: tuple[Column[KernelSize], ...] = (
    Column("kernel"), Column("code, B", lambda r: "" if r.code is None else r.code),
    Column("weights, B", "weights"), Column("arena, B", "live"), Column("operations"),
    Column("what"), Column("at"))


def picture(report: SizeReport) -> list[str]:
    """The arena over time: a bar for each call of a kernel."""
    top = max((r.live for r in report.kernels), default=0)
    width = max((len(r.kernel) for r in report.kernels), default=0)
    bars = [f"{r.kernel:<{width}}  {'#' * -(-r.live * _BARS // top) if top else '':<{_BARS}}  "
            f"{r.live:>{len(str(top))}}{'  the most' if r.live == top else ''}"
            for r in report.kernels]
    return [*(["the arena while each kernel runs, in bytes"] if bars else []), *bars]


def lines(report: SizeReport) -> list[str]:
    """The totals, one a line."""
    at = "".join(f", {name} = {n}" for name, n in report.dims.items())
    parts = f"constants {report.constants}, weights {report.weights}"
    flash = f"{report.flash}: code {report.code}, {parts}" if report.flash is not None else (
        f"code unknown, {parts}")
    stack = f"{report.stack}: {' > '.join(report.stack_path)}" if report.stack is not None else (
        f"unknown: {report.stack_why}")
    outside = f", without {', '.join(report.stack_outside)}" if report.stack_outside else ""
    return [f"{report.name} for {report.target or 'any machine'}{at}, in bytes",
            f"flash       {flash}",
            f"RAM         {report.ram}: arena {report.arena}, inputs {report.inputs}, outputs "
            f"{report.outputs}, static {report.static}",
            f"stack       {stack}{outside}",
            f"operations  {report.operations}, a multiply-add being two"]


def broken(report: SizeReport) -> Iterator[str]:
    """For each limit that is not kept: what is over it, and what would help."""
    for limit in report.limits:
        if limit.ok:
            continue
        head = f"--max-{limit.of} {human(limit.most, 'B')}"
        if limit.found is None:
            yield (f"{head}: no bound is known, "
                   f"{report.stack_why if limit.of == 'stack' else 'the code was not read'}")
            continue
        yield f"{head}: {limit.found} bytes, {limit.found - limit.most} too many"
        yield from {"ram": _ram, "flash": _flash, "stack": _stack}[limit.of](report)


def _ram(report: SizeReport) -> Iterator[str]:
    where = next((f"{r.kernel} ({r.what})" for r in report.kernels
                  if r.kernel == report.peak_kernel and r.live == report.live), "")
    if where:
        yield f"  most of the arena is live in {where}: " + ", ".join(
            f"{h.value} {h.type} {h.bytes}" for h in report.peak[:4])
    scratch = sum(h.bytes for h in report.peak if h.value.startswith(SCRATCH))
    if any(h.type == "f32" and h.bytes * 4 >= report.live for h in report.peak):
        yield "  help: `graphtool quantise --calibrate` makes activations a quarter of that"
    if scratch * 4 >= report.live > 0:
        yield ("  help: the kernel's workspace goes with another kernel, as by --passes with "
               "select{winograd=0}")
    if report.arena > report.live * 5 // 4:
        yield f"  help: only {report.live} bytes live at once; the plan of memory has gaps"
    if report.inputs + report.outputs > report.arena:
        yield ("  help: inputs and outputs are most of it: smaller ones, fewer at once, or bytes "
               "by `graphtool quantise --io int8`")


def _flash(report: SizeReport) -> Iterator[str]:
    most = sorted(report.kernels, key=lambda r: r.weights + (r.code or 0), reverse=True)[:3]
    yield "  most of the flash is in " + ", ".join(
        f"{r.kernel} ({r.what}) {r.weights + (r.code or 0)}" for r in most)
    if report.weights > (report.code or 0):
        yield "  help: `graphtool quantise` makes weights smaller"
    else:
        yield "  help: the code is most of it; the target of a microcontroller makes less"


def _stack(report: SizeReport) -> Iterator[str]:
    yield f"  the deepest calls are {' > '.join(report.stack_path)}"
