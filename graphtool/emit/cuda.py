"""CUDA: a block of threads is a team, and the C around the kernels asks the driver for all else.

The function of a template gets the number of its block and how many there are.
An iteration of an outer loop belongs to a block, or to a warp if the loops inside are short, and
these to its threads; a loop without others inside is shared by all threads of all blocks. The
scalar functions are C's.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.emit.language import (
    C,
    Device,
    Image,
    Language,
    Pieces,
    Share,
    Steps,
    Workers,
    register,
)

TEAM = 128  # as cuda.h has it
OWN = {90: "a"}  # architectures with instructions that no other has, as sm_90a

WARP = 32
FLAT = Share(first="({size})blockIdx.x * blockDim.x + threadIdx.x",
             step="({size})gridDim.x * blockDim.x")
WARPS = Workers(
    outer=Share(first="({size})blockIdx.x * GT_WARPS + threadIdx.x / GT_WARP",
                step="({size})gridDim.x * GT_WARPS"),
    inner=Share(first="threadIdx.x % GT_WARP", step="GT_WARP",
                before="__syncwarp();", after="__syncwarp();",
                reduce=("if (threadIdx.x % GT_WARP) {acc} = {zero};",
                        "{acc} = gt_warp_{fn}_{t}({acc});")),
    flat=FLAT,
    single="threadIdx.x % GT_WARP == 0", meet="__syncwarp();", team=WARP, teams=TEAM // WARP)

def images(name: str, devices: Sequence[int]) -> list[Image]:
    """Code for each architecture and, for later ones, text for the first."""
    def image(file: str, arch: int, how: str, text: bool) -> Image:
        machine = f"compute_{arch}" if text else f"sm_{arch}{OWN.get(arch, '')}"
        return Image(file, arch, text, machine,
                     f"nvcc {how} -arch={machine} {name}_kernels0.cu -o {file}")
    first = devices[0]
    return [*(image(f"{name}_sm_{arch}.cubin", arch, "-cubin", False) for arch in devices),
            image(f"{name}_compute_{first}.ptx", first, "-ptx", True)]


CUDA = register(Language(
    name="cuda", title="CUDA", ending=".cu",
    device=Device(
        images=images, replays=True,
        missing="there is no driver libcuda.so.1, or no device that the library has code for",
        memory="Memory that another library has from CUDA is as good."),
    settings=lambda _: ['#include "cuda.h"'], includes=("nest.h", "cuda_team.h", "cuda_pieces.h"),
    library={header: call for header, call in C.library.items() if header != "rows.h"},
    kernel="GT_KERNEL void {name}({params})", begins="GT_AFTER();",
    asks="GT_ASK_FOR({name}, {bytes});",
    function="static __device__ void {name}({params})",
    restrict="__restrict__", small="int32_t",
    aligned="{name} = ({pointer})__builtin_assume_aligned({name}, 16);",
    pieces=Pieces(array="GT_PIECE {type} {name}[{width}];",
                  read="gt_read_{bytes}({name}, {place});",
                  write="gt_write_{bytes}({place}, {name});", each="GT_UNROLL"),
    workers=Workers(
        args=("blockIdx.x", "gridDim.x"),
        outer=Share(first="blockIdx.x", step="gridDim.x"),
        inner=Share(first="threadIdx.x", step="blockDim.x",
                    before="__syncthreads();", after="__syncthreads();",
                    reduce=("if (threadIdx.x) {acc} = {zero};",
                            "{acc} = gt_team_{fn}_{t}({acc});")),
        flat=FLAT,
        single="threadIdx.x == 0", meet="__syncthreads();", team=TEAM, narrow=WARPS),
    steps=Steps(
        header="cuda_host.h", body="static void run_steps(const void *state)",
        start="run_steps(&s);", unused="(void)s;", argument="(int64_t)({arg})",
        step="GT_LAUNCH({at}, {name}, {teams}, {shared}, {pointers}, {index}, {args});",
        after="GT_PROFILED({program})", read="GT_DEVICE_VALUE({pointer}, {place})")))
