"""The conditions that torch.export records of the sizes of inputs, as equations between sizes.

torch writes them as Python, `(L['x'].size()[0] % 4) == 0`. They are parsed, never evaluated. An
inequality becomes an equation too: `a <= b` is `max(a, b) == b`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from graphtool.errors import InputError, Unsupported, UnsupportedError
from graphtool.importers.torch.driver import exprs
from graphtool.importers.torch.driver.captured import Program, parts_of
from graphtool.symbolic import Dim, Equation, known, maximum, product

_SIZE = re.compile(r"\bL((?:\[[^][]*\])+)\.size\(\)\[(\d+)\]")
_KEY = re.compile(r"\[(?:'([^']*)'|\"([^\"]*)\"|(\d+))\]")


def conditions(told: Iterable[Any], program: Program) -> tuple[Equation, ...]:
    """The conditions on the sizes of a program's inputs that are not true for all sizes.

    Those on strides and values are left out: inputs are contiguous, and values that were fixed are
    no inputs. Raises UnsupportedError GT1102 for one that cannot be read.
    """
    shapes = {s.name: kind.shape for s in program.sources if s.kind == "user"
              and (kind := parts_of(program.types.get(s.name))) is not None}
    for i, name in enumerate(s.name for s in program.sources if s.kind == "user"):
        if name in shapes:  # where torch has lost the names of the arguments
            shapes.setdefault(f"flat_args_{i}", shapes[name])
    found = []
    for text in told:
        if isinstance(text, str) and ".size()" in text and ".stride()" not in text:
            try:
                found += _equation(text, shapes)
            except (InputError, LookupError, ValueError, SyntaxError) as error:
                raise UnsupportedError(
                    "GT1102", "torch recorded a condition on sizes that cannot be checked",
                    (Unsupported("size", text[:200]),)) from error
    return tuple(dict.fromkeys(found))


def _equation(text: str, shapes: Mapping[str, tuple[Dim, ...]]) -> list[Equation]:
    sizes: dict[str, Dim] = {}

    def named(match: re.Match[str]) -> str:
        name = "_".join("".join(part) for part in _KEY.findall(match[1]))
        sizes[f"size{len(sizes)}"] = shapes[name][int(match[2])]
        return f"size{len(sizes) - 1}"
    return list(_rows(ast.parse(_SIZE.sub(named, text), mode="eval").body, sizes))


def _rows(told: ast.expr, sizes: Mapping[str, Dim]) -> Iterator[Equation]:
    """Comparisons that all hold, which may share sides: `1 <= a <= b and c == d`."""
    match told:
        case ast.BoolOp(op=ast.And(), values=parts):
            for part in parts:
                yield from _rows(part, sizes)
        case ast.BoolOp(op=ast.Or(), values=parts):
            each = [list(_rows(part, sizes)) for part in parts]
            if all(each):  # a part without equations always holds
                yield Equation(product(map(_gap, each)), 0)
        case ast.Compare(left=a, ops=ops, comparators=others):
            sides = [exprs.read(ast.unparse(x), sizes) for x in (a, *others)]
            for op, left, right in zip(ops, sides, sides[1:], strict=False):
                yield from _row(type(op), left, right)
        case _:
            raise ValueError(ast.unparse(told))


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
