"""The targets that graphtool knows: one row each, the only place with a machine's facts."""

from __future__ import annotations

from typing import Any

from graphtool.target.record import Flags, Levels, Target, register, spelled

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


# architecture: its devices, the multiprocessors of one, and its roof; both by the data sheets of
# the A100 of 80 GB, the Jetson AGX Orin of 64 GB, the H100 SXM and the RTX 5090
_GPUS = {80: ("A100", 108, _roof(19.5, 156, 312, 624, 2039)),
         87: ("Jetson Orin", 16, _roof(5.3, 21, 42, 85, 205)),
         90: ("H100, H200", 132, _roof(67, 494, 989, 1979, 3350)),
         120: ("RTX 50", 170, _roof(105, 105, 210, 838, 1792))}
_WARPGROUPS = (90,)  # architectures whose warps multiply four together: wgmma
_GPU_FACTS: dict[str, Any] = {"language": "cuda", "bf16": True, "dot8": True, "mhz": 1500}


def _small(name: str, title: str, flags: Flags, cc: str, *, dsp: bool = False,
           soft: float = 1.0, mhz: int = 100, **facts: Any) -> Target:
    """A row of a microcontroller. It keeps integers of 8 bits as they are: four products of bytes
    are one step of its kernels, with `dsp` in two instructions for pairs. All its memory is near:
    caches and bandwidth are those of a core that waits for none of it."""
    return Target(name, title, 1, 2, 2 if dsp else 4, registers=14,
                  pair=(2, 2) if dsp else (4, 4), dot8=True, flags=(flags,), cross=cc,
                  machines=(name,), mhz=mhz, align=8, freestanding=True, soft=soft,
                  bandwidth=(0.4, 0.4, 0.4, 0.2), **facts)


def _wasm(name: str, title: str, *flags: str, **facts: Any) -> Target:
    """A row of WebAssembly, with one thread if it does not say otherwise.

    A product takes a register before it is added, and V8 keeps some of the 16 for itself: with 6
    rows accumulators are spilled, and ResNet-8 takes 14 % longer (measured 2026-11-27, Node 20).
    Floats and pairs of integers are both multiplied and added by two instructions.
    """
    return Target(name, title, 4, 4, 2, system="wasi", registers=12, pair=(1, 1), flags=(flags,),
                  machines=("wasm32",), cross=_zig("wasm32-wasi"), **{"threaded": False} | facts)


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
    _wasm("wasm32", "WebAssembly with vectors of 128 bits", "-msimd128"),
    _wasm("wasm32-relaxed", "WebAssembly with fused multiply-adds where the processor has them",
          "-msimd128", "-mrelaxed-simd", "-ffp-contract=fast", needs=frozenset({"relaxed-simd"})),
    _wasm("wasm32-threads", "WebAssembly whose threads are a page's workers", "-msimd128",
          "-matomics", "-mbulk-memory", threaded=True, meet=1.0),
    _small("cortex-m0plus", "Arm Cortex-M0+, without floating point",
           ("-mcpu=cortex-m0plus", "-mthumb"), _ARM, soft=40.0, mhz=48),
    _small("cortex-m4", "Arm Cortex-M4 and M33, with DSP and float32",
           ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"), _ARM, dsp=True),
    _small("cortex-m7", "Arm Cortex-M7, with DSP and float64",
           ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"), _ARM, dsp=True,
           mhz=400),
    _small("cortex-m55", "Arm Cortex-M55, with DSP and float32",
           ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"), _ARM, dsp=True, mhz=250,
           words=True),
    _small("rv32imc", "32-bit RISC-V, without floating point",
           ("-march=rv32imc", "-mabi=ilp32"), _RISCV, soft=40.0),
    _small("rv32imafc", "32-bit RISC-V with float32", ("-march=rv32imafc", "-mabi=ilp32f"),
           _RISCV),
    *(Target(f"sm_{arch}", f"a GPU of NVIDIA: {title}", 32, 4, 2, devices=(arch,),
             multiprocessors=count, roof=roof, warpgroups=arch in _WARPGROUPS, **_GPU_FACTS)
      for arch, (title, count, roof) in _GPUS.items()),
    # the roof is nominal: OpenCL does not say what a device can do
    Target("opencl", "devices of OpenCL 1.2", 1, 4, 16, registers=96, multiprocessors=32,
           language="opencl", mhz=1000, roof=_roof(1, 1, 1, 1, 100)),
    Target("cuda", "GPUs of NVIDIA, from Ampere on", 32, 4, 2, devices=tuple(_GPUS),
           multiprocessors=_GPUS[80][1], roof=_GPUS[80][2], **_GPU_FACTS),
):
    register(_row)
