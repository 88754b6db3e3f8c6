"""Rows that several loops of a block read, and sums by which a loop divides.

A loop that sums over a row often computes what the next loops over that row need again: a softmax
its exponentials, a norm its dequantised numbers. If the row of the result cannot hold them (see
lower/row_loops.py), because it has bytes, a short row is kept in an array of the block.

A softmax divides by the sum of exp(x - m), where m is the greatest x. This sum is NaN or lies
between 1 and the number of its terms, so the loop divides by means of its inverse. One function
computes the exponentials of a row and adds them up (exponentials.h).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from graphtool import dtypes
from graphtool.emit.expr import ExprPrinter
from graphtool.emit.fields import moved
from graphtool.emit.language import Language
from graphtool.emit.lines import Writer
from graphtool.loops.forms import KernelFacts, inverse_name, over
from graphtool.loops.ir import Accumulate, Apply, Const, Expr, For, Let, Load, Name, Stmt, Store
from graphtool.loops.program import Param
from graphtool.loops.totals import LEAST_FLOPS, cost
from graphtool.loops.walk import each, map_values, mapped, statements, values
from graphtool.symbolic import Symbol, bounds, coefficient, substitute, symbol_of

LONGEST = 1024  # elements of a row: 4 KB of the stack
LEAST = 16  # exponentials of a row from which a function for all is worth its sum across a vector
_ONE = Const(1.0, dtypes.float32)
Row = tuple[Param, int]  # an array of the block, and its length


class Printer(Protocol):
    """What prints statements (see `Statements`)."""

    w: Writer
    p: ExprPrinter
    params: Mapping[str, Param]
    around: KernelFacts
    language: Language

    @property
    def converts_rows(self) -> bool:
        """Whether one worker converts rows at a time, on a machine with memory for them."""

    def expr(self, e: Expr) -> str:
        """The text of an expression."""

    def stmt(self, s: Stmt) -> None:
        """Write a statement."""


def kept_rows(body: Sequence[Stmt]) -> tuple[list[Row], tuple[Stmt, ...]]:
    """The statements of a block, and the rows in which sums keep what later loops read there."""
    rows, out = list[Row](), [*body]
    for i, s in enumerate(body):
        match s:
            case For(_, int(n), _, (Accumulate(name),)) if n <= LONGEST:
                param = Param(f"kept_{name}", dtypes.float32, False)
                if changed := _shared(out[i:], param.name):
                    out[i:] = changed
                    rows.append((param, n))
    return rows, tuple(out)


def _shared(block: Sequence[Stmt], row: str) -> list[Stmt] | None:
    """The block, in which the first loop stores the most expensive number that it shares with later
    ones in a row; None if there is none."""
    first = block[0]
    assert isinstance(first, For) and isinstance(first.body[0], Accumulate)
    it, sum_ = first.iter, first.body[0]
    last = max((j for j, s in enumerate(block) if _along(s, first)), default=0)
    for e in sorted(each([sum_.value]), key=cost, reverse=True):
        if cost(e) < LEAST_FLOPS:
            break
        if e.dtype is not dtypes.float32 or _changes(block[:last + 1], e):
            continue
        out = [_reading(s, _moved(e, first, s.iter), row)
               if isinstance(s, For) and _along(s, first) else s for s in block]
        if out != [*block]:
            keeping = Name("kept", e.dtype)
            rest = replace(sum_, value=mapped(sum_.value, _same, {e: keeping}))
            out[0] = replace(first, body=(
                Let(keeping.name, e), Store(row, symbol_of(it), keeping), rest))
            return out
    return None


def _along(s: Stmt, first: For) -> bool:
    """Whether the statement is a later loop over the same row, all of it on one thread."""
    return isinstance(s, For) and s is not first and s.extent == first.extent and (
        not s.mode.startswith("parallel")) and all(
        isinstance(x, (Let, Store, Accumulate)) for x in s.body)


def _changes(block: Iterable[Stmt], e: Expr) -> bool:
    """Whether the statements change what the expression reads."""
    reads = {x.name for x in each([e]) if isinstance(x, Name)} | {
        x.buffer for x in each([e]) if isinstance(x, Load)}
    return any((isinstance(s, Accumulate) and s.name in reads)
               or (isinstance(s, Store) and s.buffer in reads) for s in statements(block))


def _reading(loop: For, e: Expr, row: str) -> For:
    """The loop, which reads the expression in the row."""
    memo: dict[Any, Any] = {e: Load(row, symbol_of(loop.iter), e.dtype)}
    return replace(loop, body=tuple(
        map_values(s, lambda x: mapped(x, _same, memo)) for s in loop.body))


def _same(e: Expr) -> Expr:
    return e


def sums_of_exponentials(body: Sequence[Stmt]) -> Iterator[str]:
    """The sums in a block of exp(x - m) along a row, where m is the greatest x of that row."""
    starts = {s.name: s.value.value for s in body
              if isinstance(s, Let) and isinstance(s.value, Const)}
    greatest = dict[str, For]()
    for s in body:
        match s:
            case For(_, _, _, (Accumulate(m, "max", _),)) if starts.get(m) == -math.inf:
                greatest[m] = s
            case For(it, n, _, (*_, Accumulate(name, "add", value))) if starts.get(name) == 0:
                match _meaning(value, s.body):
                    case Apply("exp", (Apply("sub", (x, Name(m))),), dtypes.float32) if (
                            loop := greatest.get(m)) and loop.extent == n and (
                            _moved(values(loop.body[0])[0], loop, it) == x):
                        yield name


def _meaning(e: Expr, body: Sequence[Stmt]) -> Expr:
    """The expression that a name of the block stands for; any other as it is."""
    named = {Name(s.name, s.value.dtype): s.value for s in body if isinstance(s, Let)}
    return named.get(e, e) if isinstance(e, Name) else e


def _moved(e: Expr, loop: For, to: Symbol) -> Any:
    """An expression of a loop, in terms of another iterator."""
    return values(moved(Let("", e), {loop.iter.name: symbol_of(to)}))[0]


@dataclass(frozen=True)
class Block:
    """The statements of a block, the rows that it keeps, and its sums of exponentials, of which
    those in `inverses` have an inverse with a name."""

    body: tuple[Stmt, ...]
    rows: tuple[Row, ...] = ()
    sums: frozenset[str] = frozenset()
    inverses: frozenset[str] = frozenset()

    @contextmanager
    def around(self, to: Printer) -> Iterator[None]:
        """Declares the rows, and lets what is printed meanwhile use them and the inverses."""
        params, around = to.params, to.around
        to.params = {**params, **{param.name: param for param, _ in self.rows}}
        to.around = replace(around, inverses=around.inverses | self.inverses)
        for param, n in self.rows:
            to.w.line(f"{to.language.type(param.dtype)} {param.name}[{n}];")
        yield
        to.params, to.around = params, around


def block_of(body: tuple[Stmt, ...], to: Printer) -> Block:
    """The block with the rows that it keeps, and with the inverses of its sums."""
    if not to.converts_rows:
        return Block(body)
    sums = frozenset(sums_of_exponentials(body) if over in to.language.forms else ())
    rows, body = kept_rows(body)
    if rows and to.language.sums:
        body = tuple(_multiplied(s, sums) for s in body)
    out, inverses = list[Stmt](), set[str]()
    for i, s in enumerate(body):
        out.append(s)
        for name in _summed(s) & sums:
            total = Name(name, dtypes.float32)
            if _divides(body[i + 1:], total):
                out.append(Let(inverse_name(total), Apply("div", (_ONE, total), total.dtype)))
                inverses.add(name)
    return Block(tuple(out), tuple(rows), sums, frozenset(inverses))


def write(block: Block, to: Printer) -> None:
    """Write a block with its rows."""
    with block.around(to):
        write_all(block.body, block.sums, to)


def write_all(body: Iterable[Stmt], sums: Container[str], to: Printer) -> None:
    """Write statements, of which those that sum up exponentials are one line."""
    for s in body:
        if line := _exponentials(s, sums, to):
            to.w.line(line)
        else:
            to.stmt(s)


def _exponentials(s: Stmt, sums: Container[str], to: Printer) -> str:
    """The line for a loop that stores the exponentials of such a sum; "" for any other loop, and
    where sums are in order, or rows short."""
    match s:
        case For(it, n, _, (
                Let(kept, Apply("exp", (Apply("sub", (Load(x, at, dtypes.float32), Name(top))),))),
                Store(row, place, Name(stored)), Accumulate(acc, "add", Name(added)))) if (
                to.language.sums and acc in sums and kept == stored == added
                and (bounds(n)[1] or LEAST) >= LEAST
                and to.params[row].dtype is dtypes.float32
                and coefficient(at, it.name) == coefficient(place, it.name) == 1):
            first = {it.name: 0}
            start, source = (to.p.index(substitute(d, first), 12) for d in (place, at))
            return (f"{acc} += gt_exponentials_f32({row} + {start}, {x} + {source}, {top}, "
                    f"{to.p.index(n)});")
    return ""


def _multiplied(s: Stmt, sums: Container[str]) -> Stmt:
    """A loop beside a row that is kept because the result has bytes. A product with the inverse of
    a sum takes a third of the time of an exact quotient, whose operands are rounded anyway."""
    def change(e: Expr) -> Expr:
        match e:
            case Apply("div", (x, Name(name) as total), dtype) if name in sums:
                return Apply("mul", (x, Name(inverse_name(total), dtype)), dtype)
        return e
    return replace(s, body=tuple(map_values(x, lambda e: mapped(e, change)) for x in s.body)
                   ) if isinstance(s, For) else s


def _summed(s: Stmt) -> set[str]:
    """The scalars that a loop sums up."""
    return {x.name for x in s.body if isinstance(x, Accumulate)} if isinstance(s, For) else set()


def _divides(block: Iterable[Stmt], total: Name) -> bool:
    """Whether numbers are divided by the scalar, or multiplied by its inverse."""
    return any(e == Name(inverse_name(total), total.dtype)
               or (isinstance(e, Apply) and e.fn == "div" and e.args[1] == total)
               for e in each([v for s in statements(block) for v in values(s)]))
