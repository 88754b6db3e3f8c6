"""Statements and expressions of the loop IR as text: the key by which two of them are equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.symbolic import Poly, text


def expr_text(e: Expr) -> str:
    match e:
        case Const(value, dtype):
            return f"{value!r}:{dtype.short}"
        case Name(name):
            return name
        case Index(value):
            return f"[{text(value)}]"
        case Load(buffer, index, _):
            return f"{buffer}[{text(index)}]"
        case Apply(fn, args, dtype):
            suffix = f":{dtype.short}" if fn in ("cast", "bitcast") else ""
            return f"{fn}{suffix}({', '.join(map(expr_text, args))})"


def statement_lines(body: Sequence[Stmt], indent: str = "") -> Iterable[str]:
    deeper = indent + "  "
    for s in body:
        match s:
            case For(it, extent, mode, inner, reduces):
                extra = "".join(f" {fn}:{acc}" for acc, fn in reduces)
                yield f"{indent}for {it.name} < {text(extent)} {mode}{extra}"
                yield from statement_lines(inner, deeper)
            case Let(name, value, mutable):
                yield f"{indent}{'var' if mutable else 'let'} {name}:{value.dtype.short} = " + (
                    expr_text(value))
            case Accumulate(name, fn, value):
                yield f"{indent}{name} = {fn}({name}, {expr_text(value)})"
            case Store(buffer, index, value):
                yield f"{indent}{buffer}[{text(index)}] = {expr_text(value)}"
            case If(cond, then, orelse):
                yield f"{indent}if {expr_text(cond)}"
                yield from statement_lines(then, deeper)
                if orelse:
                    yield f"{indent}else"
                    yield from statement_lines(orelse, deeper)
            case Template(kernel, macros, _, _, _, hooks):
                yield f"{indent}template {kernel}"
                for key, macro in macros:
                    shown = text(macro) if isinstance(macro, Poly) else macro
                    yield f"{deeper}{key} = {shown}"
                for key, buffer, offset in s.pointers:
                    yield f"{deeper}{key} = {buffer} + {text(offset)}"
                for hook in hooks:
                    names = ", ".join(x.name for x in hook.indices)
                    yield f"{deeper}{hook.name}({names})"
                    yield from statement_lines(hook.body, deeper + "  ")
