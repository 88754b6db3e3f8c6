"""Reads the rows of a program file as a Program. It names the fault of a row; verify checks
soundness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.dtypes import DType, dtype
from graphtool.errors import InputError
from graphtool.escaping import line
from graphtool.io.manifest_rows import Choice
from graphtool.io.values import SPECIAL
from graphtool.loops.ir import Apply, Expr, MacroValue
from graphtool.loops.program import Kernel, Program
from graphtool.loops.records import (
    LEAF_KINDS,
    LEAVES,
    READING,
    DimText,
    FieldKind,
    MacroRow,
    PointerRow,
    ProgramSymbolRow,
)
from graphtool.loops.requires import satisfied
from graphtool.symbolic import Dim, Equation, Symbol, dim_of
from graphtool.symbolic.parse import parse as parse_dim


def program_of(file: Any, where: str) -> Program:
    """The program of a file. Raises InputError GT0363 to GT0366, naming the kernel, buffer or
    step at fault, and UnsupportedError GT0358 if a plug-in is not loaded."""
    meta, reader = satisfied(file.meta, where), _Reader({}, where)
    dims = tuple(reader.symbol(r) for r in file.dims)
    reader.symbols = {s.name: s for s in dims}
    steps = tuple(map(reader.row, file.steps))
    return Program(
        file.name, dims, tuple(map(reader.row, file.inputs)),
        tuple(map(reader.row, file.outputs)), tuple(map(reader.row, file.buffers)),
        tuple(map(reader.kernel, file.kernels)),
        steps,
        reader.dim(file.arena), file.threads,
        tuple((i, o.donates) for i, o in enumerate(file.outputs) if o.donates is not None),
        tuple((b.id, b.data) for b in file.buffers if b.data), meta,
        tuple(Equation(reader.dim(a), reader.dim(b)) for a, b in file.requires),
        tuple(file.assumes))


class _Reader:
    """Reads the rows of one scope: the program, or one kernel."""

    def __init__(self, symbols: Mapping[str, Symbol], where: str) -> None:
        self.symbols = dict(symbols)
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
            table = {n: dim_of(s) for n, s in self.symbols.items()}
            try:
                self.parsed[d] = parse_dim(d, table)
            except InputError as error:
                if not error.where:
                    error.within(self.where)
                raise
        return self.parsed[d]

    def symbol(self, row: ProgramSymbolRow) -> Symbol:
        extent = None if row.extent is None else self.dim(row.extent)
        if not 0 <= row.offset < row.step:
            raise self.fault("GT0366", f"{row.id} cannot have the step {row.step} and the offset "
                                       f"{row.offset}")
        return Symbol(row.id, row.min, row.max, extent, row.step, row.offset)

    def declare(self, rows: list[ProgramSymbolRow]) -> None:
        """The symbols of a kernel. An extent may use any other symbol, so each is read once
        those it uses are known."""
        waiting = {r.id: r for r in rows}
        if len(waiting) < len(rows) or waiting.keys() & self.symbols.keys():
            raise self.fault("GT0366", "a symbol is declared twice")
        while waiting:
            ready = [r for r in waiting.values() if not isinstance(r.extent, str)
                     or not _words(r.extent) & waiting.keys()]
            if not ready:
                raise self.fault("GT0366", f"the extent of {next(iter(waiting))} is circular")
            for r in ready:
                self.symbols[r.id] = self.symbol(waiting.pop(r.id))

    def named(self, name: str) -> Symbol:
        if name not in self.symbols:
            raise self.fault("GT0366", f"the symbol {name!r} is not declared")
        return self.symbols[name]

    # ---- rows ------------------------------------------------------------------------------

    def row(self, row: Any) -> Any:
        """The value of a row: its class, with a field of each column."""
        form, columns = READING[type(row)]
        known = {c.field: self.value(c.kind, getattr(row, c.key), c.field) for c in columns}
        return form.of(**known, **form.fixed)

    def value(self, kind: FieldKind, x: Any, name: str) -> Any:
        """A value of this kind from its JSON; `name` is the field's."""
        match kind.method:
            case "":
                return tuple(x) if kind.many else x
            case "word":
                return self.word(name, x, kind.words)
            case "declared":
                return self.declared(x, name)
        read = getattr(self, kind.method)
        return tuple(map(read, x)) if kind.many else read(x)

    stmt = hook = row

    def dtype(self, name: str) -> DType:
        return dtype(name)

    def opposite(self, x: bool) -> bool:
        return not x

    def choice(self, c: Choice | None) -> Choice | None:
        return c

    def declared(self, row: ProgramSymbolRow, kind: str) -> Symbol:
        if row.id in self.symbols:
            raise self.fault("GT0366", f"the {kind} {row.id} is declared twice")
        self.symbols[row.id] = self.symbol(row)
        self.parsed.clear()  # from here on the name stands for this symbol
        return self.symbols[row.id]

    def word(self, kind: str, word: str, allowed: tuple[str, ...]) -> str:
        if word not in allowed:
            raise self.fault("GT0363", f"unknown {kind} {word!r}, expected one of "
                                       f"{', '.join(allowed)}")
        return word

    def kernel(self, row: Any) -> Kernel:
        inner = _Reader(self.symbols, f"{self.where}\n{line(f'kernel {row.id}')}")
        inner.declare(row.symbols)
        for e in row.shared:
            inner.shared.append(inner.expr(e))
        kernel: Kernel = inner.row(row)
        return kernel

    def pointer(self, p: PointerRow) -> tuple[str, str, Dim]:
        return p.name, p.buffer, self.dim(p.offset)

    def macro(self, m: MacroRow) -> tuple[str, MacroValue]:
        values = (m.size, m.flag, m.number, m.type, m.word)
        if sum(v is not None for v in values) != 1:
            raise self.fault("GT0364", f"macro {m.name} needs exactly one value")
        if m.size is not None:
            return m.name, self.dim(m.size)
        if m.type is not None:
            return m.name, dtype(m.type)
        return m.name, next(v for v in (m.flag, m.number, m.word) if v is not None)

    # ---- expressions -----------------------------------------------------------------------

    def expr(self, row: Any) -> Expr:
        match row:
            case ["ref", int(n)] if 0 <= n < len(self.shared):
                return self.shared[n]
            case [str(word), str(t), *parts] if word in LEAVES:
                kinds = LEAF_KINDS[word]
                if len(parts) == len(kinds) and all(map(isinstance, parts,
                                                        (k.row for k in kinds.values()))):
                    known = {name: self.value(kind, x, name)
                             for (name, kind), x in zip(kinds.items(), parts, strict=True)}
                    leaf: Expr = LEAVES[word](**known, dtype=dtype(t))
                    return leaf
            case [str(fn), str(t), _, *_] if fn != "ref":
                return Apply(fn, tuple(map(self.expr, row[2:])), dtype(t))
        raise self.fault("GT0365", f"cannot read the expression {str(row)[:80]}")

    def number(self, value: Any) -> int | float | bool:
        if not isinstance(value, str):
            return value  # type: ignore[no-any-return]
        if value not in SPECIAL:
            raise self.fault("GT0365", f"{value!r} is not a number")
        return float(value)


def _words(source: str) -> set[str]:
    """All parts of a dimension's text that can be names of symbols."""
    for sign in "+-*/%(),":
        source = source.replace(sign, " ")
    return set(source.split())
