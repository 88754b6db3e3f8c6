"""The traversals of the loop IR: they visit and rebuild expressions and statements.

Equal expressions are one object, so a table by expression is enough to visit each of them once.
What is inside an expression or a statement is said here only. Depth costs no stack.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import Kernel
from graphtool.loops.pull import PExpr, Reduce
from graphtool.symbolic import Dim, Poly, Symbol, symbols

T = TypeVar("T")
E = TypeVar("E", Expr, PExpr)
Below = Callable[[Any], Collection[PExpr]]  # the operands that a traversal visits

# ---- expressions -------------------------------------------------------------------------------


def operands(e: E) -> tuple[E, ...]:
    """The direct operands of an expression."""
    match e:
        case Apply():
            return e.args
        case Reduce():
            return (e.body,)
        case _:
            return ()


def dims_of(e: PExpr) -> list[Dim]:
    """The index polynomials that are part of an expression itself."""
    match e:
        case Reduce():
            return [d for _, d in e.iters]
        case Load():
            return [e.index]
        case Index():
            return [e.value]
        case _:
            return []


def certain(e: PExpr) -> tuple[PExpr, ...]:
    """The operands that are always evaluated: of a select only the condition, because an index in
    the other arm may be out of range."""
    return operands(e)[:1] if isinstance(e, Apply) and e.fn == "select" else operands(e)


def fold(e: PExpr, visit: Callable[[Any, list[T]], T], memo: dict[Any, T],
         below: Below = operands) -> T:
    """The result of visit(e, results of e's operands). Each expression is visited once; `memo`
    keeps its result."""
    if e in memo:
        return memo[e]
    parts = below(e)
    path = [(e, parts, iter(parts))]  # from e down to the expression whose operands are visited
    while path:
        at, parts, rest = path[-1]
        for x in rest:
            if x not in memo:
                inside = below(x)
                if inside:
                    path.append((x, inside, iter(inside)))
                    break
                memo[x] = visit(x, [])
        else:
            memo[at] = visit(at, [memo[x] for x in parts])
            path.pop()
    return memo[e]


def each(roots: Iterable[PExpr], below: Below = operands) -> list[Any]:
    """The roots and all expressions inside them, each once, operands first."""
    seen: dict[Any, None] = {}
    for e in roots:
        fold(e, lambda *_: None, seen, below)
    return list(seen)


def use_counts(roots: Collection[PExpr], below: Below = operands) -> dict[Any, int]:
    """How many times each expression is used, operands first."""
    counts: dict[Any, int] = {}

    def visit(e: PExpr, parts: list[PExpr]) -> PExpr:
        for x in parts:
            counts[x] += 1
        counts[e] = 0
        return e
    memo: dict[Any, PExpr] = {}
    for root in roots:
        counts[fold(root, visit, memo, below)] += 1
    return counts


def mapped(e: PExpr, change: Callable[[Any], Any], memo: dict[Any, Any] | None = None,
           below: Below = operands) -> Any:
    """The expression rebuilt from its operands up, with `change` applied to each expression in it.

    Operands that `below` leaves out, which are always the last ones, are not changed.
    """
    def visit(e: PExpr, parts: list[Any]) -> Any:
        n = len(parts)
        if n and parts != [*operands(e)[:n]]:
            e = Apply(e.fn, (*parts, *e.args[n:]), e.dtype) if isinstance(e, Apply) else replace(
                e, body=parts[0])
        return change(e)
    return fold(e, visit, {} if memo is None else memo, below)


def loads(*roots: PExpr, below: Below = operands) -> list[Load]:
    """Every load in the expressions."""
    return [e for e in each(roots, below) if isinstance(e, Load)]


# ---- statements --------------------------------------------------------------------------------

def bodies(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists inside a statement."""
    match s:
        case For():
            return (s.body,)
        case If():
            return (s.then, s.orelse)
        case Template():
            return tuple(h.body for h in s.hooks)
        case _:
            return ()


def values(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that a statement itself contains."""
    match s:
        case Let() | Accumulate() | Store():
            return (s.value,)
        case If():
            return (s.cond,)
        case _:
            return ()


def dims(s: Stmt) -> tuple[Dim, ...]:
    """The index polynomials that a statement itself contains, outside of its expressions."""
    match s:
        case For():
            return (s.extent,)
        case Store():
            return (s.index,)
        case Template():
            return (*(d for _, d in s.macros if isinstance(d, (int, Poly))),
                    *(d for _, _, d in s.pointers))
        case _:
            return ()


def scoped(body: Iterable[Stmt], scope: T,
           inner: Callable[[Stmt, T], Iterable[T]]) -> Iterator[tuple[Stmt, T]]:
    """Every statement in program order, with its scope.

    inner(s, scope of s) gives one scope for each statement list inside `s`. It is called after `s`
    was yielded, so it sees what the caller did to the scope.
    """
    path = [(iter(body), scope)]
    while path:
        rest, scope = path[-1]
        s = next(rest, None)
        if s is None:
            path.pop()
            continue
        yield s, scope
        if inside := bodies(s):
            scopes = zip(map(iter, inside), inner(s, scope), strict=True)
            path += reversed(list(scopes))


def statements(body: Iterable[Stmt]) -> Iterator[Stmt]:
    """Every statement in program order."""
    return (s for s, _ in scoped(body, None, lambda s, _: [None] * len(bodies(s))))


def map_bodies(s: Stmt, change: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """The statement with `change` applied to each statement list inside it."""
    match s:
        case For():
            return For(s.iter, s.extent, s.mode, change(s.body), s.reduces)
        case If(cond, then, orelse):
            return If(cond, change(then), change(orelse))
        case Template(hooks=(_, *_)):
            return replace(s, hooks=tuple(replace(h, body=change(h.body)) for h in s.hooks))
        case _:
            return s


def map_values(s: Stmt, change: Callable[[Expr], Expr]) -> Stmt:
    """The statement with `change` applied to each expression that it itself contains."""
    match s:
        case Let(name, value, mutable):
            return Let(name, change(value), mutable)
        case Accumulate(name, fn, value):
            return Accumulate(name, fn, change(value))
        case Store(buffer, index, value):
            return Store(buffer, index, change(value))
        case If(cond, then, orelse):
            return If(change(cond), then, orelse)
        case _:
            return s


def map_expressions(body: tuple[Stmt, ...], change: Callable[[Stmt, Expr], Expr]
                    ) -> tuple[Stmt, ...]:
    """The statements with each of their expressions changed, those of inner statements first."""
    def inside(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map(whole, body))

    def whole(s: Stmt) -> Stmt:
        return map_values(map_bodies(s, inside), lambda e: change(s, e))
    return inside(body)


# ---- kernels -----------------------------------------------------------------------------------

def polynomials(body: Iterable[Stmt]) -> Iterator[Dim]:
    """The index polynomials of the statements and of the expressions in them."""
    inside = list(statements(body))
    for s in inside:
        yield from dims(s)
    for e in each(e for s in inside for e in values(s)):
        yield from dims_of(e)


def accesses(body: Iterable[Stmt]) -> list[tuple[str, bool]]:
    """Each buffer that statements load from (False) or store to (True), in order of first use."""
    result: dict[tuple[str, bool], None] = {}

    def see(e: PExpr, _: list[None]) -> None:
        if isinstance(e, Load):
            result[e.buffer, False] = None
    seen: dict[Any, None] = {}
    for s in statements(body):
        for e in values(s):
            fold(e, see, seen)
        if isinstance(s, Store):
            result[s.buffer, True] = None
    return list(result)


def renamed(body: tuple[Stmt, ...], rename: Callable[[str], str]) -> tuple[Stmt, ...]:
    """The statements with other names for buffers."""
    return moved(body, lambda buffer, index: (rename(buffer), index))


def moved(body: tuple[Stmt, ...], move: Callable[[str, Dim], tuple[str, Dim]]
          ) -> tuple[Stmt, ...]:
    """The statements with other places for what they touch: a buffer, and an index of it."""
    memo: dict[Any, Any] = {}

    def rename(buffer: str) -> str:
        return move(buffer, 0)[0]

    def load(e: Expr) -> Expr:
        return Load(*move(e.buffer, e.index), e.dtype) if isinstance(e, Load) else e

    def change(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(stmt(map_values(map_bodies(s, change), lambda e: mapped(e, load, memo)))
                     for s in body)

    def stmt(s: Stmt) -> Stmt:
        match s:
            case Store(buffer, index, value):
                return Store(*move(buffer, index), value)
            case Template():
                return replace(s, reads=tuple(map(rename, s.reads)),
                               writes=tuple(map(rename, s.writes)),
                               pointers=tuple((k, *move(b, d)) for k, b, d in s.pointers))
            case _:
                return s
    return change(body)


def kernel_symbols(kernel: Kernel) -> tuple[Symbol, ...]:
    """The symbols that a kernel binds or reads, including those in extents, by name."""
    by_name: dict[str, Symbol] = {}

    def add(s: Symbol) -> None:
        if s.name not in by_name:
            by_name[s.name] = s
            see(0 if s.extent is None else s.extent)

    def see(d: Dim) -> None:
        for s in symbols(d):
            add(s)
    for stmt in statements(kernel.body):
        for iterator in (stmt.iter,) if isinstance(stmt, For) else (
                s for h in stmt.hooks for s in h.indices) if isinstance(stmt, Template) else ():
            add(iterator)
    for d in polynomials(kernel.body):
        see(d)
    return tuple(by_name[name] for name in sorted(by_name))
