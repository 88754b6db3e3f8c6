"""Numbers with units, and the tables of reports: a column is declared once, and printed as text,
Markdown or HTML.

What JSON has of a row are the fields of its struct, with their types and their description; the
schema is made from them. A column that shows a field names it, and says how.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from graphtool import escaping
from graphtool.symbolic import Dim, text

R = TypeVar("R")
FOLDED = 20  # a cell of text with fewer characters on a line is hard to read
Size = int | str
"""A number, or a polynomial over the open dims as text."""


@dataclass(frozen=True)
class Column(Generic[R]):
    """A column: its head, which states the unit, and the cell of a row: a function of it, or the
    name of a field, by default the head. On pages a `code` column is set as code."""

    head: str
    cell: Callable[[R], object] | str = ""
    code: bool = False


@dataclass(frozen=True)
class Table:
    """A head, the cells below it by row, and the numbers of the columns that pages set as code."""

    head: tuple[str, ...]
    rows: Sequence[Sequence[object]]
    code: frozenset[int] = frozenset()


def table(columns: Sequence[Column[R]], rows: Iterable[R]) -> Table:
    """The table of the rows."""
    cells = [c.cell if callable(c.cell) else attrgetter(c.cell or c.head) for c in columns]
    return Table(tuple(c.head for c in columns), [tuple(cell(r) for cell in cells) for r in rows],
                 frozenset(i for i, c in enumerate(columns) if c.code))


def optional(form: str, x: float | None) -> str:
    """A number in a format such as `.2f`; empty for None."""
    return "" if x is None else format(x, form)


def aligned(t: Table, left: bool = False) -> list[str]:
    """A line for the head and for each row, two spaces between columns; numbers to the right,
    unless all is `left`."""
    lines = [t.head, *([escaping.line(str(c)) for c in row] for row in t.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [str.rjust if not left and numeric(t, i) else str.ljust for i in range(len(t.head))]
    return ["  ".join(side(c, w) for c, w, side in zip(line, widths, sides, strict=True)).rstrip()
            for line in lines]


def stacked(t: Table, width: int) -> list[str]:
    """The lines of a table that is too wide for a terminal: the long columns of text stand below
    the others of their row, and so do the last ones that still find no place. None if it fits, or
    can be drawn with its long columns folded."""
    wide = [max(map(len, column)) for column in zip(
        t.head, *([escaping.line(str(c)) for c in row] for row in t.rows), strict=True)]
    if sum(wide) + 2 * len(wide) - 2 <= width:
        return []
    long = [i for i, w in enumerate(wide) if i and w > FOLDED and not numeric(t, i)]
    short = [i for i in range(len(wide)) if i not in long]
    room = width - sum(wide[i] + 2 for i in short)
    if long and room >= (FOLDED + 2) * len(long):
        return []
    while len(short) > 1 and sum(wide[i] + 2 for i in short) - 2 > width:
        long = sorted([short.pop(), *long])
    above = aligned(Table(tuple(t.head[i] for i in short), [
        [row[i] for i in short] for row in t.rows]))
    out = []
    for line, row in zip(above, (t.head, *t.rows), strict=True):
        cells = [escaping.line(str(row[i])) for i in long]
        out += [*(textwrap.wrap(line, width, subsequent_indent="  ") if len(line) > width
                  else [line]),
                *textwrap.wrap("  ".join(filter(None, cells)), width, initial_indent="    ",
                               subsequent_indent="    ", break_on_hyphens=False)]
    return out


def numeric(t: Table, column: int) -> bool:
    """Whether all cells of a column are numbers or begin with one, or are empty."""
    def number(cell: Any) -> bool:
        text = str(cell)
        return isinstance(cell, (int, float)) or not text or (
            text.strip().lstrip("+-")[:1].isdigit())
    return bool(t.rows) and all(number(row[column]) for row in t.rows)


def data(t: Table) -> dict[str, Any]:
    """The table as the page of `view` reads it."""
    return {"head": t.head, "rows": t.rows}


def markdown(t: Table) -> list[str]:
    """The lines of the table in Markdown of GitHub's kind."""
    blank = " " if any(t.head) else "  "
    head = "".join(f" {h} |" if h else f"{blank}|" for h in t.head)
    how = [escaping.markdown_code if i in t.code else escaping.markdown
           for i in range(len(t.head))]
    rows = (" | ".join(form(c) if (c := str(cell)) else "" for form, cell in zip(
        how, row, strict=True)) for row in t.rows)
    return [f"|{head}", f"|{'---|' * len(t.head)}", *(f"| {row} |" for row in rows)]


def html(t: Table) -> list[str]:
    """The lines of the table in HTML; a head without words is left out."""
    def cell(i: int, text: str) -> str:
        return f"<td>{f'<code>{text}</code>' if i in t.code else text}</td>"
    head = "".join(f'<th scope="col">{escaping.xml(h)}</th>' for h in t.head)
    rows = ("".join(cell(i, escaping.xml(str(c))) for i, c in enumerate(row)) for row in t.rows)
    return ["<table>", *([f"<thead><tr>{head}</tr></thead>"] if any(t.head) else []), "<tbody>",
            *(f"<tr>{row}</tr>" for row in rows), "</tbody></table>"]


def size(d: Dim) -> Size:
    """An int, or the text of a symbolic size."""
    return d if isinstance(d, int) else text(d)


def human(x: Size, unit: str = "") -> str:
    """A number with a unit, such as 1.23 M for 1,234,567; a symbolic size as its text."""
    if isinstance(x, str):
        return f"{x} {unit}".rstrip()
    step, prefixes = (1024.0, ("", "Ki", "Mi", "Gi", "Ti")) if unit == "B" else (
        1000.0, ("", "k", "M", "G", "T"))
    value, at = float(x), 0
    while abs(value) >= step and at < len(prefixes) - 1:
        value, at = value / step, at + 1
    number = f"{x}" if at == 0 else f"{value:.2f}"
    return f"{number} {prefixes[at]}{unit}".rstrip()
