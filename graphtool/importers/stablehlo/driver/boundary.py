"""Inputs and outputs of the module: names from JAX's paths, open sizes, arguments not used;
and types of inputs as `--inputs` gives them (`x:f32[batch,3]`)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from graphtool.dtypes import DType, dtype
from graphtool.errors import InputError, UsageError, listed, near
from graphtool.front import REFUSED, Refused
from graphtool.front.assumptions import Bounds
from graphtool.importers.stablehlo.driver import own
from graphtool.importers.stablehlo.driver.parts import is_token, joined, leaves
from graphtool.importers.stablehlo.driver.session import (
    BoundaryNames,
    Session,
    argument_name,
    path_name,
)
from graphtool.importers.stablehlo.driver.values import element_type
from graphtool.importers.stablehlo.text.tree import (
    Argument,
    Function,
    MlirModule,
    MlirType,
    Operation,
    Signature,
)
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.symbolic import Dim, Symbol, symbols
from graphtool.symbolic.parse import parse


class Entry:
    """The inputs of a module: `inputs` in the graph, and `values` of the function's arguments."""

    def __init__(self, importer: Session, main: Function) -> None:
        self.importer = importer
        self.free: dict[str, Symbol] = {}
        self.named = importer.sizes  # every open size, also if it is a number by now
        self.size_names = importer.names.sizes or own.written(main) or polymorphic(main)
        self.bounds = own.bounds(main)
        names = argument_names(importer, main)
        parts = [[self._input(i, k, n) for n, k in leaves(a.kind, name)] for i, (a, name) in
                 enumerate(zip(main.arguments, names, strict=True))]
        tracers = [t for several in parts for t in several]
        for key in importer.dynamic:
            if key not in self.named:
                raise UsageError("GT1104", f"there is no open size {key!r}", hint=near(
                    key, self.named, f"they are {', '.join(self.named)}") if self.named else
                    "all sizes of the program are fixed; jax.export.symbolic_shape makes open ones")
        importer.knowledge.settle(self.free)
        self.inputs: tuple[Value, ...] = tuple(t.value for t in tracers if t is not REFUSED)
        self.values = joined((a.kind for a in main.arguments),
                             map(importer.knowledge.entered, tracers))

    def _input(self, i: int, kind: MlirType, name: str) -> Any:
        try:
            dtype = element_type(kind)
        except Refused as refused:
            self.importer.refuse(f"the input {name}", str(refused), "")
            return REFUSED
        shape = tuple(self._size(i, k, name) if d is None else d
                      for k, d in enumerate(kind.shape or ()))
        return self.importer.builder.input(TensorType(dtype, shape), name)

    def _size(self, i: int, axis: int, name: str) -> Dim:
        """An open size of an input: the caller's or JAX's expression for it, else `x_0` for axis 0
        of x."""
        said = size_name(self.size_names, i, axis, name)
        parts = re.findall(r"[A-Za-z_]\w*", said)
        if parts != [said]:
            with suppress(InputError):
                return parse(said, {n: self._symbol(n) for n in parts})
        return self._symbol(said if parts == [said] else f"{name}_{axis}")

    def _symbol(self, key: str) -> Dim:
        bounds = self.importer.dynamic.get(key, self.bounds.get(key))
        lo, hi = (bounds[0], bounds[1]) if isinstance(bounds, tuple) else (1, None)
        size = self.importer.knowledge.facts.size(key, lo, hi)
        self.named[key] = size
        for s in symbols(size):
            self.free[s.name] = s
        return size

    def symbols(self, graph: Graph) -> dict[str, Symbol]:
        """The module's open sizes by name."""
        return {s.name: s for v in graph.inputs for d in v.type.shape for s in symbols(d)}


def argument_names(importer: Session, main: Function) -> list[str]:
    """The names of the arguments: the caller's, else those of our parameters, else JAX's,
    else those of the text."""
    given, inner = importer.names.inputs, inner_names(importer, main)
    return distinct([given[i] if i < len(given) else str(a.attrs.get("graphtool.parameter") or "")
                     or argument_name(a.origin) or inner.get(a.name) or a.name.removeprefix("%")
                     for i, a in enumerate(main.arguments)])


