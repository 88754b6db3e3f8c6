"""Kernels that differ only in numbers become one kernel, to which a run passes them.

Layers of one shape of a quantised model have scales and zero points of their own, so their kernels
are alike but for these. A number that all of them have stays a literal. So do infinities, and
divisors whose quotients are computed in another way. Numbers that agree in each kernel are passed
once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from graphtool.loops.forms import has_inverse
from graphtool.loops.ir import Apply, Const, Expr, If, Let, Name, Stmt
from graphtool.loops.program import Kernel, Step, map_runs
from graphtool.loops.walk import fold, map_expressions, operands

Alike = tuple[Expr, ...]  # what stands at one place of each of several kernels


def with_numbers(kernels: Iterable[Kernel], steps: tuple[Step, ...]
                 ) -> tuple[tuple[Kernel, ...], tuple[Step, ...]]:
    """The kernels, of which none differs from another in numbers only, and the steps with the
    numbers that they pass. The names of the kernels count from k0."""
    groups: dict[Any, list[Kernel]] = {}
    for k in kernels:
        groups.setdefault((k.params, _structure(k), k.serial), []).append(k)
    joined: dict[str, tuple[Kernel, tuple[Any, ...]]] = {}
    for i, alike in enumerate(groups.values()):
        body, given = _joined(alike)
        kernel = replace(alike[0], name=f"k{i}", body=body, numbers=tuple(given.values()))
        for at, k in enumerate(alike):
            joined[k.name] = kernel, tuple(consts[at].value for consts in given)
    return (tuple(dict.fromkeys(kernel for kernel, _ in joined.values())),
            map_runs(steps, lambda run: replace(
                run, kernel=joined[run.kernel][0].name, numbers=joined[run.kernel][1])))


def _joined(alike: list[Kernel]) -> tuple[tuple[Stmt, ...], dict[tuple[Const, ...], Name]]:
    """The body of kernels of one structure, and by its numbers in each of them what stands for
    these in the body."""
    given: dict[Any, Name] = {}
    memo: dict[Any, Any] = {}

    def join(at: Alike, parts: list[Any]) -> Expr:
        match at[0]:
            case e if all(x is e for x in at):
                return e
            case Const(_, dtype):
                return given.setdefault(at, Name(f"num{len(given)}", dtype))
            case Apply(fn, _, dtype):
                return Apply(fn, tuple(parts), dtype)
            case e:
                return e

    def below(at: Any) -> list[Any]:
        return [] if all(x is at[0] for x in at) else [*zip(*map(operands, at), strict=True)]
    if len(alike) == 1:
        return alike[0].body, given
    places: Iterator[Any] = zip(*map(_values, alike), strict=True)
    body = map_expressions(alike[0].body, lambda _, e: fold(next(places), join, memo, below))
    return body, given


def _values(kernel: Kernel) -> list[Expr]:
    """The expressions of a kernel, in the order in which `map_expressions` comes to them."""
    values: list[Expr] = []

    def see(_: Stmt, e: Expr) -> Expr:
        values.append(e)
        return e
    map_expressions(kernel.body, see)
    return values


def _structure(kernel: Kernel) -> tuple[Stmt, ...]:
    """The body with one name in place of all numbers of a type that may be passed."""
    memos: tuple[dict[Any, Any], dict[Any, Any]] = {}, {}
    return map_expressions(kernel.body, lambda s, e: fold(
        e, _without_floats if _decides(s) else _without_numbers, memos[_decides(s)]))


def _decides(s: Stmt) -> bool:
    """Whether what the statement computes may be an index, or decide what runs: then the integers
    in it bound what is touched."""
    return isinstance(s, If) or (isinstance(s, Let) and (s.mutable or not s.value.dtype.is_float))


def _without_numbers(e: Any, parts: list[Any]) -> Any:
    """The expression of these operands, where a number that may be passed has no value."""
    if isinstance(e, Const) and e.dtype.is_integer:
        return Name("", e.dtype)
    return _without_floats(e, parts)


def _without_floats(e: Any, parts: list[Any]) -> Any:
    """As `_without_numbers`, with integers as they are."""
    match e:
        case Const(value, dtype) if dtype.is_float and math.isfinite(value):
            return Name("", dtype)
        case Apply("div", (_, Const(value) as s)) if not has_inverse(value, s.dtype):
            return Apply("div", (parts[0], s), e.dtype)
        case Apply():
            return Apply(e.fn, tuple(parts), e.dtype)
    return e

