"""A module from a captured program. Each conversion knows the steps of open sizes that the one
before found to be required."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphtool.errors import Undecided
from graphtool.front.assumptions import ROUNDS, entered_as
from graphtool.importers.torch.driver.captured import Program
from graphtool.importers.torch.driver.convert import Converter
from graphtool.importers.torch.driver.selections import bounded, with_sizes
from graphtool.ir.graph import Module
from graphtool.symbolic import Symbol, dim_of, with_steps


def to_module(program: Program) -> Module:
    """The module that computes the program.

    Raises UnsupportedError GT1101 with every op that has no handler, or no handler for its form,
    and InputError GT1103 where the program contradicts itself.
    """
    program = bounded(program)
    for _ in range(ROUNDS):
        converter, fault = Converter(program), None
        try:
            module = converter.run()
        except Undecided as error:
            fault = error
        better = with_steps(converter.found.assumed, program.symbols)
        if not better:
            break
        program = _stepped(program, better)
    if fault is not None:
        raise fault
    return entered_as(replace(module, requires=converter.found.required), program.same)


def _stepped(program: Program, symbols: Mapping[str, Symbol]) -> Program:
    """The program in which the symbols of these names are replaced, in all types and arguments."""
    sizes = {name: dim_of(s) for name, s in symbols.items()}
    found: Program = with_sizes(program, sizes)
    return replace(found, symbols={**program.symbols, **symbols})