def size_name(names: Sequence[Sequence[str | int]], i: int, axis: int, name: str) -> str:
    """What an open size of input i is called: what the program says, such as `b` or `2*b`, else
    `x_0` for axis 0 of x."""
    said = str(names[i][axis]) if i < len(names) and axis < len(names[i]) else ""
    return said if re.search(r"[A-Za-z_]", said) else f"{name}_{axis}"


def inner_names(importer: Session, main: Function) -> dict[str, str]:
    """The names that arguments have in a function that `main` calls with them: JAX writes one
    around a function of open sizes."""
    out: dict[str, str] = {}
    for op in main.body or ():
        callee = importer.program.functions.get(str(op.attrs.get("callee")))
        for used, a in zip(op.operands, callee.arguments if callee else (), strict=False):
            if name := argument_name(a.origin):
                out.setdefault(used, name)
    return out


_SPECS = re.compile(r"polymorphic shapes specifications: (.*?\))\.( |$)")
_SHAPE = re.compile(r"\.shape = \(([^()]*(?:\([^()]*\)[^()]*)*)\)")


def polymorphic(main: Function) -> list[list[str]]:
    """The sizes of each argument as `b`, `2*b` or `3`, which JAX writes into its assertions; empty
    where it wrote none, or not for all arguments of open sizes."""
    for op in main.body or ():
        match = _SPECS.search(str(op.attrs.get("error_message") or ""))
        if match is None:
            continue
        rows = [[d.strip() for d in re.split(r",(?![^(]*\))", s) if d.strip()]
                for s in _SHAPE.findall(match[1])]
        wanted = [a for a in main.arguments if None in (a.kind.shape or ())]
        if len(rows) != len(wanted) or any(len(r) != len(a.kind.shape or ())
                                           for r, a in zip(rows, wanted, strict=True)):
            return []
        shapes = iter(rows)
        return [next(shapes) if a in wanted else [] for a in main.arguments]
    return []


def output_names(main: Function, names: BoundaryNames) -> list[str]:
    """The outputs' names: the caller's, else those that JAX wrote, else `result.0`; behind it what
    a part of a complex number or of a tuple is called."""
    count = len(main.results)
    listed = list(names.outputs) or [path_name(str(a.attrs.get("jax.result_info") or ""))
                                   for a in main.results]
    all_names = [listed[i] if i < len(listed) and listed[i] else
                 f"result.{i}" if count > 1 else "result" for i in range(count)]
    return distinct([n for a, name in zip(main.results, distinct(all_names), strict=True)
                     for n, _ in leaves(a.kind, name)])


def distinct(names: list[str]) -> list[str]:
    """The names; a repeated name gets a number behind it."""
    out: list[str] = []
    for name in names:
        n, unique = 2, name
        while unique in out:
            n, unique = n + 1, f"{name}_{n}"
        out.append(unique)
    return out


def donations(main: Function, graph: Graph) -> tuple[tuple[int, int], ...]:
    """The outputs that take the buffers of inputs which the caller gives away: the output that the
    program names, else the first one of the same type."""
    inputs = [i for i, a in enumerate(main.arguments) for _ in leaves(a.kind)]
    results = [i for i, a in enumerate(main.results) for _ in leaves(a.kind)]
    free = [o for o, v in enumerate(graph.outputs[:len(results)])
            if v not in graph.inputs and graph.outputs.index(v) == o]
    out: list[tuple[int, int]] = []
    named = [main.arguments[i].attrs.get("tf.aliasing_output") for i in inputs]
    for i, alias in sorted(enumerate(named), key=lambda pair: pair[1] is None):
        if alias is None and not main.arguments[inputs[i]].attrs.get("jax.buffer_donor"):
            continue
        candidates = [o for o in free if graph.outputs[o].type == graph.inputs[i].type
                 and alias in (None, results[o])]
        if candidates:
            free.remove(candidates[0])
            out.append((candidates[0], i))
    return tuple(sorted(out))


