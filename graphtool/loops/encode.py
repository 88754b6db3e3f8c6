"""Writes a Program as the lines of its JSON text: keys in a fixed order, so that equal programs
give equal text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.io.files import compact
from graphtool.io.values import number, size_text, symbol_bounds, table
from graphtool.loops.ir import (
    Accumulate,
    Apply,
    Const,
    Expr,
    For,
    Hook,
    If,
    Index,
    Let,
    Load,
    MacroValue,
    Name,
    Stmt,
    Store,
    Template,
)
from graphtool.loops.program import (
    Bind,
    Branch,
    Buffer,
    Kernel,
    Port,
    Program,
    Repeat,
    Run,
    Step,
    Times,
    counters,
)
from graphtool.loops.requires import meta_with_plugins
from graphtool.loops.walk import kernel_symbols, operands, statements, use_counts, values
from graphtool.symbolic import Symbol

DEEPEST = 100  # a row nested deeper is split, because readers of JSON limit the depth


def lines(program: Program, weights_name: str) -> list[str]:
    """One string per key of the file, after format and version."""
    data = dict(program.weights)
    donors = dict(program.donations)
    tables: list[tuple[str, list[str]]] = [
        ("dims", [compact(_symbol(s)) for s in program.dims]),
        ("inputs", [compact(_port(p, None)) for p in program.inputs]),
        ("outputs", [compact(_port(p, donors.get(i))) for i, p in enumerate(program.outputs)]),
        ("buffers", [compact(_buffer(b, data.get(b.name, ""))) for b in program.buffers]),
        ("kernels", [_KernelWriter(k, program).text() for k in program.kernels]),
        ("steps", [compact(_step(s)) for s in program.steps])]
    if program.requires:
        tables.append(("requires", [compact([size_text(e.left), size_text(e.right)])
                                    for e in program.requires]))
    if program.assumes:
        tables.append(("assumes", [compact(asdict(r)) for r in program.assumes]))
    head = [("name", program.name), ("meta", meta_with_plugins(program)), ("weights", weights_name),
            ("threads", program.threads), ("arena", size_text(program.arena))]
    return [*(f'"{k}": {compact(v)}' for k, v in head),
            *(f'"{k}": {table(rows)}' for k, rows in tables)]


def _symbol(s: Symbol) -> dict[str, Any]:
    row = {"id": s.name, **symbol_bounds(s)}
    return row if s.extent is None else row | {"extent": size_text(s.extent)}


def _port(p: Port, donor: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "type": p.dtype.short,
                           "shape": [*map(size_text, p.shape)]}
    row |= {"below": [*map(size_text, p.below)]} if p.below else {}
    return row if donor is None else row | {"donates": donor}


def _buffer(b: Buffer, digest: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": b.name, "type": b.dtype.short, "size": size_text(b.size),
                           "space": b.space}
    if b.space in ("arena", "weight"):
        row["offset"] = size_text(b.offset)
    else:
        row["slot"] = b.slot
    more = {"label": b.label, "data": digest}
    return row | {k: v for k, v in more.items() if v}


def _step(s: Step) -> dict[str, Any]:
    row: dict[str, Any]
    more: dict[str, Any] = {"label": s.label}
    match s:
        case Run():
            row = {"do": "run", "kernel": s.kernel, "args": list(s.args)}
            more |= {"where": s.where, "flops": size_text(s.flops), "barrier": s.barrier,
                     "choice": s.choice and asdict(s.choice)}
        case Bind():
            row = {"do": "bind", "size": _symbol(s.size), "buffer": s.buffer,
                   "index": size_text(s.index), "most": size_text(s.most)}
        case Branch():
            row = {"do": "branch", "pred": s.pred, "then": [*map(_step, s.then)],
                   "orelse": [*map(_step, s.orelse)]}
        case Repeat():
            row = {"do": "repeat", "pred": s.pred, "cond": [*map(_step, s.cond)],
                   "body": [*map(_step, s.body)]}
        case Times():
            row = {"do": "times", "counter": _symbol(s.counter), "extent": size_text(s.extent),
                   "body": [*map(_step, s.body)]}
    return row | {k: v for k, v in more.items() if v}


class _KernelWriter:
    """One kernel: its shared expressions first, then a line per statement."""

    def __init__(self, kernel: Kernel, program: Program) -> None:
        self.kernel = kernel
        dims = {s.name for s in (*program.dims, *program.sizes, *counters(program.steps))}
        self.symbols = [s for s in kernel_symbols(kernel) if s.name not in dims]
        self.rows: dict[Expr, list[Any]] = {}  # how an expression is written where it is used
        self.shared: list[str] = []
        depths: dict[Expr, int] = {}
        for e, count in use_counts([e for s in statements(kernel.body) for e in values(s)]).items():
            # operands come before the expressions that use them
            parts = operands(e)
            row = _expr(e, [self.rows[x] for x in parts])
            depths[e] = 1 + max((depths[x] for x in parts), default=0)
            if parts and (count > 1 or depths[e] > DEEPEST):
                self.shared.append(compact(row))
                row, depths[e] = ["ref", len(self.shared) - 1], 0
            self.rows[e] = row

    def text(self) -> str:
        k = self.kernel
        params = [{"id": p.name, "type": p.dtype.short} | ({} if p.const else {"writes": True})
                  | ({"packed": True} if p.packed else {}) for p in k.params]
        head = f'{{"id": {compact(k.name)}, "params": {compact(params)}'
        if k.serial:
            head += ', "serial": true'
        if self.symbols:
            rows = [compact(_symbol(s)) for s in self.symbols]
            head += f',\n  "symbols": {table(rows, "   ")}'
        if self.shared:
            head += f',\n  "shared": {table(self.shared, "   ")}'
        return f'{head},\n  "body": {self.body(k.body, "   ")}}}'

    def body(self, body: Iterable[Stmt], indent: str) -> str:
        return table([self.stmt(s, indent) for s in body], indent)

    def stmt(self, s: Stmt, indent: str) -> str:
        match s:
            case For():
                row: dict[str, Any] = {"do": "for", "iter": s.iter.name,
                                       "extent": size_text(s.extent)}
                row |= {"mode": s.mode} if s.mode != "serial" else {}
                row |= {"reduces": [list(r) for r in s.reduces]} if s.reduces else {}
                return self.nested(row, {"body": s.body}, indent)
            case Let():
                return compact({"do": "var" if s.mutable else "let", "name": s.name,
                                "value": self.rows[s.value]})
            case Accumulate():
                return compact({"do": "accumulate", "name": s.name, "fn": s.fn,
                                "value": self.rows[s.value]})
            case Store():
                return compact({"do": "store", "buffer": s.buffer, "index": size_text(s.index),
                                "value": self.rows[s.value]})
            case If():
                bodies = {"then": s.then} | ({"orelse": s.orelse} if s.orelse else {})
                return self.nested({"do": "if", "cond": self.rows[s.cond]}, bodies, indent)
            case Template():
                return self.template(s, indent)

    def nested(self, row: dict[str, Any], bodies: dict[str, tuple[Stmt, ...]], indent: str) -> str:
        """A row with statements inside: its own keys on the first line."""
        inner = [f'"{k}": {self.body(b, indent + " ")}' for k, b in bodies.items()]
        return ", ".join([compact(row)[:-1], *inner]) + "}"

    def template(self, t: Template, indent: str) -> str:
        macros = [{"name": k, **_macro(v)} for k, v in t.macros]
        pointers = [{"name": k, "buffer": b, "offset": size_text(d)} for k, b, d in t.pointers]
        row = compact({"do": "template", "kernel": t.kernel, "macros": macros,
                       "pointers": pointers, "reads": list(t.reads), "writes": list(t.writes)})
        hooks = table([self.hook(h, indent + " ") for h in t.hooks], indent + " ")
        return f'{row[:-1]}, "hooks": {hooks}}}' if t.hooks else row

    def hook(self, h: Hook, indent: str) -> str:
        row: dict[str, Any] = {"name": h.name, "indices": [s.name for s in h.indices]}
        if h.dtype is not dtypes.float32:
            row["acc"] = h.dtype.short
        return self.nested(row, {"body": h.body}, indent)


def _expr(e: Expr, parts: list[list[Any]]) -> list[Any]:
    """The row of an expression, from the rows of its operands."""
    match e:
        case Const(value, dtype):
            return ["const", dtype.short, number(value)]
        case Name(name, dtype):
            return ["name", dtype.short, name]
        case Index(value, dtype):
            return ["index", dtype.short, size_text(value)]
        case Load(buffer, index, dtype):
            return ["load", dtype.short, buffer, size_text(index)]
        case Apply(fn, _, dtype):
            return [fn, dtype.short, *parts]


def _macro(value: MacroValue) -> dict[str, Any]:
    match value:
        case bool():
            return {"flag": value}
        case float():
            return {"number": value}
        case str():
            return {"word": value}
        case DType():
            return {"type": value.short}
        case _:
            return {"size": size_text(value)}
