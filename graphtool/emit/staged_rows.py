"""Text of loops whose elements of memory are converted by rows: what a strip reads is converted
before it, what it writes behind it, and the loop between has 32-bit numbers in arrays alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from graphtool import dtypes
from graphtool.emit.expr import ExprPrinter
from graphtool.emit.fields import WIDEST, Staged, Stages
from graphtool.emit.language import Language
from graphtool.emit.lines import Writer
from graphtool.loops.ir import Apply, Const, Expr, For, Load, Stmt, Store
from graphtool.loops.program import Param
from graphtool.symbolic import Symbol, coefficient, substitute


class Printer(Protocol):
    """What prints statements (see `Statements`)."""

    w: Writer
    p: ExprPrinter
    params: Mapping[str, Param]
    language: Language

    def expr(self, e: Expr) -> str:
        """The text of an expression."""

    def stmt(self, s: Stmt) -> None:
        """Write a statement."""

    def on_rows(self, rows: Sequence[Param]) -> Printer:
        """A printer for statements that use these rows as well."""


def write(first: Symbol, count: Symbol, stages: Stages, lo: str, hi: str, to: Printer) -> None:
    """Write the strips of a loop from `lo` to `hi`."""
    at, size = first.name, to.language.size
    with to.w.block(f"for ({size} {at} = {lo}; {at} < {hi}; {at} += {WIDEST}) {{"):
        to.w.line(f"const {size} {count.name} = gt_min_i64({WIDEST}, {hi} - {at});")
        write_strip(stages, WIDEST, count.name, to)


def write_strip(stages: Stages, most: int, count: str, to: Printer) -> None:
    """Write a loop between the conversions of its rows, of `count` elements, `most` at most."""
    if line := _conversion(stages, count, to):
        to.w.line(line)
        return
    rows = [*stages.reads, *stages.writes]
    for words in (dtypes.int32, dtypes.float32):
        if named := [f"{r.name}[{most}]" for r in rows if r.words is words]:
            to.w.line(f"{to.language.type(words)} {', '.join(named)};")
    inner = to.on_rows([Param(r.name, r.words, False) for r in rows])
    for r in stages.reads:
        to.w.line(f"gt_row_of_{r.kind.short}({r.name}, {_place(r, to)}, {count});")
    for s in stages.body:
        inner.stmt(s)
    for r in stages.writes:
        to.w.line(_written(r, r.name, count, to))


def _conversion(stages: Stages, count: str, to: Printer) -> str:
    """The line for a loop that only rounds adjacent floats, or scales sums and rounds them; "" for
    any other."""
    match stages.reads, stages.writes, stages.body:
        case [], [Staged(how="round") as r], (For(it, _, _, (Store(_, _, Apply("mul", (
                Apply("cast", (Apply("add", (Load(dtype=dtypes.int32) as a, Load() as b)),),
                      dtypes.float32), Load() as scale))),)),) if (
                to.language.scales_rows and all(_adjacent(x, it) for x in (a, b, scale))):
            rows = ", ".join(_row(x, it, to) for x in (a, b, scale))
            return _written(r, rows, count, to, "gt_scaled")
        case [], [r], (For(it, _, _, (Store(_, _, Load(buffer, _, dtypes.float32) as x),)),) if (
                buffer in to.params and _adjacent(x, it)):
            return _written(r, _row(x, it, to), count, to)
    return ""


def _adjacent(x: Load, it: Symbol) -> bool:
    """Whether the elements that a loop reads are neighbours."""
    return coefficient(x.index, it.name) == 1


def _row(x: Load, it: Symbol, to: Printer) -> str:
    """Where the neighbours that a loop reads begin."""
    start = substitute(x.index, {it.name: 0})
    return x.buffer if start == 0 else f"{x.buffer} + {to.p.index(start, 12)}"


def _written(r: Staged, row: str, count: str, to: Printer, function: str = "") -> str:
    """The line that writes the words of a row to memory, as `function` makes them of `row`."""
    args = [_place(r, to), row, count]
    if r.how == "round":
        args.append(str(int(r.zero.value)) if isinstance(r.zero, Const)
                    else f"(int32_t){to.expr(r.zero)}")
    return f"{function or f'gt_row_{r.how}'}_{r.kind.short}({', '.join(args)});"


def _place(r: Staged, to: Printer) -> str:
    """Where the elements of a row are in memory."""
    return f"{r.buffer} + {to.p.index(r.start, 13)}"
