"""Cases in C beside the evaluator, several to a call of the compiler.

They run in a process of their own, which may die.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import jobs
from graphtool.emit.c import emit
from graphtool.errors import CompilerError, GraphtoolError
from graphtool.ir.graph import Module
from graphtool.loops.verify import verify
from graphtool.lower import lower
from graphtool.target import Target, named
from tests.lab.fuzz.judged import SECONDS, Evaluated, code, reduced, unlike
from tests.lab.fuzz.variants import Variant, optimised, variants
from tests.lab.libraries import InC, run_once, together
from tests.lab.suite.limits import limited

Array = np.ndarray[Any, Any]
Results = list[Array] | str  # or why there are none
Loaded = tuple[dict[str, Array], InC]  # inputs and the program that gets them


def in_c(module: Module, variant: Variant, name: str, ready: Module | None = None) -> InC:
    """The module lowered and emitted; `ready` is what the passes make of it. Raises GraphtoolError.
    """
    ready = optimised(module, variant) if ready is None else ready
    program = lower(ready, named(variant.march), name=name)
    verify(program, name)
    return InC(ready, program, emit(program))


def compiled(cases: Sequence[Evaluated], how: Sequence[Variant] = (),
             tell: Callable[[int], None] = lambda seed: None) -> Counter[str]:
    """Compile and run all cases, each in its variant, or in each of `how`.

    Differences become findings of the case. `tell` is called with each seed before its turn.
    Returns how many programs ran of each variant.
    """
    count: Counter[str] = Counter()
    for variant in how or variants():
        ready: list[tuple[Evaluated, InC]] = []
        for i, e in enumerate(cases):
            if e.module is None or (not how and e.variant.name != variant.name):
                continue
            tell(e.case.seed)
            try:
                with limited(SECONDS):
                    own = replace(variant, assume=e.assume)
                    ready.append((e, in_c(e.module, own, f"f{i}", None if how else e.ready)))
            except GraphtoolError as error:
                if error.code != "GT2005":  # what nothing bounds has no place in the memory plan
                    _failed(e, variant, error)
            except Exception as error:
                _failed(e, variant, error)
        count[variant.name] += len(ready)
        loaded = [(e.case.inputs, c) for e, c in ready]
        for (e, _), results in zip(ready, run_all(loaded, variant), strict=True):
            tell(e.case.seed)
            _compare(e, results, replace(variant, assume=e.assume))
    return count


def _failed(e: Evaluated, variant: Variant, error: Exception) -> None:
    small = reduced(e, lambda m, xs: in_c(m, variant, "f"), code(error))
    e.blame(f"C {variant.name}: {code(error)}: {small}", jobs.short(error))


def _compare(e: Evaluated, results: Results, variant: Variant) -> None:
    assert e.module is not None
    if isinstance(results, str):
        small = reduced(e, lambda m, xs: alone(m, xs, variant), "GT2121")
        e.blame(f"C {variant.name}: {results[:60]}: {small}", results)
        return
    got = dict(zip(e.want, results, strict=True))
    kind = unlike(e.module, e.case.inputs, e.want, got)
    if kind:
        small = reduced(e, lambda m, xs: alone(m, xs, variant))
        e.blame(f"C {variant.name}: {kind}: {small}", ", ".join(e.case.ops))


def alone(module: Module, inputs: Any, variant: Variant) -> dict[str, Array]:
    """The results of one module in C; for the reducer. Raises CompilerError if there are none."""
    one = in_c(module, variant, "f")
    found = run_all([(dict(inputs), one)], variant)[0]
    if isinstance(found, str):
        raise CompilerError("GT2121", found)
    return dict(zip(module.output_names, found, strict=True))


def run_all(ready: Sequence[Loaded], variant: Variant) -> list[Results]:
    """The outputs of each program; compiled together, or in halves where that fails."""
    if not ready:
        return []
    target: Target = named(variant.march)
    with tempfile.TemporaryDirectory(prefix="graphtool-fuzz-") as folder:
        try:
            library = together([c for _, c in ready], Path(folder), target, variant.precision)
        except CompilerError as error:
            if len(ready) == 1:
                return [f"not compiled: {error.message}"]
            half = len(ready) // 2
            return run_all(ready[:half], variant) + run_all(ready[half:], variant)
        return isolated(ready, library)


def isolated(ready: Sequence[Loaded], library: Path) -> list[Results]:
    """The outputs of programs run in a child; those that it leaves open run alone."""
    ends, child = multiprocessing.Pipe(duplex=False), os.fork()
    if child == 0:
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS * (1 if len(ready) == 1 else 2))
            for inputs, c in ready:
                try:
                    ends[1].send(run_once(c, library, inputs))
                except Exception as error:
                    ends[1].send(jobs.short(error))
        finally:  # else the child would go on as a second worker
            os._exit(0)
    ends[1].close()
    found: list[Results] = []
    try:
        while len(found) < len(ready):
            found.append(ends[0].recv())
    except EOFError:
        pass
    _, status = os.waitpid(child, 0)
    if len(ready) == 1:
        return found or [f"died of signal {os.WTERMSIG(status)}"]
    return found + [isolated([p], library)[0] for p in ready[len(found):]]
