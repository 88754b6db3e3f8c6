"""Reads symbolic size expressions (`Add(Mul(Integer(2), Symbol('s0')), Integer(1))`) by whitelist.

The text comes from sympy's `srepr` or `str`. It is parsed, never evaluated: whatever is not an
integer, a known symbol or a listed function is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from graphtool.errors import InputError
from graphtool.symbolic import Dim, Poly, ceildiv, floordiv, maximum, minimum, mod, product

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
