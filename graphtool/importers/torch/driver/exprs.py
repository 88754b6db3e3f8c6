"""Reads symbolic size expressions (`Add(Mul(Integer(2), Symbol('s0')), Integer(1))`) by whitelist,
and the conditions on sizes that torch.export records, as equations between sizes.

The text comes from sympy's `srepr` or `str`. It is parsed, never evaluated: whatever is not an
integer, a known symbol or a listed function is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.importers.torch.driver.captured import CapturedProgram, parts_of
from graphtool.symbolic import (
    Dim,
    Equation,
    Poly,
    ceildiv,
    floordiv,
    known,
    maximum,
    minimum,
    mod,
    product,
)

_LIMIT = 20_000  # characters; sizes are short, and the parser recurses


def _power(a: Dim, b: Dim) -> Dim:
    if not isinstance(b, int) or not 0 <= b <= 16:
        raise ValueError("an exponent must be a number from 0 to 16")
    return _times(*[a] * b)


def _sum(*xs: Dim) -> Dim:
    total: Dim = 0
    for x in xs:
        total = total + x
    return total


def _times(*xs: Dim) -> Dim:
    return product(xs)


def _divide(a: Dim, b: Dim) -> Dim:
    if isinstance(b, int) and b <= 0:
        raise ValueError("a divisor must be 1 or more")
    return floordiv(a, b)


def _remainder(a: Dim, b: Dim) -> Dim:
    if isinstance(b, int) and b <= 0:
        raise ValueError("a divisor must be 1 or more")
    return mod(a, b)


def _least(*xs: Dim) -> Dim:
    return reduce(minimum, xs)


def _greatest(*xs: Dim) -> Dim:
    return reduce(maximum, xs)


def _absolute(x: Dim) -> Dim:
    return maximum(x, -x)


_FUNCTIONS: dict[str, Callable[..., Dim]] = {
    "Add": _sum, "Mul": _times, "Pow": _power, "PowByNatural": _power,
    "FloorDiv": _divide, "CleanDiv": _divide, "Mod": _remainder, "PythonMod": _remainder,
    "CeilDiv": ceildiv, "Identity": lambda x: x, "Integer": lambda x: x,
    "Max": _greatest, "Min": _least, "Abs": _absolute,
    "max": _greatest, "min": _least, "abs": _absolute,  # as torch writes them in Python
}
_CONSTANTS = {"S.Zero": 0, "S.One": 1, "S.NegativeOne": -1}
_OPERATORS: dict[type[ast.operator], Callable[[Dim, Dim], Dim]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: _divide, ast.Mod: _remainder, ast.Pow: _power,
}


def read(source: str, table: Mapping[str, Dim] | Callable[[str], Dim]) -> Dim:
    """The dimension that an expression means; `table` gives the symbols, or makes them.

    Raises InputError GT1210 for anything outside the whitelist.
    """
    find = table if callable(table) else table.__getitem__
    try:
        if not isinstance(source, str) or len(source) > _LIMIT:
            raise ValueError("not an expression")
        return _read(ast.parse(source, mode="eval").body, find)
    except (SyntaxError, ValueError, KeyError, TypeError, RecursionError, MemoryError) as error:
        raise InputError("GT1210", f"cannot read the size expression {str(source)[:200]!r}",
                         hint="only sums, products, // and % of known symbols, min and max "
                              "are understood") from error


def _read(node: ast.expr, find: Callable[[str], Dim]) -> Dim:
    match node:
        case ast.Constant(value=int() as n) if not isinstance(n, bool):
            return n
        case ast.Name(id=name):
            return _known(find(name))
        case ast.Attribute(value=ast.Name(id="S"), attr=name):
            return _CONSTANTS[f"S.{name}"]
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -_read(x, find)
        case ast.BinOp(left=a, op=op, right=b):
            return _OPERATORS[type(op)](_read(a, find), _read(b, find))
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=str() as name)]):
            return _known(find(name))  # its assumptions (positive, integer) come from the ranges
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return _FUNCTIONS[name](*(_read(a, find) for a in args))
        case _:
            raise ValueError(ast.dump(node)[:100])


def _known(x: Any) -> Dim:
    if not isinstance(x, (int, Poly)):
        raise ValueError("not a size")
    return x


# ---- conditions on sizes ------------------------------------------------------------------------

_SIZE = re.compile(r"\bL((?:\[[^][]*\])+)\.size\(\)\[(\d+)\]")
_KEY = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]")


def conditions(texts: Iterable[Any], program: CapturedProgram) -> tuple[Equation, ...]:
    """The conditions on the sizes of a program's inputs that are not true for all sizes.

    Those on strides and values are left out: inputs are contiguous, and values that were fixed are
    no inputs. Raises UnsupportedError GT1102 for a condition that cannot be read.
    """
    shapes = {s.name: kind.shape for s in program.sources if s.kind == "user"
              and (kind := parts_of(program.types.get(s.name))) is not None}
    for i, name in enumerate(s.name for s in program.sources if s.kind == "user"):
        if name in shapes:  # where torch has lost the names of the arguments
            shapes.setdefault(f"flat_args_{i}", shapes[name])
    equations = []
    for text in texts:
        if isinstance(text, str) and ".size()" in text and ".stride()" not in text:
            try:
                equations += _equation(text, shapes)
            except (InputError, LookupError, ValueError, SyntaxError) as error:
                raise UnsupportedError(
                    "GT1102", "torch recorded a condition on sizes that cannot be checked",
                    (Unsupported("size", text[:200]),)) from error
    return tuple(dict.fromkeys(equations))


def _equation(text: str, shapes: Mapping[str, tuple[Dim, ...]]) -> list[Equation]:
    sizes: dict[str, Dim] = {}

    def named(match: re.Match[str]) -> str:
        name = "_".join("".join(part) for part in _KEY.findall(match[1]))
        sizes[f"size{len(sizes)}"] = shapes[name][int(match[2])]
        return f"size{len(sizes) - 1}"
    return list(_rows(ast.parse(_SIZE.sub(named, text), mode="eval").body, sizes))


def _rows(condition: ast.expr, sizes: Mapping[str, Dim]) -> Iterator[Equation]:
    """Comparisons that all hold, which may share sides: `1 <= a <= b and c == d`."""
    match condition:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _rows(part, sizes)
        case ast.BoolOp(op=ast.Or(), values=parts):
            each = [list(_rows(part, sizes)) for part in parts]
            if all(each):  # a part without equations always holds
                yield Equation(product(map(_gap, each)), 0)
        case ast.Compare(left=a, ops=ops, comparators=others):
            sides = [read(ast.unparse(x), sizes) for x in (a, *others)]
            for op, left, right in zip(ops, sides, sides[1:], strict=False):
                yield from _row(type(op), left, right)
        case _:
            raise ValueError(ast.unparse(condition))


def _gap(rows: Sequence[Equation]) -> Dim:
    """A size that is 0 where all equations hold."""
    gaps: list[Dim] = [e.left - e.right for e in rows]
    return gaps[0] if len(gaps) == 1 else sum((d * d for d in gaps), 0)


def _row(op: type[ast.cmpop], a: Dim, b: Dim) -> list[Equation]:
    """The comparison as an equation; none where it is always true."""
    if op in (ast.Gt, ast.GtE):
        op, a, b = {ast.Gt: ast.Lt, ast.GtE: ast.LtE}[op], b, a
    if op is ast.Lt:
        op, a = ast.LtE, a + 1
    if op is ast.NotEq:
        op, a, b = _apart(a, b)
    if op is ast.LtE:
        return [] if known(a, "<=", b) is True else [Equation(maximum(a, b), b)]
    if op is not ast.Eq:
        raise ValueError(op.__name__)
    return [] if known(a, "==", b) is True else [Equation(a, b)]


def _apart(a: Dim, b: Dim) -> tuple[type[ast.cmpop], Dim, Dim]:
    """a != b as a comparison: the larger one is larger by 1, or the square of the gap is 1."""
    if known(a, "<=", b) is True:
        return ast.LtE, a + 1, b
    if known(b, "<=", a) is True:
        return ast.LtE, b + 1, a
    return ast.LtE, 1, (a - b) * (a - b)
