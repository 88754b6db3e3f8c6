"""How threads divide kernels, and the memory that each needs: pieces of shares, phases, workspaces.

A thread that is done early takes pieces of the shares of others. A piece should last some tens of
microseconds, so that taking it costs nothing in comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphtool.emit.language import language_of
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.ir import For, If, Stmt, Template
from graphtool.loops.program import Kernel, Program, Run, Step, Times, runs
from graphtool.loops.walk import statements
from graphtool.symbolic import Dim, maximum

LEAST_WORK = 8_000_000  # nominal flops of a piece: some 30 µs


@dataclass(frozen=True)
class Pieces:
    """The pieces of a thread's share: `each` in a run of at most `threads` threads, or of any
    number if that is 0; else one."""

    each: int
    threads: int

    def text(self, threads: str) -> str:
        """The C text of their number in a run of so many threads."""
        return f"{threads} > {self.threads} ? 1 : {self.each}" if self.threads else str(self.each)


def pieces(program: Program, most: int) -> dict[str, Pieces]:
    """The pieces of each kernel, `most` at most, by the work of its largest step; an open size
    counts as large."""
    work = dict.fromkeys((k.name for k in program.kernels), 0)
    for step in runs(program.steps):
        flops = step.flops if isinstance(step.flops, int) else LEAST_WORK * most * program.threads
        work[step.kernel] = max(work[step.kernel], flops)
    return {k.name: _pieces(work[k.name] // LEAST_WORK if is_divisible(k) else 0, most,
                            program.threads) for k in program.kernels}


def _pieces(worth: int, most: int, threads: int) -> Pieces:
    """The division of a kernel that has work for `worth` pieces; two threads are the fewest that
    share it."""
    each = max(1, min(most, worth // 2)) if threads > 1 else 1
    return Pieces(each, 0 if each == 1 or worth >= each * threads else worth // each)


def only_runs(steps: Sequence[Step]) -> bool:
    """Whether nothing between the steps reads a buffer: a thread that is late finds no piece left,
    and touches nothing."""
    return all(isinstance(s, Run) or (isinstance(s, Times) and only_runs(s.body)) for s in steps)


def is_shared(program: Program) -> bool:
    """Whether several threads can share a run. A caller's pool may run one after the other, so that
    none may wait until another has read a buffer."""
    how = language_of(program).steps
    return bool(how.most) and (only_runs(program.steps) or not how.given) and not all(
        k.serial for k in program.kernels)


def is_divisible(kernel: Kernel) -> bool:
    """Whether more pieces repeat no work: of a template, or of loops around the shared one."""
    return not kernel.serial and all(map(_divides, kernel.body))


def _divides(s: Stmt) -> bool:
    match s:
        case Template():
            return CONTRACTS[s.kernel].grain != "whole" and not has_phases(s)
        case If(_, then, orelse):
            return all(map(_divides, (*then, *orelse)))
        case For():
            return s.mode.startswith("parallel")
    return False


def has_phases(t: Template) -> bool:
    """Whether a template has phases of its own, with waits between them."""
    when = CONTRACTS[t.kernel].phases
    return when if isinstance(when, bool) else any(name == when for name, _ in t.macros)


def phased(kernel: Kernel) -> bool:
    """Whether a kernel has phases of its own: all threads enter it, and take shares inside."""
    return any(map(has_phases, _templates(kernel)))


def own_memory(kernel: Kernel) -> frozenset[str]:
    """The parameters in whose place each thread has memory of its own, in which it works."""
    return frozenset(b for t in _templates(kernel) for name, b, _ in t.pointers
                     if (p := CONTRACTS[t.kernel].pointer(name)) is not None and p.by_thread
                     and not (has_phases(t) and isinstance(CONTRACTS[t.kernel].phases, str)))


def own_bytes(program: Program) -> Dim:
    """The bytes of memory that each thread of a run but the first needs for itself."""
    kernels, buffers = {k.name: k for k in program.kernels}, {b.name: b for b in program.buffers}
    most: Dim = 0
    for run in runs(program.steps):
        kernel = kernels[run.kernel]
        own = own_memory(kernel)
        for name, p in zip(run.args, kernel.params, strict=True):
            if p.name in own:
                most = maximum(most, buffers[name].bytes_of(buffers[name].size))
    return most


def _templates(kernel: Kernel) -> Iterator[Template]:
    return (s for s in statements(kernel.body) if isinstance(s, Template))
