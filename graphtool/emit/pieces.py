"""How many pieces a thread's share of each kernel has, and what a kernel knows of its thread.

A thread that is done early takes the pieces of others. A piece should last some tens of
microseconds, so that taking it costs nothing beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import For, Template
from graphtool.loops.program import Kernel, Program, runs

LEAST_WORK = 8_000_000  # nominal flops of a piece: some 30 µs
BY_THREAD = ("t",)  # the arguments of a pointer to memory that each thread has


def pieces(program: Program, most: int) -> dict[str, int]:
    """For each kernel the pieces of a share, `most` at most, by the work of its largest step; an
    open size counts as large."""
    least, work = LEAST_WORK * program.threads, dict[str, int]()
    for step in runs(program.steps):
        flops = step.flops if isinstance(step.flops, int) else most * least
        work[step.kernel] = max(work.get(step.kernel, 0), flops)
    return {k.name: max(1, min(most, work.get(k.name, 0) // least))
            if program.threads > 1 and is_divisible(k) else 1 for k in program.kernels}


def is_divisible(kernel: Kernel) -> bool:
    """Whether more pieces repeat no work: of a template, or of loops around the shared one."""
    return not kernel.serial and all(
        CONTRACTS[s.kernel].grain != "whole" and not has_phases(s) if isinstance(s, Template)
        else isinstance(s, For) and s.mode.startswith("parallel") for s in kernel.body)


def has_phases(t: Template) -> bool:
    """Whether a template has phases of its own, with waits between them."""
    when = CONTRACTS[t.kernel].phases
    return when if isinstance(when, bool) else any(name == when for name, _ in t.macros)


def phased(kernel: Kernel) -> bool:
    """Whether a kernel has phases of its own: all threads enter it, and take shares inside."""
    return any(map(has_phases, _templates(kernel)))


def knows_thread(kernel: Kernel) -> bool:
    """Whether a kernel needs to know its thread: for phases, or for memory that each thread has."""
    return phased(kernel) or any(is_by_thread(t, name) for t in _templates(kernel)
                                   for name, *_ in t.pointers)


def is_by_thread(t: Template, name: str) -> bool:
    """Whether a template's pointer is one to memory that each thread has."""
    pointer = CONTRACTS[t.kernel].pointer(name)
    return pointer is not None and pointer.arguments == BY_THREAD


def _templates(kernel: Kernel) -> Iterator[Template]:
    return (s for s in kernel.body if isinstance(s, Template))
