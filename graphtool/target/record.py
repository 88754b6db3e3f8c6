"""The record of a machine for which C is emitted, and the table of them.

A new target is one row: `register(Target("znver5", …))`. The emitted C does not depend on the row:
it contains the number of lanes, and selects instructions by the compiler's own macros.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field

from graphtool.errors import UsageError
from graphtool.machines import GENERIC

Flags = tuple[str, ...]
MOST_THREADS = 256  # of a run of a library that is for no stated number


@dataclass(frozen=True, slots=True)
class Levels:
    """A family of targets that can be together in one library, as `--march fat` builds it.

    `call` is the C expression for the level of the processor; `header` is the file that defines it.
    """

    name: str
    header: str
    call: str


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of machine.

    Sizes: `lanes` f32 lanes of a vector; a tile is `mr` rows × `nv` vectors of accumulators, which
    with a row of B and a broadcast fit the `registers`. `pair`: instructions that add a product of
    pairs of 16 bits to a sum, without and with `dot8`. kernels are chosen for `threads` of them,
    and a run may use `most_threads`. Caches are in bytes, `bandwidth` in GB/s a
    core out of each of them and out of memory, `all_gbps` out of memory for all cores, 0: no less
    for each. `mhz` is the clock of a core that starts two multiply-adds of its vectors a cycle and
    is as fast; `meet` are microseconds until two threads have met. Only the costs of candidates
    depend on these. `machine` is the row of the table of machines from which they are.

    Compiling: `flags` are spellings of the machine; the first that the compiler knows is used; none
    stands for a compiler that needs no flag. `more` are flags besides. `cross` is a compiler that
    makes code for this machine elsewhere; a row that names its `system`, as Python does, is
    compiled by it unless this machine is of that kind.

    Recognising: this machine is the row with the most `needs` among those whose `machines` has
    what Python calls it and whose `needs` the CPU has all. Any of the CPU features `bf16_by` and
    `dot8_by` says that it has dot products of bfloat16, and of four u8 by four s8: `bf16`, `dot8`.
    The former do `dots` times as many products as float32. `amx`: it has a matrix unit for both,
    whose tiles have `lanes` columns, and with `amx_fp16` for float16 too.
    A row of a family `levels` is its `level`-th, from 1 on; each takes what the one below takes.
    `language` names the language of the kernels, a row of emit/language.py. `devices` are the
    architectures for which a device's kernels are compiled, 10 · major + minor of CUDA's compute
    capability, in ascending order; such a device has so many `multiprocessors`, and its lanes are
    the threads that go in step; with `warpgroups`, four warps multiply together. `roof` is what its
    data sheet promises: GFLOP/s by how numbers are multiplied, and `gbps` of memory.

    A `freestanding` machine has no operating system: its C is for one thread and reads no file, the
    weights are constants of the C, and of two kernels the smaller one is taken. Buffers in its
    arena start at multiples of `align` bytes. Neither it nor one that is not `threaded` has more
    than one thread. A multiply-add of float32 takes `soft` times as long as it would with a unit
    for it. With `words`, four whole numbers of 32 bits are a vector there, though `lanes` is 1.
    """

    name: str
    title: str
    lanes: int
    mr: int
    nv: int
    registers: int = 16
    pair: tuple[int, int] = (4, 4)
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    mhz: int = 3000
    bandwidth: tuple[float, float, float, float] = (190.0, 95.0, 45.0, 15.0)
    all_gbps: float = 0.0
    meet: float = 0.2
    machine: str = GENERIC
    flags: tuple[Flags, ...] = ((),)
    more: Flags = ()
    cross: str = ""
    system: str = ""
    aliases: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    needs: frozenset[str] = frozenset()
    bf16_by: frozenset[str] = frozenset()
    dot8_by: frozenset[str] = frozenset()
    levels: Levels | None = None
    level: int = 0
    language: str = "c"
    devices: tuple[int, ...] = ()
    multiprocessors: int = 0
    warpgroups: bool = False
    roof: Mapping[str, float] = field(default_factory=dict)
    align: int = 64
    freestanding: bool = False
    words: bool = False
    threaded: bool = True
    soft: float = 1.0
    threads: int = 1
    most_threads: int = 1
    native: bool = False
    bf16: bool = False
    dots: float = 1.8
    dot8: bool = False
    amx: bool = False
    amx_fp16: bool = False

    @property
    def alone(self) -> bool:
        """Whether code for it has one thread."""
        return self.freestanding or not self.threaded

    @property
    def nr(self) -> int:
        """Columns of a register tile, and of a panel of packed weights."""
        return self.lanes * self.nv

    @property
    def grid(self) -> bool:
        """Whether very many workers run the kernels, on a device."""
        return self.multiprocessors > 0

    @property
    def foreign(self) -> bool:
        """Whether this machine is known to be of another kind, so that its compilers do not know
        the target."""
        other = bool(self.machines) and platform.machine().lower() not in self.machines
        return other or self.system not in ("", platform.system().lower())

    @property
    def march(self) -> str:
        """What the command line and reports call it: the row's name, or `native`."""
        return "native" if self.native else self.name


def spelled(name: str, *, usual: bool = False) -> tuple[Flags, ...]:
    """The flags of a machine in the spelling of gcc and clang, then of zig. `usual`: what a
    compiler that knows neither assumes by default."""
    return (f"-march={name}",), (f"-mcpu={name.replace('-', '_')}",), *(((),) if usual else ())


TABLE: dict[str, Target] = {}


def register(row: Target) -> Target:
    """Add a row to the table. Raises UsageError GT2102 if its name or an alias already exists."""
    taken = {"native", "fat", *(n for t in TABLE.values() for n in (t.name, *t.aliases))}
    if double := taken.intersection((row.name, *row.aliases)):
        raise UsageError("GT2102", f"the target {min(double)!r} already exists",
                         hint="give the new one another name")
    TABLE[row.name] = row
    return row


def isa(target: Target) -> str:
    """The name of the instruction set; tuning files and the cost model distinguish targets by
    it."""
    return f"{target.name}+bf16" if target.bf16 else target.name


def tile_rows(target: Target, nv: int, limit: int | None) -> int:
    """Rows of a register tile of nv vectors: the accumulators, a row of B and one broadcast must
    fit the registers."""
    most = max(1, min(16, (target.registers - nv - 1) // nv))
    return most if limit is None else max(1, min(most, limit))
