"""Expressions and statements of the loop IR as lines for people; nothing reads them back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    MacroValue,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.walk import fold
from graphtool.scalars.table import BY_NAME
from graphtool.symbolic import Dim, Poly, text

INDENT = "  "
_ATOM, _CHOICE = 16, 3  # precedences, as in the table of scalars
_Text = tuple[str, int]


def expression(e: Expr) -> str:
    """An expression with the operators that C has for it, and calls for the rest."""
    return fold(e, _form, {})[0]


def _form(e: Expr, parts: list[_Text]) -> _Text:
    """The text of an expression and the precedence of its operator, from those of its operands."""
    match e:
        case Const(value, dtype):
            return str(np.asarray(value).astype(dtype.computes.numpy)), _ATOM
        case Name(name):
            return name, _ATOM
        case Index(value):
            return text(value), _ATOM if isinstance(value, int) else 0
        case Load(buffer, index):
            return f"{buffer}[{text(index)}]", _ATOM
        case Apply("select"):
            c, a, b = (_enclosed(x, _CHOICE + 1) for x in parts)
            return f"{c} ? {a} : {b}", _CHOICE
        case Apply("cast" | "bitcast"):
            name = e.dtype.short if e.fn == "cast" else f"bits_as_{e.dtype.short}"
            return f"{name}({parts[0][0]})", _ATOM
        case Apply():
            return _call(e.fn, parts)


def _call(fn: str, parts: list[_Text]) -> _Text:
    row = BY_NAME[fn]
    if not row.prec:
        return f"{fn}({', '.join(one for one, _ in parts)})", _ATOM
    return row.c.format(*(_enclosed(x, row.prec + (n > 0)) for n, x in enumerate(parts))), row.prec


def _enclosed(x: _Text, least: int) -> str:
    return f"({x[0]})" if x[1] < least else x[0]


def statements(body: tuple[Stmt, ...], indent: str = "") -> Iterator[str]:
    """The lines of a block: loops with their kind, what is stored, and templates with their sizes
    and hooks."""
    for s in body:
        match s:
            case For():
                mode = "" if s.mode == "serial" else f"{s.mode} "
                sums = "".join(f", {name} by {fn}" for name, fn in s.reduces)
                yield f"{indent}{mode}for {s.iter.name} < {text(s.extent)}{sums}"
                yield from statements(s.body, indent + INDENT)
            case Let():
                yield f"{indent}{'var ' if s.mutable else ''}{s.name} = {expression(s.value)}"
            case Accumulate():
                value = s.value if s.fn is None else Apply(
                    s.fn, (Name(s.name, s.value.dtype), s.value), s.value.dtype)
                yield f"{indent}{s.name} = {expression(value)}"
            case Store():
                yield f"{indent}{s.buffer}[{text(s.index)}] = {expression(s.value)}"
            case If():
                yield f"{indent}if {expression(s.cond)}"
                yield from statements(s.then, indent + INDENT)
                if s.orelse:
                    yield f"{indent}else"
                    yield from statements(s.orelse, indent + INDENT)
            case Template():
                yield from _template(s, indent)


def _template(t: Template, indent: str) -> Iterator[str]:
    sizes = ", ".join(f"{name}={_macro(value)}" for name, value in t.macros)
    yield f"{indent}template {t.kernel}({sizes})"
    for name, buffer, offset in t.pointers:
        use = " and ".join(word for word, side in (("read", t.reads), ("written", t.writes))
                           if buffer in side)
        yield f"{indent}{INDENT}{name} is {_place(buffer, offset)}{f', {use}' if use else ''}"
    for hook in t.hooks:
        at = ", ".join(s.name for s in hook.indices)
        row = f"{hook.name.lower()} of a row at {at}: acc[count], {hook.dtype.short}"
        yield f"{indent}{INDENT}{row}"
        yield from statements(hook.body, indent + 2 * INDENT)


def _place(buffer: str, offset: Dim) -> str:
    return buffer if offset == 0 else f"{buffer} + {text(offset)}"


def _macro(value: MacroValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, Poly)):
        return text(value)
    return value.short if hasattr(value, "short") else str(value)
