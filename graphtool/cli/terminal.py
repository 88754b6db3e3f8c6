"""Prints rows, tables and JSON; with colour and progress bars only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

Rows = Sequence[Sequence[Any]]


def note(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def lines(texts: Iterable[str]) -> None:
    """Print lines of the result on stdout."""
    for text in texts:
        sys.stdout.write(text + "\n")


@contextmanager
def aside(out: Path | None) -> Iterator[None]:
    """A context in which reports go to stderr if `-o -` sends the result itself to stdout."""
    if str(out) != "-":
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def report(struct: Any, as_json: bool, rows: Iterable[str]) -> None:
    """Print a report as JSON or as lines."""
    if as_json:
        import msgspec
        text = msgspec.json.format(msgspec.json.encode(struct), indent=1)
        lines([text.decode()])
    else:
        lines(rows)


def table(headers: Sequence[str], rows: Rows) -> None:
    """Print a table: drawn by rich on a terminal, aligned rows in a pipe."""
    if not sys.stdout.isatty():
        lines(columns(rows, headers))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for i, head in enumerate(headers):
        drawn.add_column(head, justify="right" if _numeric(rows, i) else "left")
    for row in rows:
        drawn.add_row(*(Text(str(cell)) for cell in row))
    Console().print(drawn)


def columns(rows: Rows, headers: Sequence[str] = ()) -> list[str]:
    """Aligned text, two spaces between columns; numbers to the right."""
    cells = [[str(c) for c in row] for row in rows]
    whole = [list(headers), *cells] if headers else cells
    if not whole:
        return []
    widths = [max(len(row[i]) for row in whole) for i in range(len(whole[0]))]
    right = [_numeric(rows, i) for i in range(len(widths))]
    return ["  ".join(c.rjust(w) if r else c.ljust(w)
                      for c, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in whole]


def progress(items: Iterator[Any], names: Sequence[str], limit: str = "") -> Iterator[Any]:
    """The items as they are made. On a terminal, a bar on stderr shows which one is being made,
    how many there are, the time so far, and its `limit`."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
               *([TextColumn(f"of {limit}")] if limit else []), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(_brief(names, 0), total=len(names))
        for done, item in enumerate(items, 1):
            yield item
            bar.update(task, advance=1, description=_brief(names, done))


def _brief(names: Sequence[str], at: int) -> str:
    return names[at][:40] if at < len(names) else ""


def _numeric(rows: Rows, column: int) -> bool:
    return all(isinstance(row[column], (int, float)) or _looks_numeric(str(row[column]))
               for row in rows) and bool(rows)


def _looks_numeric(text: str) -> bool:
    head = text.strip().lstrip("+-")[:1]
    return text == "" or head.isdigit()
