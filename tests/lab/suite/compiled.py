"""Cases in compiled C: many cases a library, workers in parallel, time limits.

Each case is imported, optimised and lowered by itself; what is emitted for a chunk of cases is
one C file, and the cases run in a process of their own, so that a crash is an outcome too.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import passes
from graphtool.emit.c import emit
from graphtool.errors import CompilerError, GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_model
from graphtool.ir.graph import Module
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.target import named
from tests.lab.libraries import InC, run_once, together
from tests.lab.suite.cases import Case, cases
from tests.lab.suite.evaluated import (
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
from tests.lab.suite.limits import SECONDS, WORKERS, limited

CHUNK = 24


@dataclass
class Prepared:
    """A case in C, and the outcome should it run right."""

    case: Case
    c: InC
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
    return Prepared(case, InC(module, program, emit(program)))


# ---- running -----------------------------------------------------------------------------------

def ran(p: Prepared, library: Path) -> Outcome:
    """The outcome of the case, run in this process."""
    try:
        for inputs, outputs in p.case.data_sets:
            got = run_once(p.c, library, feed_of(p.case, inputs, p.c.module))
            same(own(got, p.c.module), outputs, p.case)
    except AssertionError as error:
        return FAIL, str(error)
    except GraphtoolError as error:
        return ERROR, str(error).replace("\n", " | ")
    except Exception as error:  # a bug, as where the case is prepared
        return ERROR, f"{type(error).__name__}: {error}"
    return p.status, ""


def isolated(chunk: Sequence[Prepared], library: Path) -> dict[str, Outcome]:
    """The outcomes of cases run in a process that may die; those it leaves open run alone."""
    ends = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS * (1 if len(chunk) == 1 else 2))
        try:
            for p in chunk:
                ends[1].send((p.case.name, ran(p, library)))
        finally:  # whatever is raised: the child must not go on with its parent's work
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
            library = together([p.c for p in ready], Path(folder))
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
