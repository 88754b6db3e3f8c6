"""Many programs in one library, one call of the compiler, and runs of them by name."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import interp
from graphtool.errors import CompilerError
from graphtool.io.weights import layout
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops.dim_names import in_program
from graphtool.loops.program import Program
from graphtool.native.compiler import find
from graphtool.symbolic import substitute
from graphtool.target import Target, named
from tests.compilers import run_compiler

STATIC = ("run_state", "run_thread", "arena_at", "weight_at")  # what each program names alike


@dataclass
class InC:
    """A program and its C, with the module that it came from."""

    module: Module
    program: Program
    files: dict[str, str]


def together(chunk: Sequence[InC], folder: Path, target: Target | None = None,
             precision: str = "default") -> Path:
    """One library of the chunk's programs, made for the target. Raises CompilerError."""
    kernels, programs = [], []
    for p in chunk:
        name = p.program.name
        for file, text in p.files.items():
            (folder / file).write_text(text)
        kernels += [f'#include "{file}"' for file in p.files
                    if file.startswith(f"{name}_kernels") and file.endswith(".c")]
        programs += [f"#define {word} {name}_{word}" for word in STATIC]
        programs += [f'#include "{name}.c"', *(f"#undef {word}" for word in STATIC)]
    lines = kernels + programs  # in this order, as steps.h defines what a template may call so too
    source = folder / f"{chunk[0].program.name}_all.c"
    source.write_text("\n".join(lines) + "\n")
    compiler = find(None, target or named("native")).of_class(precision)
    library = source.with_suffix(".so")
    flags = [f for f in compiler.flags if f != "-O3"]
    done = run_compiler([*compiler.command, *flags, "-O1", "-Werror", "-shared", source.name,
                         "-o", library.name, "-lm"], folder)
    if done.returncode:
        raise CompilerError("GT2121", next((line for line in done.stderr.splitlines()
                                            if "error" in line), done.stderr[-200:]))
    return library


def run_once(p: InC, library: Path, feed: dict[str, Any]) -> list[Any]:
    """The outputs of one run on inputs by name."""
    name, program = p.program.name, p.program
    c = ctypes.CDLL(str(library))
    setting = interp.Setting()
    arrays = [np.ascontiguousarray(a) for a in interp.bind_inputs(p.module, feed, setting)]
    sizes = {in_program(dim): n for dim, n in setting.sizes.items()}
    room = {b.slot: b.size for b in program.buffers if b.space == "output"}
    outs = [np.zeros(int(str(substitute(room[i], sizes))), port.dtype.numpy)
            for i, port in enumerate(program.outputs)]
    dims = (ctypes.c_int64 * (len(program.dims) + len(program.sizes) + 1))(
        *(int(str(sizes[s.name])) for s in program.dims))
    arena = np.zeros(int(str(substitute(program.arena, sizes))) + 64, np.uint8)
    for donated, donor in program.donations:
        arrays[donor] = arrays[donor].copy()
        outs[donated] = arrays[donor].reshape(-1)
    status = getattr(c, f"{name}_run")(
        _aligned(_weights(p)), _aligned(arena), dims, _pointers(arrays), _pointers(outs), 1)
    assert status == 0, f"the run returned {status}"
    sizes = sizes | {s.name: dims[len(program.dims) + i] for i, s in enumerate(program.sizes)}
    shapes = [[int(str(substitute(d, sizes))) for d in p.shape] for p in program.outputs]
    return [x[:math.prod(n)].reshape(n) for x, n in zip(outs, shapes, strict=True)]


def _weights(p: InC) -> np.ndarray[Any, Any]:
    held = {w.digest: w for w in collect_all(p.module.graph)}
    at, total = layout([held[digest] for _, digest in p.program.weights])
    block = np.zeros(total + 64, np.uint8)
    start = _aligned(block).value or 0
    skip = start - block.ctypes.data
    for digest, offset in at.items():
        raw = held[digest].source.reshape(-1).view(np.uint8)
        block[skip + offset:skip + offset + raw.size] = raw
    _KEEP[:] = [block]
    return block


_KEEP: list[Any] = []


def _aligned(block: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(-(-block.ctypes.data // 64) * 64)


def _pointers(arrays: Sequence[Any]) -> Any:
    return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))