# ---- the function that a module computes ---------------------------------------------------------

def main_function(program: MlirModule, name: str) -> Function:
    """The function called `name`; without a name `main`, the only public one, or one that calls all
    public ones, if none of them takes an argument. Raises InputError GT1305 if there is none."""
    functions = program.functions
    public = [f for f in functions.values() if f.public and f.body is not None]
    if name:
        function = functions.get(name)
    elif len(public) > 1 and "main" not in functions and not any(f.arguments for f in public):
        return _together(public)
    else:
        function = functions.get("main") or (public[0] if len(public) == 1 else None)
    if function is None or function.body is None:
        hint = f"it has {', '.join('@' + n for n in list(functions)[:8])}"
        raise InputError("GT1305", f"the module has no function @{name or 'main'}",
                         hint=hint + ("" if name else "; FILE.mlir:NAME takes one"))
    return function


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


# ---- types from the command line ----------------------------------------------------------------

_SPEC = re.compile(r"\s*(?:(?P<name>[^:\[\]]+):)?\s*(?P<type>\w+)\s*\[(?P<dims>[^\]]*)\]\s*")


class InputOption(NamedTuple):
    """An input as the option gives it; a name among the sizes is an open one."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


def spec(text: str) -> InputOption:
    """The input that a text says. Raises UsageError GT1115 if it says none."""
    match = _SPEC.fullmatch(text)
    dims = [d.strip() for d in match["dims"].split(",")] if match else []
    if match is None or (dims != [""] and not all(
            d.isdecimal() or d.isidentifier() for d in dims)):
        raise UsageError("GT1115", f"cannot read the input {text!r}",
                         hint="NAME:TYPE[SIZES], such as x:f32[batch,3]; a scalar is f32[]")
    return InputOption((match["name"] or "").strip(), dtype(match["type"]),
                       tuple(int(d) if d.isdecimal() else d for d in dims if d))


def fixed(session: Session, main: Function, texts: Sequence[str]) -> Mapping[str, Bounds]:
    """The open sizes of a program that the option gives numbers, by their names.

    Raises UsageError GT1115 for an input that the program has otherwise, or not at all.
    """
    names = argument_names(session, main)
    shapes = session.names.sizes or polymorphic(main)
    inputs = {leaf: (i, kind) for i, (a, name) in enumerate(zip(main.arguments, names, strict=True))
              if not is_token(a.kind) for leaf, kind in leaves(a.kind, name)}
    out: dict[str, Bounds] = {}
    for at, text in enumerate(texts):
        given = spec(text)
        name = given.name or (list(inputs)[at] if at < len(inputs) else "")
        if name not in inputs:
            raise UsageError("GT1115", f"the program has no input {name!r}", hint=near(
                name, inputs, f"its inputs are {listed(list(inputs))}"))
        i, kind = inputs[name]
        if not _fits(given, kind):
            raise UsageError("GT1115", f"{text!r} does not fit the program's input", hint=(
                f"{name} is {_shown(kind)}; open sizes, written ?, may be given numbers"))
        for axis, (there, size) in enumerate(zip(kind.shape or (), given.shape, strict=True)):
            key = size_name(shapes, i, axis, name)
            if there is not None or key == size:
                continue
            if not key.isidentifier() or isinstance(size, str):
                raise UsageError("GT1115", f"size {axis} of {name} is {key}",
                                 hint=f"--dynamic {key}=4..16 bounds it" if key.isidentifier()
                                 else "fix the sizes that it is made of with --dynamic NAME=SIZE")
            if out.setdefault(key, (size, size)) != (size, size):
                raise UsageError("GT1115", f"the size {key} is given two numbers")
    return out


def _fits(given: InputOption, kind: MlirType) -> bool:
    shape = kind.shape or ()
    return given.dtype is element_type(kind) and len(given.shape) == len(shape) and all(
        want is None or want == size for want, size in zip(shape, given.shape, strict=True))


def _shown(kind: MlirType) -> str:
    sizes = ",".join("?" if d is None else str(d) for d in kind.shape or ())
    return f"{element_type(kind).short}[{sizes}]"
