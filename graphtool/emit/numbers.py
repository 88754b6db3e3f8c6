"""The numbers that a run passes to a kernel by value, and the inverses of those that divide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphtool.emit.language import Language
from graphtool.loops.forms import KernelFacts, in_forms, inverse_name, inverse_of
from graphtool.loops.ir import Const, Name
from graphtool.loops.program import Kernel, Program, Run, runs
from graphtool.loops.walk import each, polynomials, statements, values
from graphtool.symbolic import symbols

Given = Mapping[str, tuple[float, ...]]  # what a number is in each run of its kernel


@dataclass(frozen=True, slots=True)
class Passed:
    """A parameter for a number of a kernel, or for the inverse of that number."""

    name: str
    number: Name
    inverse: bool = False

    def argument(self, kernel: Kernel, run: Run) -> Const:
        """What a run of the kernel passes."""
        value = run.numbers[kernel.numbers.index(self.number)]
        return Const(inverse_of(value) if self.inverse else value, self.number.dtype)


def given(program: Program) -> dict[str, Given]:
    """By kernel and number, what the runs pass, in program order."""
    rows = dict[str, list[tuple[float, ...]]]()
    for run in runs(program.steps):
        rows.setdefault(run.kernel, []).append(run.numbers)
    return {k.name: {n.name: tuple(row[i] for row in rows.get(k.name, ()))
                     for i, n in enumerate(k.numbers)} for k in program.kernels}


def passed(program: Program, language: Language) -> dict[str, list[Passed]]:
    """By kernel the parameters for its numbers, then for inverses: those that its expressions read
    in the forms of the language."""
    numbers = given(program)
    return {k.name: _read(k, KernelFacts(numbers=numbers[k.name]), language) if k.numbers else []
            for k in program.kernels}


def _read(kernel: Kernel, around: KernelFacts, language: Language) -> list[Passed]:
    printed = [in_forms(e, language.forms, around) for s in statements(kernel.body)
               for e in values(s)]
    named = {e.name for e in each(printed) if isinstance(e, Name)}
    named |= {s.name for d in polynomials(kernel.body) for s in symbols(d)}
    every = [*(Passed(n.name, n) for n in kernel.numbers),
             *(Passed(inverse_name(n), n, True) for n in kernel.numbers)]
    return [p for p in every if p.name in named]
