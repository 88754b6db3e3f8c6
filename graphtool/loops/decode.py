"""Reads the rows of a program file as a Program. It names the fault of a row; verify checks
soundness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.dtypes import dtype
from graphtool.errors import InputError
from graphtool.escaping import line
from graphtool.io.values import SPECIAL
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
    Param,
    Port,
    Program,
    Repeat,
    Run,
    Step,
    Times,
)
from graphtool.loops.records import (
    AccumulateRow,
    BindRow,
    BranchRow,
    BufferRow,
    DimText,
    ForRow,
    IfRow,
    KernelRow,
    LetRow,
    MacroRow,
    PortRow,
    ProgramFile,
    RepeatRow,
    RunRow,
    StepRow,
    StmtRow,
    StoreRow,
    SymbolRow,
    TemplateRow,
    TimesRow,
    VarRow,
)
from graphtool.loops.requires import satisfied
from graphtool.symbolic import Dim, Equation, Symbol, dim_of
from graphtool.symbolic.parse import parse as parse_dim

MODES = ("serial", "parallel", "simd", "parallel simd")
SPACES = ("input", "output", "weight", "arena", "check")


def program_of(file: ProgramFile, where: str) -> Program:
    """The program of a file. Raises InputError GT0363 to GT0366, naming the kernel, buffer or
    step at fault, and UnsupportedError GT0358 if a plug-in is not loaded."""
    meta, reader = satisfied(file.meta, where), _Reader({}, where)
    dims = tuple(reader.symbol(r) for r in file.dims)
    reader.named = {s.name: s for s in dims}
    steps = reader.steps(file.steps)
    return Program(
        file.name, dims, tuple(map(reader.port, file.inputs)),
        tuple(map(reader.port, file.outputs)), tuple(map(reader.buffer, file.buffers)),
        tuple(reader.kernel(k) for k in file.kernels),
        steps,
        reader.dim(file.arena), file.threads,
        tuple((i, o.donates) for i, o in enumerate(file.outputs) if o.donates is not None),
        tuple((b.id, b.data) for b in file.buffers if b.data), meta,
        tuple(Equation(reader.dim(a), reader.dim(b)) for a, b in file.requires),
        tuple(file.assumes))


class _Reader:
    """Reads the rows of one scope: the program, or one kernel."""

    def __init__(self, named: Mapping[str, Symbol], where: str) -> None:
        self.named = dict(named)
        self.where = where
        self.shared: list[Expr] = []
        self.parsed: dict[str, Dim] = {}

    def fault(self, code: str, message: str) -> InputError:
        return InputError(code, message, where=self.where.split("\n"))

    # ---- dims and symbols ------------------------------------------------------------------

    def dim(self, d: DimText) -> Dim:
        if isinstance(d, int):
            return d
        if d not in self.parsed:
            table = {n: dim_of(s) for n, s in self.named.items()}
            try:
                self.parsed[d] = parse_dim(d, table)
            except InputError as error:
                if not error.where:
                    error.within(self.where)
                raise
        return self.parsed[d]

    def symbol(self, row: SymbolRow) -> Symbol:
        extent = None if row.extent is None else self.dim(row.extent)
        if not 0 <= row.offset < row.step:
            raise self.fault("GT0366", f"{row.id} cannot have the step {row.step} and the offset "
                                       f"{row.offset}")
        return Symbol(row.id, row.min, row.max, extent, row.step, row.offset)

    def symbols(self, rows: list[SymbolRow]) -> None:
        """The symbols of a kernel. An extent may use any other symbol, so each is read once
        those it uses are known."""
        waiting = {r.id: r for r in rows}
        if len(waiting) < len(rows) or waiting.keys() & self.named.keys():
            raise self.fault("GT0366", "a symbol is declared twice")
        while waiting:
            ready = [r for r in waiting.values() if not isinstance(r.extent, str)
                     or not _words(r.extent) & waiting.keys()]
            if not ready:
                raise self.fault("GT0366", f"the extent of {next(iter(waiting))} is circular")
            for r in ready:
                self.named[r.id] = self.symbol(waiting.pop(r.id))

    def iterator(self, name: str) -> Symbol:
        if name not in self.named:
            raise self.fault("GT0366", f"the symbol {name!r} is not declared")
        return self.named[name]

    # ---- rows of the program ---------------------------------------------------------------

    def port(self, row: PortRow) -> Port:
        return Port(row.name, dtype(row.type), tuple(map(self.dim, row.shape)),
                    tuple(map(self.dim, row.below)))

    def buffer(self, row: BufferRow) -> Buffer:
        space = self.word("space", row.space, SPACES)
        return Buffer(row.id, dtype(row.type), self.dim(row.size), space,  # type: ignore[arg-type]
                      self.dim(row.offset), row.slot, row.label)

    def steps(self, rows: list[StepRow]) -> tuple[Step, ...]:
        return tuple(map(self.step, rows))

    def step(self, row: StepRow) -> Step:
        match row:
            case RunRow():
                return Run(row.kernel, tuple(row.args), row.label, row.where,
                           self.dim(row.flops), row.barrier, row.choice)
            case BranchRow():
                return Branch(row.pred, self.steps(row.then), self.steps(row.orelse), row.label)
            case RepeatRow():
                return Repeat(row.pred, self.steps(row.cond), self.steps(row.body), row.label)
            case BindRow():
                return Bind(self.declared(row.size, "size"), row.buffer, self.dim(row.index),
                            self.dim(row.most), row.label)
            case TimesRow():
                return Times(self.declared(row.counter, "counter"), self.dim(row.extent),
                             self.steps(row.body), row.label)

    def declared(self, row: SymbolRow, kind: str) -> Symbol:
        if row.id in self.named:
            raise self.fault("GT0366", f"the {kind} {row.id} is declared twice")
        self.named[row.id] = self.symbol(row)
        self.parsed.clear()  # from here on the name stands for this symbol
        return self.named[row.id]

    def word(self, kind: str, word: str, allowed: tuple[str, ...]) -> str:
        if word not in allowed:
            raise self.fault("GT0363", f"unknown {kind} {word!r}, expected one of "
                                       f"{', '.join(allowed)}")
        return word

    def kernel(self, row: KernelRow) -> Kernel:
        inner = _Reader(self.named, f"{self.where}\n{line(f'kernel {row.id}')}")
        inner.symbols(row.symbols)
        for e in row.shared:
            inner.shared.append(inner.expr(e))
        params = tuple(Param(p.id, dtype(p.type), not p.writes, p.packed) for p in row.params)
        return Kernel(row.id, params, inner.body(row.body), row.serial)

    # ---- statements and expressions --------------------------------------------------------

    def body(self, rows: list[StmtRow]) -> tuple[Stmt, ...]:
        return tuple(map(self.stmt, rows))

    def stmt(self, row: StmtRow) -> Stmt:
        match row:
            case ForRow():
                mode = self.word("mode", row.mode, MODES)
                return For(self.iterator(row.iter), self.dim(row.extent),
                           mode, self.body(row.body), tuple(row.reduces))  # type: ignore[arg-type]
            case LetRow():
                return Let(row.name, self.expr(row.value))
            case VarRow():
                return Let(row.name, self.expr(row.value), True)
            case AccumulateRow():
                return Accumulate(row.name, row.fn, self.expr(row.value))
            case StoreRow():
                return Store(row.buffer, self.dim(row.index), self.expr(row.value))
            case IfRow():
                return If(self.expr(row.cond), self.body(row.then), self.body(row.orelse))
            case TemplateRow():
                return self.template(row)

    def template(self, row: TemplateRow) -> Template:
        return Template(
            row.kernel, tuple((m.name, self.macro(m)) for m in row.macros),
            tuple((p.name, p.buffer, self.dim(p.offset)) for p in row.pointers),
            tuple(row.reads), tuple(row.writes),
            tuple(Hook(h.name, tuple(map(self.iterator, h.indices)), self.body(h.body),
                       dtype(h.acc))
                  for h in row.hooks))

    def macro(self, m: MacroRow) -> MacroValue:
        values = (m.size, m.flag, m.number, m.type, m.word)
        if sum(v is not None for v in values) != 1:
            raise self.fault("GT0364", f"macro {m.name} needs exactly one value")
        if m.size is not None:
            return self.dim(m.size)
        if m.type is not None:
            return dtype(m.type)
        return next(v for v in (m.flag, m.number, m.word) if v is not None)

    def expr(self, row: Any) -> Expr:
        match row:
            case ["ref", int(n)] if 0 <= n < len(self.shared):
                return self.shared[n]
            case ["const", str(t), value] if isinstance(value, (int, float, str)):
                return Const(self.number(value), dtype(t))
            case ["name", str(t), str(name)]:
                return Name(name, dtype(t))
            case ["index", str(t), int(d) | str(d)]:
                return Index(self.dim(d), dtype(t))
            case ["load", str(t), str(buffer), int(d) | str(d)]:
                return Load(buffer, self.dim(d), dtype(t))
            case [str(fn), str(t), _, *_] if fn not in _LEAVES:
                return Apply(fn, tuple(map(self.expr, row[2:])), dtype(t))
        raise self.fault("GT0365", f"cannot read the expression {str(row)[:80]}")

    def number(self, value: Any) -> int | float | bool:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        if value not in SPECIAL:
            raise self.fault("GT0365", f"{value!r} is not a number")
        return float(value)


_LEAVES = ("ref", "const", "name", "index", "load")


def _words(source: str) -> set[str]:
    """All parts of a dimension's text that can be names of symbols."""
    for sign in "+-*/%(),":
        source = source.replace(sign, " ")
    return set(source.split())
