"""Types of inputs as `--inputs` gives them: `x:f32[batch,3]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphtool.dtypes import DType, dtype
from graphtool.errors import UsageError, listed, near
from graphtool.front.assumptions import Bounds
from graphtool.importers.stablehlo.driver import boundary
from graphtool.importers.stablehlo.driver.parts import is_token, leaves
from graphtool.importers.stablehlo.driver.session import Session
from graphtool.importers.stablehlo.driver.values import element_type
from graphtool.importers.stablehlo.text.tree import Function
from graphtool.importers.stablehlo.text.types import Kind

_SPEC = re.compile(r"\s*(?:(?P<name>[^:\[\]]+):)?\s*(?P<type>\w+)\s*\[(?P<dims>[^\]]*)\]\s*")


class Spec(NamedTuple):
    """An input as the option gives it; a name among the sizes is an open one."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]


def spec(text: str) -> Spec:
    """The input that a text says. Raises UsageError GT1115 if it says none."""
    found = _SPEC.fullmatch(text)
    dims = [d.strip() for d in found["dims"].split(",")] if found else []
    if found is None or (dims != [""] and not all(
            d.isdecimal() or d.isidentifier() for d in dims)):
        raise UsageError("GT1115", f"cannot read the input {text!r}",
                         hint="NAME:TYPE[SIZES], such as x:f32[batch,3]; a scalar is f32[]")
    return Spec((found["name"] or "").strip(), dtype(found["type"]),
                tuple(int(d) if d.isdecimal() else d for d in dims if d))


def fixed(session: Session, main: Function, texts: Sequence[str]) -> Mapping[str, Bounds]:
    """The open sizes of a program that the option gives numbers, by their names.

    Raises UsageError GT1115 for an input that the program has otherwise, or not at all.
    """
    names = boundary.argument_names(session, main)
    told = session.names.sizes or boundary.polymorphic(main)
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
        for axis, (own, size) in enumerate(zip(kind.shape or (), given.shape, strict=True)):
            key = boundary.size_name(told, i, axis, name)
            if own is not None or key == size:
                continue
            if not key.isidentifier() or isinstance(size, str):
                raise UsageError("GT1115", f"size {axis} of {name} is {key}",
                                 hint=f"--dynamic {key}=4..16 bounds it" if key.isidentifier()
                                 else "fix the sizes that it is made of with --dynamic NAME=SIZE")
            if out.setdefault(key, (size, size)) != (size, size):
                raise UsageError("GT1115", f"the size {key} is given two numbers")
    return out


def _fits(given: Spec, kind: Kind) -> bool:
    shape = kind.shape or ()
    return given.dtype is element_type(kind) and len(given.shape) == len(shape) and all(
        own is None or own == size for own, size in zip(shape, given.shape, strict=True))


def _shown(kind: Kind) -> str:
    sizes = ",".join("?" if d is None else str(d) for d in kind.shape or ())
    return f"{element_type(kind).short}[{sizes}]"
