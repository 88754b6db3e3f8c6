"""A module from a captured program. Each conversion knows the steps of open sizes that the one
before found to be required, and the sizes that masked_select has of broadcast operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from graphtool.errors import Undecided
from graphtool.front.assumptions import ROUNDS, entered_as
from graphtool.importers.torch.driver.captured import CapturedProgram, NamedValue, OpCall
from graphtool.importers.torch.driver.convert import Converter
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.run_sizes import bare
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import (
    Dim,
    Poly,
    Symbol,
    bounds,
    dim_of,
    product,
    substitute,
    symbol,
    with_steps,
)

# ---- sizes of masked_select ---------------------------------------------------------------------

def bounded(program: CapturedProgram) -> CapturedProgram:
    """The program with the true bounds of such sizes, and without torch's assertion of its own."""
    sizes: dict[str, Dim] = {}
    wrong: dict[str, int] = {}  # by size, the bound that torch asserts
    for call in program.calls:
        if call.target != "aten.masked_select.default":
            continue
        x, mask, out = (program.types.get(name) for name in (*map(_name, call.args[:2]),
                                                             call.outputs[0]))
        if not (isinstance(x, TensorType) and isinstance(mask, TensorType)
                and isinstance(out, TensorType)):
            continue
        size, most_here = bare(out.shape[0]), bounds(product(x.shape))[1]
        most = bounds(product(broadcast_shapes(x.shape, mask.shape)))[1]
        if size is not None and most_here is not None and size.hi == most_here != most:
            sizes[size.name], wrong[size.name] = symbol(size.name, size.lo, most), most_here
    if not sizes:
        return program
    by_name = {name: call for call in program.calls for name in call.outputs}
    kept = tuple(c for c in program.calls if not _asserts(c, by_name, program, wrong))
    result: CapturedProgram = with_sizes(replace(program, calls=kept), sizes)
    return result


def _name(x: Any) -> str:
    return x.name if isinstance(x, NamedValue) else ""


def _asserts(call: OpCall, calls: Mapping[str, OpCall], program: CapturedProgram,
             wrong: Mapping[str, int]) -> bool:
    """Whether the call asserts one of these bounds."""
    asserts = call.target.startswith("aten._assert_scalar")
    asked = calls.get(_name(call.args[0])) if asserts else None
    if asked is None or not asked.target.endswith(".le") or len(asked.args) != 2:
        return False
    left, right = asked.args
    size = bare(program.types.get(_name(left)))
    return size is not None and right == wrong.get(size.name)


def with_sizes(x: Any, sizes: Mapping[str, Dim]) -> Any:
    """A record, or what is in it, with sizes put in; what mentions none stays the same object."""
    match x:
        case Poly():
            return substitute(x, sizes)
        case Symbol() | str():
            return x
        case tuple():
            new = [with_sizes(i, sizes) for i in x]
            same = all(a is b for a, b in zip(x, new, strict=True))
            return x if same else type(x)(*new) if hasattr(x, "_fields") else tuple(new)
        case Mapping():
            return {k: with_sizes(v, sizes) for k, v in x.items()}
        case _ if is_dataclass(x) and not isinstance(x, type):
            old = {f.name: getattr(x, f.name) for f in fields(x) if f.init}
            new_ = {k: with_sizes(v, sizes) for k, v in old.items()}
            changed = {k: v for k, v in new_.items() if v is not old[k]}
            return replace(x, **changed) if changed else x
        case _:
            return x


# ---- a module from a program --------------------------------------------------------------------

def to_module(program: CapturedProgram) -> Module:
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
        better = with_steps(converter.knowledge.assumed, program.symbols)
        if not better:
            break
        program = _stepped(program, better)
    if fault is not None:
        raise fault
    return entered_as(replace(module, requires=converter.knowledge.required), program.same)


def _stepped(program: CapturedProgram, symbols: Mapping[str, Symbol]) -> CapturedProgram:
    """The program in which the symbols of these names are replaced, in all types and arguments."""
    sizes = {name: dim_of(s) for name, s in symbols.items()}
    result: CapturedProgram = with_sizes(program, sizes)
    return replace(result, symbols={**program.symbols, **symbols})
