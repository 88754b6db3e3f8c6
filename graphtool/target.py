"""The table of machines for which C is emitted: one row each, the only place with a machine's
facts.

A new target is one row: `register(Target("znver5", …))`. The emitted C does not depend on the row:
it contains the number of lanes, and selects instructions by the compiler's own macros.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graphtool.errors import UsageError, one_of
from graphtool.machines import GENERIC, Machine, caches, cores, cpu, cpu_flags, machine, of_cpu

Flags = tuple[str, ...]


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
    pairs of 16 bits to a sum, without and with `dot8`. `threads` is the most that a run may use:
    kernels with scratch memory keep a share for each. Caches are in bytes, `bandwidth` in GB/s a
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
    the threads that go in step. `roof` is what its data sheet promises: GFLOP/s by how numbers are
    multiplied, and `gbps` of memory.

    A `freestanding` machine has no operating system: its C is for one thread and reads no file, the
    weights are constants of the C, and of two kernels the smaller one is taken. Buffers in its
    arena start at multiples of `align` bytes. Neither it nor one that is not `threaded` has more
    than one thread. A multiply-add of float32 takes `soft` times as long
    as it would with a unit for it.
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
    roof: Mapping[str, float] = field(default_factory=dict)
    align: int = 64
    freestanding: bool = False
    threaded: bool = True
    soft: float = 1.0
    threads: int = 1
    native: bool = False
    bf16: bool = False
    dots: float = 1.8
    dot8: bool = False
    amx: bool = False
    amx_fp16: bool = False

    @property
    def nr(self) -> int:
        """Columns of a register tile, and of a panel of packed weights."""
        return self.lanes * self.nv

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


X86_64 = Levels("x86-64", "levels.h", "gt_x86_level()")
_V2 = frozenset({"sse4_2"})
_V3 = _V2 | {"avx", "avx2", "fma", "f16c"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512vl", "avx512dq"}


def _zig(triple: str) -> str:
    return f"python -m ziglang cc -target {triple}"


def _x86(level: int, name: str, title: str, lanes: int, mr: int, **facts: Any) -> Target:
    """A row of x86-64; facts that all share are here. Level 0 is none of the family."""
    return Target(name, title, lanes, mr, 2, levels=X86_64 if level else None, level=level,
                  machines=("x86_64", "amd64"),
                  **{"pair": (2, 2), "flags": spelled(name),
                     "cross": _zig("x86_64-linux-musl")} | facts)


_V4_FACTS: dict[str, Any] = {
    "registers": 32, "pair": (2, 1), "more": ("-mprefer-vector-width=512",), "l1": 48 << 10,
    "l3": 32 << 20, "mhz": 3900, "bandwidth": (506.0, 249.0, 112.0, 40.0),
    "bf16_by": frozenset({"avx512_bf16"}), "dot8_by": frozenset({"avx512_vnni"})}

# The third cache of server processors is slow: a plain read gets 30 GB/s (measured 2026-11-24 on a
# Xeon that a virtual machine shows as family 6, model 167), kernels that prefetch about twice that.
_AMX_FACTS: dict[str, Any] = {
    "l2": 2 << 20, "bandwidth": (506.0, 249.0, 60.0, 40.0), "dots": 0.48, "bf16": True,
    "dot8": True, "amx": True}
_AMX = _V4 | {"amx_tile", "amx_int8", "amx_bf16", "avx512_bf16", "avx512_vnni", "avx512_fp16"}

def _roof(f32: float, tf32: float, bf16: float, int8: float, gbps: float) -> dict[str, float]:
    """Tera-operations a second of a data sheet, of dense matrices, and GB/s."""
    rates = {"f32": f32, "tf32": tf32, "bf16": bf16, "int8": int8}
    return {kind: rate * 1000 for kind, rate in rates.items()} | {"gbps": gbps}


# architecture: its devices, the multiprocessors of one, and its roof
_GPUS = {80: ("A100", 108, _roof(19.5, 156, 312, 624, 2039)),
         87: ("Jetson Orin", 16, _roof(5.3, 21, 42, 85, 205)),
         90: ("H100, H200", 132, _roof(67, 494, 989, 1979, 3350)),
         120: ("RTX 50", 170, _roof(105, 105, 210, 838, 1792))}
_GPU_FACTS: dict[str, Any] = {"language": "cuda", "bf16": True, "mhz": 1500}

def _small(name: str, title: str, flags: Flags, cc: str, *, dsp: bool = False,
           soft: float = 1.0, mhz: int = 100, **facts: Any) -> Target:
    """A row of a microcontroller. It keeps integers of 8 bits as they are: four products of bytes
    are one step of its kernels, with `dsp` in two instructions for pairs. All its memory is near:
    caches and bandwidth are those of a core that waits for none of it."""
    return Target(name, title, 1, 2, 2 if dsp else 4, registers=14,
                  pair=(2, 2) if dsp else (4, 4), dot8=True, flags=(flags,), cross=cc,
                  machines=(name,), mhz=mhz, align=8, freestanding=True, soft=soft,
                  bandwidth=(0.4, 0.4, 0.4, 0.2), **facts)


_NEON: dict[str, Any] = {"registers": 32, "machines": ("aarch64", "arm64"),
                         "dot8_by": frozenset({"asimddp", "i8mm"})}
_ARM, _RISCV = "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"

for _row in (
    # compilers before gcc 13 and clang 16 do not know its name, and compile for the row below
    _x86(0, "graniterapids", "x86-64 with AVX-512 and AMX, of float16 too", 16, 14,
         amx_fp16=True, needs=_AMX | {"amx_fp16"}, **_V4_FACTS | _AMX_FACTS | {
             "flags": (*spelled("graniterapids"), *spelled("sapphirerapids")),
             "more": (*_V4_FACTS["more"], "-DGT_AMX_FP16")}),
    _x86(5, "sapphirerapids", "x86-64 with AVX-512 and AMX", 16, 14, aliases=("amx",), needs=_AMX,
         **_V4_FACTS | _AMX_FACTS),
    _x86(4, "x86-64-v4", "x86-64 with AVX-512", 16, 14, l2=1 << 20, aliases=("v4",), needs=_V4,
         **_V4_FACTS),
    _x86(3, "x86-64-v3", "x86-64 with AVX2", 8, 6, pair=(2, 1), aliases=("v3",), needs=_V3,
         dot8_by=frozenset({"avx_vnni"})),
    _x86(2, "x86-64-v2", "x86-64 with SSE4.2", 4, 6, aliases=("v2",), needs=_V2),
    _x86(1, "x86-64", "x86-64 with SSE2", 4, 6, flags=spelled("x86-64", usual=True)),
    Target("armv8-a", "64-bit Arm with NEON", 4, 12, 2, flags=spelled("armv8-a", usual=True),
           cross=_zig("aarch64-linux-musl"), **_NEON),
    Target("generic", "any machine, without vectors", 1, 4, 4),
    # another system in one word; zig's own name of glibc 2.17 makes libraries for older systems too
    Target("aarch64-linux", "Linux on 64-bit Arm", 4, 12, 2, system="linux",
           flags=spelled("armv8-a", usual=True), cross=_zig("aarch64-linux-gnu.2.17"), **_NEON),
    # NEON of 32 bits flushes subnormal numbers
    Target("armv7-linux", "Linux on 32-bit Arm with floating point", 1, 4, 4, system="linux",
           machines=("armv7l",), cross=_zig("arm-linux-gnueabihf")),
    Target("riscv64-linux", "Linux on 64-bit RISC-V", 1, 4, 4, system="linux",
           machines=("riscv64",), cross=_zig("riscv64-linux-gnu")),
    _x86(0, "x86_64-windows", "Windows on x86-64 with SSE4.2", 4, 6, needs=_V2, system="windows",
         flags=spelled("x86-64-v2"), cross=_zig("x86_64-windows-gnu")),
    Target("aarch64-macos", "macOS on Apple's processors", 4, 12, 2, system="darwin",
           cross=_zig("aarch64-macos"), **_NEON),
    Target("wasm32", "WebAssembly with vectors of 128 bits", 4, 6, 2, system="wasm",
           flags=(("-msimd128",),), machines=("wasm32",), cross=_zig("wasm32-wasi"),
           threaded=False),
    _small("cortex-m0plus", "Arm Cortex-M0+, without floating point",
           ("-mcpu=cortex-m0plus", "-mthumb"), _ARM, soft=40.0, mhz=48),
    _small("cortex-m4", "Arm Cortex-M4 and M33, with DSP and float32",
           ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), _ARM, dsp=True),
    _small("cortex-m7", "Arm Cortex-M7, with DSP and float64",
           ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"), _ARM, dsp=True,
           mhz=400),
    _small("cortex-m55", "Arm Cortex-M55, with DSP and float32",
           ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"), _ARM, dsp=True, mhz=250),
    _small("rv32imc", "32-bit RISC-V, without floating point",
           ("-march=rv32imc", "-mabi=ilp32"), _RISCV, soft=40.0),
    _small("rv32imafc", "32-bit RISC-V with float32", ("-march=rv32imafc", "-mabi=ilp32f"),
           _RISCV),
    *(Target(f"sm_{arch}", f"a GPU of NVIDIA: {title}", 32, 4, 2, devices=(arch,),
             multiprocessors=count, roof=roof, **_GPU_FACTS)
      for arch, (title, count, roof) in _GPUS.items()),
    Target("cuda", "GPUs of NVIDIA, from Ampere on", 32, 4, 2, devices=tuple(_GPUS),
           multiprocessors=_GPUS[80][1], roof=_GPUS[80][2], **_GPU_FACTS),
):
    register(_row)


def detect() -> Target:
    """The target of this machine with all its cores, to be compiled with -march=native."""
    return named("native")


def recognised_here() -> Target:
    """The row of this machine, to be compiled with -march=native."""
    row = recognised(platform.machine().lower(), cpu_flags())
    return replace(row, native=True, flags=spelled("native"))


def usual_machine(target: Target) -> str:
    """The machine by whose figures kernels are chosen for a target if none is named."""
    return detect().machine if target.native else GENERIC


def _native() -> Target:
    row, flags = recognised_here(), cpu_flags()
    l1, l2, l3 = (measured or usual for measured, usual in zip(caches(), (row.l1, row.l2, row.l3),
                                                               strict=True))
    here = replace(row, l1=l1, l2=l2, l3=l3, bf16=bool(row.bf16_by & flags),
                   dot8=bool(row.dot8_by & flags))
    known = of_cpu(cpu())
    # a virtual machine can show another model than it has
    return here if known is None or not row.needs <= TABLE[known.isa].needs else _with_rates(
        here, known)


def _with_rates(target: Target, m: Machine) -> Target:
    """The target with the rates of a machine, whose units can be narrower than its vectors."""
    f32 = m.f32 * min(1.0, target.lanes / m.lanes)
    return replace(target, machine=m.name, mhz=round(f32 / (4 * target.lanes) * 1000),
                   bandwidth=m.gbps, all_gbps=m.all_gbps, meet=m.meet,
                   dots=m.rates.get("bf16", target.dots))


def on_machine(target: Target, word: str) -> Target:
    """The target with the rates and the caches of the machine that `word` names: a row of the table
    of machines, or a file of one.

    Raises UsageError GT2103 for an unknown machine, or one of another kind; InputError GT2104.
    """
    m = machine(word)
    if m is None:
        row = _row_of(target.name)
        return replace(target, machine=GENERIC, mhz=row.mhz, bandwidth=row.bandwidth,
                       all_gbps=row.all_gbps, meet=row.meet, dots=row.dots, l1=row.l1, l2=row.l2,
                       l3=row.l3)
    if not set(_row_of(m.isa).machines) & set(target.machines):
        raise UsageError("GT2103", f"the machine {m.name} is a {m.isa}, and the target is "
                                   f"{target.march}", hint="take a machine of the same kind")
    return replace(_with_rates(target, m), l1=m.l1, l2=m.l2, l3=m.l3)


def recognised(machine: str, flags: frozenset[str]) -> Target:
    """The row of a machine that Python calls `machine` and whose CPU has the features `flags`."""
    return max((t for t in TABLE.values()
                if machine in t.machines and not t.system and t.needs <= flags),
               key=lambda t: len(t.needs), default=TABLE["generic"])


def isa(target: Target) -> str:
    """The name of the instruction set; tuning files and the cost model distinguish targets by
    it."""
    return f"{target.name}+bf16" if target.bf16 else target.name


def tile_rows(target: Target, nv: int, limit: int | None) -> int:
    """Rows of a register tile of nv vectors: the accumulators, a row of B and one broadcast must
    fit the registers."""
    most = max(1, min(16, (target.registers - nv - 1) // nv))
    return most if limit is None else max(1, min(most, limit))


def family(levels: Levels) -> dict[int, Target]:
    """The targets of a family for all cores, by level, best first."""
    rows = sorted((t for t in TABLE.values() if t.levels == levels), key=lambda t: -t.level)
    return {t.level: named(t.name) for t in rows}


def named(march: str, threads: int = 0) -> Target:
    """The target called `march`, for at most `threads` threads (0: this machine's cores).

    Raises UsageError GT2101 for an unknown one.
    """
    row = _row_of(march)
    alone = row.freestanding or not row.threaded
    return replace(row, threads=1 if alone else threads or cores())


def _row_of(march: str) -> Target:
    if march == "native":
        return _native()
    for row in TABLE.values():
        if march == row.name or march in row.aliases:
            return row
    raise UsageError("GT2101", f"unknown target {march!r}",
                     hint=one_of(march, ("native", *TABLE)))
