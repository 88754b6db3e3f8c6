"""What the sizes of a run must satisfy, as C: bounds, steps, and which of them must be equal."""

from __future__ import annotations

from graphtool.emit.expr import ExprPrinter
from graphtool.loops.dim_names import equation_by_author, symbol_by_author
from graphtool.loops.program import Program
from graphtool.symbolic import Symbol, divides


def atom_text(s: Symbol, place: str) -> str:
    """The C text of what polynomials are made of: the number of a symbol's steps."""
    if s.step == 1:
        return place
    return f"({place} - {s.offset}) / {s.step}" if s.offset else f"{place} / {s.step}"


def atoms(program: Program, array: str) -> dict[str, str]:
    """What polynomials are made of, in terms of an array of the program's dims and sizes."""
    known = enumerate((*program.dims, *program.sizes))
    return {s.name: f"({atom_text(s, f'{array}[{i}]')})" if s.step > 1 else f"{array}[{i}]"
            for i, s in known}


def rules(program: Program) -> list[tuple[str, str]]:
    """(a C condition over `dims`, the rule as text)."""
    printer = ExprPrinter(atoms(program, "dims"))
    steps = [(f"dims[{i}] % {s.step} == {s.offset}", divides(symbol_by_author(s)))
             for i, s in enumerate(program.dims) if s.step > 1]
    return [*steps, *((f"{printer.index(e.left)} == {printer.index(e.right)}",
                       str(equation_by_author(e))) for e in program.requires)]
