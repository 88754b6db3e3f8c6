"""A module from a captured program. Each conversion knows the steps of open sizes that the one
before found to be required."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from graphtool.errors import Undecided
from graphtool.importers.assumptions import ROUNDS, entered_as
from graphtool.importers.torch.driver.captured import Program
from graphtool.importers.torch.driver.convert import Converter
from graphtool.ir.graph import Module
from graphtool.symbolic import Dim, Poly, Symbol, dim_of, substitute, with_steps


def to_module(program: Program) -> Module:
    """The module that computes the program.

    Raises UnsupportedError GT1101 with every op that has no handler, or no handler for its form,
    and InputError GT1103 where the program contradicts itself.
    """
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
    found: Program = _with(program, sizes)
    return replace(found, symbols={**program.symbols, **symbols})


def _with(x: Any, sizes: Mapping[str, Dim]) -> Any:
    """A record, or what is in it, with sizes put in; what mentions none stays the same object."""
    match x:
        case Poly():
            return substitute(x, sizes)
        case Symbol() | str():
            return x
        case tuple():
            new = [_with(i, sizes) for i in x]
            same = all(a is b for a, b in zip(x, new, strict=True))
            return x if same else type(x)(*new) if hasattr(x, "_fields") else tuple(new)
        case Mapping():
            return {k: _with(v, sizes) for k, v in x.items()}
        case _ if is_dataclass(x) and not isinstance(x, type):
            old = {f.name: getattr(x, f.name) for f in fields(x) if f.init}
            new_ = {k: _with(v, sizes) for k, v in old.items()}
            changed = {k: v for k, v in new_.items() if v is not old[k]}
            return replace(x, **changed) if changed else x
        case _:
            return x
