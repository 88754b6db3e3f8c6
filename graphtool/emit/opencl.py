"""OpenCL C 1.2: a work-group is a team, and the C around the kernels asks libOpenCL for all else.

Products and convolutions of floats have texts; other ops become loops by their definitions. The
driver compiles the text where it runs, so that one file has all of it. A buffer is handed over as
the handle of a piece of memory and the place in it. The scalar functions are C's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphtool.emit.language import (
    C,
    Device,
    Image,
    Language,
    Share,
    Steps,
    Workers,
    register,
)

TEAM = 64  # as opencl.h has it


def images(name: str, _: Sequence[int]) -> list[Image]:
    """The text itself, for any device."""
    return [Image(f"{name}_kernels0.cl", 0, True)]


_FLAT = Share(first="({size})get_global_id(0)", step="({size})get_global_size(0)")
_MEET = "barrier(CLK_GLOBAL_MEM_FENCE);"
_SPECIAL = C.library["special.h"].pattern

OPENCL = register(Language(
    name="opencl", title="OpenCL C 1.2", ending=".cl",
    device=Device(
        images=images, compiles=True,
        missing="there is no libOpenCL.so.1, or no device of OpenCL 1.2 that it knows",
        memory="The addresses mean something to this library alone."),
    settings=lambda _: ['#include "opencl.h"'], includes=("opencl.h", "nest.h", "opencl_team.h"),
    library={"opencl_double.h": re.compile(rf"\bdouble\b|_f64\b|{_SPECIAL}"),
             **{header: call for header, call in C.library.items() if header != "rows.h"}},
    kernel="GT_KERNEL void {name}({params})", function="static void {name}({params})",
    pointer="__global {const}{type} *", small="int32_t",
    buffer="__global char *{name}_memory, ulong {name}_place",
    bind="{pointer}{name} = ({pointer})({name}_memory + {name}_place);",
    workers=Workers(
        args=("(int64_t)get_group_id(0)", "(int64_t)get_num_groups(0)"),
        outer=Share(first="({size})get_group_id(0)", step="({size})get_num_groups(0)"),
        inner=Share(first="({size})get_local_id(0)", step="GT_TEAM", before=_MEET, after=_MEET,
                    reduce=("if (get_local_id(0) > 0) {acc} = {zero};",
                            "{acc} = gt_team_{fn}_{t}({acc}, parts);")),
        flat=_FLAT, memory="__local int64_t parts[GT_TEAM];",
        single="get_local_id(0) == 0", meet=_MEET, team=TEAM),
    steps=Steps(
        header="opencl_host.h", body="static void run_steps(const void *state)",
        start="run_steps(&s);", unused="(void)s;", argument="(int64_t)({arg})",
        step="GT_LAUNCH({at}, {name}, {teams}, {shared}, {pointers}, {index}, {args});",
        after="GT_PROFILED({program})", read="GT_DEVICE_VALUE({pointer}, {place})")))
