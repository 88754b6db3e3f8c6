"""The loop IR as text: what `show` prints of a program, and the key by which kernels are equal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Bind,
    Branch,
    Const,
    Expr,
    For,
    If,
    Index,
    Let,
    Load,
    Name,
    Program,
    Repeat,
    Run,
    Step,
    Stmt,
    Store,
    Template,
    Times,
)
from graphtool.symbolic import text


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
            case Template(header, macros, _, _, _, hooks):
                yield f"{indent}template {header}"
                for key, macro in macros:
                    shown = macro if isinstance(macro, str) else text(macro)
                    yield f"{deeper}{key} = {shown}"
                for key, buffer, offset in s.pointers:
                    yield f"{deeper}{key} = {buffer} + {text(offset)}"
                for hook in hooks:
                    names = ", ".join(x.name for x in hook.indices)
                    yield f"{deeper}{hook.name}({names})"
                    yield from statement_lines(hook.body, deeper + "  ")


def step_lines(steps: Iterable[Step], indent: str = "") -> Iterator[str]:
    deeper = indent + "  "
    for s in steps:
        note = f"  # {s.label}"
        match s:
            case Run():
                wait = " barrier" if s.barrier else ""
                yield f"{indent}run {s.kernel}({', '.join(s.args)}){wait}{note}"
            case Bind():
                yield (f"{indent}size {s.size.name} = {s.buffer}[{text(s.index)}], at most "
                       f"{text(s.most)}{note}")
            case Branch():
                yield f"{indent}if {s.pred}{note}"
                yield from step_lines(s.then, deeper)
                yield f"{indent}else"
                yield from step_lines(s.orelse, deeper)
            case Repeat():
                yield f"{indent}while {s.pred}, after{note}"
                yield from step_lines(s.cond, deeper)
                yield f"{indent}do"
                yield from step_lines(s.body, deeper)
            case Times():
                yield f"{indent}for {s.counter.name} < {text(s.extent)}{note}"
                yield from step_lines(s.body, deeper)


def program_lines(program: Program) -> Iterable[str]:
    """The whole program: ports, buffers, kernels, steps."""
    for kind, ports in (("input", program.inputs), ("output", program.outputs)):
        for p in ports:
            yield f"{kind} {p.name}: {p.dtype.short}[{','.join(map(text, p.shape))}]"
    for b in program.buffers:
        yield (f"buffer {b.name}: {b.dtype.short} × {text(b.size)} in {b.space}"
               f" at {text(b.offset) if b.space in ('arena', 'weight') else b.slot}  # {b.label}")
    for k in program.kernels:
        params = ", ".join(f"{'' if p.const else 'mut '}{p.name}: {p.dtype.short}"
                           for p in k.params)
        yield f"kernel {k.name}({params}){' serial' if k.serial else ''}"
        yield from statement_lines(k.body, "  ")
    yield from step_lines(program.steps)
    yield f"arena {text(program.arena)} bytes"
