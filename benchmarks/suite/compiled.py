"""Cases in compiled C: many cases a library, workers in parallel, time limits.

Each case is imported, optimised and lowered by itself; what is emitted for a chunk of cases is
one C file, and the cases run in a process of their own, so that a crash is an outcome too.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry)
from benchmarks.suite.cases import Case, cases
from benchmarks.suite.evaluated import (
    ERROR,
    FAIL,
    PASS,
    REFUSED,
    Outcome,
    feed_of,
    first_accepted,
    made_of,
    own,
    reasons,
    same,
)
from benchmarks.suite.limits import SECONDS, WORKERS, limited
from graphtool import interp, passes
from graphtool.emit.c import emit
from graphtool.errors import CompilerError, GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.io.weights import layout
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops.ir import Program
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.native.compiler import find
from graphtool.symbolic import substitute
from graphtool.target import named

CHUNK = 24


@dataclass
class Prepared:
    """A case in C: the module it came from, its program, and the outcome should it run right."""

    case: Case
    module: Module
    program: Program
    files: dict[str, str]
    status: str = PASS


# ---- from a case to C --------------------------------------------------------------------------

def prepared(case: Case, name: str) -> Prepared | Outcome:
    """The case's C, or what became of it before there was any."""
    made: list[Prepared] = []

    def attempt(fixed: dict[str, Any]) -> Outcome:
        made.clear()
        try:
            with limited():
                made.append(_lowered(case, import_model(
                    case.model, fixed=fixed, made_of=made_of(case, fixed)), name))
        except UnsupportedError as error:
            return REFUSED, reasons(error)
        except (GraphtoolError, TimeoutError) as error:
            if isinstance(error, GraphtoolError) and error.code == "GT2005":
                return REFUSED, error.message  # what nothing bounds has no place in the memory plan
            return ERROR, str(error).replace("\n", " | ")
        except Exception as error:  # a bug: the suite is there to show it, and to go on
            return ERROR, f"{type(error).__name__}: {error}"
        return PASS, ""

    outcome = first_accepted(case, attempt)
    if not made:
        return outcome
    made[0].status = outcome[0]
    return made[0]


def _lowered(case: Case, module: Module, name: str) -> Prepared:
    target = named("native")
    module = passes.run(module, supply={"march": target.march})
    program = lower(module, target, name=name)
    verify(program, name)
    return Prepared(case, module, program, emit(program))


def together(chunk: Sequence[Prepared], folder: Path) -> Path:
    """One library of the chunk's programs. Raises CompilerError."""
    lines = []
    for p in chunk:
        name = p.program.name
        for file, text in p.files.items():
            (folder / file).write_text(text)
        lines += [f"#define {word} {name}_{word}" for word in ("run_state", "run_thread")]
        lines += [f'#include "{file}"' for file in p.files if file.endswith(".c")]
        lines += [f"#undef {word}" for word in ("run_state", "run_thread")]
    source = folder / f"{chunk[0].program.name}_all.c"
    source.write_text("\n".join(lines) + "\n")
    compiler = find(None, named("native"))
    library = source.with_suffix(".so")
    flags = [f for f in compiler.flags if f != "-O3"]
    done = subprocess.run([*compiler.command, *flags, "-O1", "-Werror", "-shared", source.name,
                           "-o", library.name, "-lm"], cwd=folder, text=True,
                          capture_output=True, check=False)
    if done.returncode:
        raise CompilerError("GT2121", next((line for line in done.stderr.splitlines()
                                            if "error" in line), done.stderr[-200:]))
    return library


# ---- running -----------------------------------------------------------------------------------

def ran(p: Prepared, library: Path) -> Outcome:
    """The outcome of the case, run in this process."""
    try:
        for inputs, outputs in p.case.data_sets:
            got = run_once(p, library, feed_of(p.case, inputs, p.module))
            same(own(got, p.module), outputs, p.case)
    except AssertionError as error:
        return FAIL, str(error)
    except GraphtoolError as error:
        return ERROR, str(error).replace("\n", " | ")
    return p.status, ""


def run_once(p: Prepared, library: Path, feed: dict[str, Any]) -> list[Any]:
    name, program = p.program.name, p.program
    c = ctypes.CDLL(str(library))
    setting = interp.Setting()
    arrays = [np.ascontiguousarray(a) for a in interp.bind_inputs(p.module, feed, setting)]
    sizes = setting.sizes
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


def _weights(p: Prepared) -> np.ndarray[Any, Any]:
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


def isolated(chunk: Sequence[Prepared], library: Path) -> dict[str, Outcome]:
    """The outcomes of cases run in a process that may die; those it leaves open run alone."""
    ends = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS * (1 if len(chunk) == 1 else 2))
        for p in chunk:
            ends[1].send((p.case.name, ran(p, library)))
        os._exit(0)
    ends[1].close()
    found: dict[str, Outcome] = {}
    try:
        while len(found) < len(chunk):
            name, outcome = ends[0].recv()
            found[name] = outcome
    except EOFError:
        pass
    _, status = os.waitpid(child, 0)
    left = [p for p in chunk if p.case.name not in found]
    if len(chunk) == 1 and left:
        return {left[0].case.name: (ERROR, f"died of signal {os.WTERMSIG(status)}")}
    for p in left:
        found |= isolated([p], library)
    return found


def chunk_outcomes(job: tuple[int, list[str]]) -> dict[str, Outcome]:
    """One worker's job: the cases of these names."""
    at, names = job
    wanted = set(names)
    results: dict[str, Outcome] = {}
    ready = []
    for n, case in enumerate(c for c in cases() if c.name in wanted):
        made = prepared(case, f"c{at}_{n}")
        if isinstance(made, Prepared):
            ready.append(made)
        else:
            results[case.name] = made
    return results | built_and_run(ready)


def built_and_run(ready: list[Prepared]) -> dict[str, Outcome]:
    """Compiled together; where that fails, in halves."""
    if not ready:
        return {}
    with tempfile.TemporaryDirectory(prefix="graphtool-suite-") as folder:
        try:
            library = together(ready, Path(folder))
        except CompilerError as error:
            if len(ready) == 1:
                return {ready[0].case.name: (ERROR, str(error))}
        else:
            return isolated(ready, library)
    half = len(ready) // 2
    return built_and_run(ready[:half]) | built_and_run(ready[half:])


def compiled(chosen: list[Case], workers: int = WORKERS) -> dict[str, Outcome]:
    """Name → outcome of the chosen cases, in their order."""
    names = [c.name for c in chosen]
    jobs = [(i, names[i:i + CHUNK]) for i in range(0, len(names), CHUNK)]
    found: dict[str, Outcome] = {}
    cases()  # before the workers are forked
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for results in pool.map(chunk_outcomes, jobs):
            found |= results
    return {name: found[name] for name in names}
