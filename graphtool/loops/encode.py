"""Writes a Program as the lines of its JSON text: keys in a fixed order, so that equal programs
give equal text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from graphtool.dtypes import DType
from graphtool.io.files import compact
from graphtool.io.manifest_rows import Choice
from graphtool.io.values import number, size_text, symbol_bounds, table
from graphtool.loops.ir import Apply, Expr, Hook, MacroValue, Stmt
from graphtool.loops.program import Buffer, Kernel, Port, Program, counters
from graphtool.loops.records import LEAF_KINDS, LEAVES, WRITING, FieldKind
from graphtool.loops.requires import meta_with_plugins
from graphtool.loops.walk import kernel_symbols, operands, statements, use_counts, values
from graphtool.symbolic import Dim, Symbol

BODIES = ("body", "then", "orelse", "hooks")  # the keys with statements or hooks
_WORDS = {leaf: word for word, leaf in LEAVES.items()}
DEEPEST = 100  # a row nested deeper is split, because readers of JSON limit the depth


def lines(program: Program, weights_name: str) -> list[str]:
    """One string per key of the file, after format and version."""
    data, donors, rows = dict(program.weights), dict(program.donations), _Writer()
    tables: list[tuple[str, list[str]]] = [
        ("dims", [compact(rows.declared(s)) for s in program.dims]),
        ("inputs", [compact(rows.port(p, None)) for p in program.inputs]),
        ("outputs", [compact(rows.port(p, donors.get(i))) for i, p in enumerate(program.outputs)]),
        ("buffers", [compact(rows.buffer(b, data.get(b.name, ""))) for b in program.buffers]),
        ("kernels", [_KernelWriter(k, program).text() for k in program.kernels]),
        ("steps", [compact(rows.row(s)) for s in program.steps])]
    if program.requires:
        tables.append(("requires", [compact([size_text(e.left), size_text(e.right)])
                                    for e in program.requires]))
    if program.assumes:
        tables.append(("assumes", [compact(asdict(r)) for r in program.assumes]))
    head = [("name", program.name), ("meta", meta_with_plugins(program)), ("weights", weights_name),
            ("threads", program.threads), ("arena", size_text(program.arena))]
    return [*(f'"{k}": {compact(v)}' for k, v in head),
            *(f'"{k}": {table(texts)}' for k, texts in tables)]


class _Writer:
    """Writes the rows of a program; a method for each kind of values."""

    def row(self, x: Any) -> dict[str, Any]:
        """The row of a dataclass, without keys that have their default."""
        form, columns = next(f for f in WRITING[type(x)]
                             if all(getattr(x, k) == v for k, v in f[0].fixed.items()))
        row = {"do": form.tag} if form.tag else {}
        for c in columns:
            value = getattr(x, c.field)
            if c.written or value != c.default:
                row[c.key] = self.value(c.kind, value)
        return row

    def value(self, kind: FieldKind, x: Any) -> Any:
        """A value of this kind, as JSON has it."""
        if not kind.method:
            return x
        write = getattr(self, kind.method)
        return [*map(write, x)] if kind.many else write(x)

    def port(self, p: Port, donor: int | None) -> dict[str, Any]:
        return self.row(p) | ({} if donor is None else {"donates": donor})

    def buffer(self, b: Buffer, digest: str) -> dict[str, Any]:
        row = self.row(b)
        del row["slot" if b.space in ("arena", "weight") else "offset"]
        return row | ({"data": digest} if digest else {})

    def declared(self, s: Symbol) -> dict[str, Any]:
        row = {"id": s.name, **symbol_bounds(s)}
        return row if s.extent is None else row | {"extent": size_text(s.extent)}

    def dim(self, d: Dim) -> int | str:
        return size_text(d)

    def dtype(self, t: DType) -> str:
        return t.short

    def named(self, s: Symbol) -> str:
        return s.name

    def word(self, x: str) -> str:
        return x

    def opposite(self, x: bool) -> bool:
        return not x

    def number(self, x: float) -> Any:
        return number(x)

    def choice(self, c: Choice) -> dict[str, Any]:
        return asdict(c)


class _KernelWriter(_Writer):
    """Writes one kernel: its shared expressions first, then a line for each statement."""

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
            row = self.expr_row(e)
            depths[e] = 1 + max((depths[x] for x in parts), default=0)
            if parts and (count > 1 or depths[e] > DEEPEST):
                self.shared.append(compact(row))
                row, depths[e] = ["ref", len(self.shared) - 1], 0
            self.rows[e] = row

    def expr_row(self, e: Expr) -> list[Any]:
        """The row of an expression whose operands have their rows."""
        if isinstance(e, Apply):
            return [e.fn, e.dtype.short, *map(self.expr, e.args)]
        word = _WORDS[type(e)]
        return [word, e.dtype.short, *(self.value(kind, getattr(e, name))
                                       for name, kind in LEAF_KINDS[word].items())]

    def expr(self, e: Expr) -> list[Any]:
        return self.rows[e]

    def text(self) -> str:
        k = self.kernel
        params = compact([*map(self.row, k.params)])
        head = f'{{"id": {compact(k.name)}, "params": {params}'
        if k.serial:
            head += ', "serial": true'
        if k.numbers:
            head += f', "numbers": {compact([*map(self.row, k.numbers)])}'
        if self.symbols:
            rows = [compact(self.declared(s)) for s in self.symbols]
            head += f',\n  "symbols": {table(rows, "   ")}'
        if self.shared:
            head += f',\n  "shared": {table(self.shared, "   ")}'
        return f'{head},\n  "body": {self.lines(k.body, "   ")}}}'

    def lines(self, body: Iterable[Stmt | Hook], indent: str) -> str:
        """Statements or hooks, each on a line: first its own keys, then the statements inside."""
        return table([self.line(s, indent + " ") for s in body], indent)

    def line(self, s: Stmt | Hook, indent: str) -> str:
        row = self.row(s)
        bodies = [f'"{k}": {self.lines(row.pop(k), indent)}' for k in BODIES if k in row]
        return ", ".join([compact(row)[:-1], *bodies]) + "}"

    def stmt(self, s: Stmt) -> Stmt:
        return s  # `line` writes it

    def hook(self, h: Hook) -> Hook:
        return h

    def pointer(self, p: tuple[str, str, Dim]) -> dict[str, Any]:
        name, buffer, offset = p
        return {"name": name, "buffer": buffer, "offset": size_text(offset)}

    def macro(self, m: tuple[str, MacroValue]) -> dict[str, Any]:
        name, value = m
        match value:
            case bool():
                return {"name": name, "flag": value}
            case float():
                return {"name": name, "number": value}
            case str():
                return {"name": name, "word": value}
            case DType():
                return {"name": name, "type": value.short}
        return {"name": name, "size": size_text(value)}
