"""Markdown tables whose columns also line up as plain text, and the numbers in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

GAP = "–"


def number(x: float | None, digits: int = 3) -> str:
    """`digits` significant ones, and all before the point; an exponent where there are too many."""
    if x is None:
        return GAP
    if not math.isfinite(x):
        return str(x)
    if x == 0:
        return "0"
    power = math.floor(math.log10(abs(x)))
    if not -6 < power < 6:
        return f"{x:.{digits - 1}e}"
    return f"{x:.{max(digits - 1 - power, 0)}f}"


def error(x: float | None) -> str:
    """A relative error: two digits and an exponent."""
    return GAP if x is None else f"{x:.1e}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The table; columns of numbers are flush right."""
    cells = [[c.replace("|", "\\|").replace("\n", " ") for c in row] for row in (head, *rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(head))]
    right = [all(_numeric(row[i]) for row in cells[1:]) and len(cells) > 1
             for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(c.rjust(w) if r else c.ljust(w)
                                 for c, w, r in zip(row, widths, right, strict=True)) + " |"
    rule = "|" + "|".join("-" * (w + 1) + (":" if r else "-")
                          for w, r in zip(widths, right, strict=True)) + "|"
    return "\n".join([line(cells[0]), rule, *map(line, cells[1:])]) + "\n"


def read(text: str) -> list[dict[str, str]]:
    """The rows of the first table of `text`, each {column: cell}."""
    lines = text[text.index("\n|"):].lstrip("\n").split("\n\n")[0].splitlines()
    head, _, *body = [[c.strip() for c in line.strip("|").split(" | ")] for line in lines]
    return [dict(zip(head, row, strict=True)) for row in body]


def _numeric(cell: str) -> bool:
    return cell[:1].isdigit() or cell in (GAP, "", "nan") or cell[:2].lstrip("-")[:1].isdigit()
