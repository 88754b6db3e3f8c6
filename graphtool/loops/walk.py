"""The traversals of statements and expressions: renames buffers, lists what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Expr,
    For,
    If,
    Index,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Template,
)
from graphtool.symbolic import Dim, Poly, Symbol, symbols

Rename = Callable[[str], str]
See = Callable[[str, bool], None]  # buffer, is it written


def map_statements(body: tuple[Stmt, ...], rename: Rename,
                   see: See | None = None) -> tuple[Stmt, ...]:
    """The statements with buffers renamed; `see` hears of each buffer as it is met."""
    mapper = _Mapper(rename, see)
    return tuple(mapper.stmt(s) for s in body)


class _Mapper:
    def __init__(self, rename: Rename, see: See | None) -> None:
        self.rename, self.see = rename, see
        self.done: dict[int, tuple[Expr, Expr]] = {}

    def buffer(self, name: str, write: bool) -> str:
        if self.see is not None:
            self.see(name, write)
        return self.rename(name)

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case For():
                return replace(s, body=tuple(map(self.stmt, s.body)))
            case Let() | Accumulate():
                return replace(s, value=self.expr(s.value))
            case Store():
                value = self.expr(s.value)
                return replace(s, buffer=self.buffer(s.buffer, True), value=value)
            case If():
                return replace(s, cond=self.expr(s.cond), then=tuple(map(self.stmt, s.then)),
                               orelse=tuple(map(self.stmt, s.orelse)))
            case Template():
                hooks = tuple(replace(h, body=tuple(map(self.stmt, h.body))) for h in s.hooks)
                return replace(s, hooks=hooks, reads=tuple(map(self.rename, s.reads)),
                               writes=tuple(map(self.rename, s.writes)),
                               pointers=tuple((k, self.rename(b), d) for k, b, d in s.pointers))

    def expr(self, e: Expr) -> Expr:
        if id(e) in self.done:
            return self.done[id(e)][1]
        match e:
            case Load():
                new: Expr = replace(e, buffer=self.buffer(e.buffer, False))
            case Apply():
                new = replace(e, args=tuple(map(self.expr, e.args)))
            case _:
                new = e
        self.done[id(e)] = (e, new)
        return new


def children(e: Expr) -> tuple[Expr, ...]:
    """The operands of an expression."""
    return e.args if isinstance(e, Apply) else ()


def bodies(s: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The lists of statements inside a statement."""
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
    """The expressions that stand in a statement itself."""
    match s:
        case Let() | Accumulate() | Store():
            return (s.value,)
        case If():
            return (s.cond,)
        case _:
            return ()


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement, in the order of the text."""
    for s in body:
        yield s
        for inner in bodies(s):
            yield from statements(inner)


def expressions(body: tuple[Stmt, ...]) -> list[tuple[Expr, int]]:
    """Every expression object once, operands first, and from how many places it is used."""
    uses: dict[int, int] = {}
    order: list[Expr] = []

    def visit(e: Expr) -> None:
        uses[id(e)] = uses.get(id(e), 0) + 1
        if uses[id(e)] == 1:
            for c in children(e):
                visit(c)
            order.append(e)
    for s in statements(body):
        for e in values(s):
            visit(e)
    return [(e, uses[id(e)]) for e in order]


def dims(s: Stmt) -> tuple[Dim, ...]:
    """The index polynomials that stand in a statement itself, outside its expressions."""
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


def kernel_symbols(kernel: Kernel) -> tuple[Symbol, ...]:
    """The symbols that a kernel binds or reads, those in extents included, by name."""
    found: dict[str, Symbol] = {}

    def add(s: Symbol) -> None:
        if s.name not in found:
            found[s.name] = s
            see(0 if s.extent is None else s.extent)

    def see(d: Dim) -> None:
        for s in symbols(d):
            add(s)
    for stmt in statements(kernel.body):
        for own in (stmt.iter,) if isinstance(stmt, For) else (
                s for h in stmt.hooks for s in h.indices) if isinstance(stmt, Template) else ():
            add(own)
        for d in dims(stmt):
            see(d)
    for e, _ in expressions(kernel.body):
        match e:
            case Index(d) | Load(_, d):
                see(d)
    return tuple(found[name] for name in sorted(found))
