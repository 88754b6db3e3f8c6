"""The one traversal of statements and expressions: renames buffers, or lists what is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Expr,
    For,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Template,
)

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
