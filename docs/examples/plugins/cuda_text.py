"""The language CUDA for loop nests, and a target that has it: blocks of threads divide loops."""

from __future__ import annotations

from pathlib import Path

from graphtool.extend import Language, Share, Steps, Target, Workers, add_language, add_target

__version__ = "1.0"
HERE = Path(__file__).parent

add_language(Language(
    name="cuda_text", title="CUDA", ending=".cu",
    settings=lambda program: ['#include "cuda_text.h"'], includes=("cuda_text_device.h",),
    kernel="GT_KERNEL void {name}({params})", function="GT_DEVICE void {name}({params})",
    restrict="__restrict__",
    scalars={"exp": "expf({0})", "log": "logf({0})", "tanh": "tanhf({0})", "sqrt": "sqrtf({0})",
             "rsqrt": "(1.0f / sqrtf({0}))"},
    workers=Workers(
        outer=Share(first="blockIdx.x", step="gridDim.x"),
        inner=Share(first="threadIdx.x", step="blockDim.x",
                    before="__syncthreads();", after="__syncthreads();",
                    reduce=("if (threadIdx.x) {acc} = {zero};",
                            "{acc} = gt_block_{fn}_{t}({acc});")),
        flat=Share(first="blockIdx.x * blockDim.x + threadIdx.x", step="gridDim.x * blockDim.x"),
        single="threadIdx.x == 0", meet="__syncthreads();"),
    steps=Steps(
        header="cuda_text_host.h", body="static void run_steps(const void *state)",
        start="run_steps(&s);", unused="(void)s;", argument="(int64_t)({arg})",
        step="GT_LAUNCH({name}, {extent}, {args});")),
    *(HERE / f"{name}.h" for name in ("cuda_text", "cuda_text_device", "cuda_text_host")))

add_target(Target("gpu_text", "a GPU, for which CUDA is written", lanes=1, mr=4, nv=4,
                  language="cuda_text"))
