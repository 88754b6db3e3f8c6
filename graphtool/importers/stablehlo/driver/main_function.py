"""The function that a module computes: the caller's, `main`, the only public one, or one that calls
all public ones."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool.errors import InputError
from graphtool.importers.stablehlo.text.tree import Argument, Function, Operation, Program
from graphtool.importers.stablehlo.text.types import Signature


def main_function(program: Program, name: str) -> Function:
    """The function called `name`; without a name `main`, the only public one, or one that calls all
    public ones, if none of them takes an argument. Raises InputError GT1305 if there is none."""
    functions = program.functions
    public = [f for f in functions.values() if f.public and f.body is not None]
    if name:
        found = functions.get(name)
    elif len(public) > 1 and "main" not in functions and not any(f.arguments for f in public):
        return _together(public)
    else:
        found = functions.get("main") or (public[0] if len(public) == 1 else None)
    if found is None or found.body is None:
        told = f"it has {', '.join('@' + n for n in list(functions)[:8])}"
        raise InputError("GT1305", f"the module has no function @{name or 'main'}",
                         hint=told + ("" if name else "; FILE.mlir:NAME takes one"))
    return found


def _together(functions: Sequence[Function]) -> Function:
    """A function that calls these, which take nothing, and returns all of their results."""
    calls, results = [], []
    for f in functions:
        names = tuple(f"%{f.name}#{i}" for i in range(len(f.results)))
        kinds = tuple(r.kind for r in f.results)
        calls.append(Operation("call", (), {"callee": f.name}, (), names, Signature((), kinds),
                               f.at))
        info = [f"{f.name}.{i}" if len(names) > 1 else f.name for i in range(len(names))]
        results += [(n, Argument("", k, {"jax.result_info": i}))
                    for n, k, i in zip(names, kinds, info, strict=True)]
    last = Operation("return", tuple(n for n, _ in results), {}, (), (), Signature((), ()), 0)
    return Function("", True, (), tuple(r for _, r in results), (*calls, last), 0)
