"""Prints rows, tables, JSON and findings; with colour and progress bars only on a terminal.

All that a verb prints goes through here, and all that anybody else prints while it runs passes
`Escaped`: a name of a model, or a word of the command line, cannot act on the terminal or on a CI
service that reads the log. `--format` of the verbs that find something is read here too.
"""

from __future__ import annotations

import codecs
import io
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from graphtool import escaping
from graphtool.cli import waiting
from graphtool.errors import UsageError, one_of

if TYPE_CHECKING:
    from graphtool.report.findings import Outcome
    from graphtool.report.table import Table


class Escaped(io.TextIOBase):
    """A stream that passes texts on to another stream and removes sequences that would control a
    terminal or a CI service. Its bytes, `buffer`, are for files; they are handed on as they are."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.fresh = True  # nothing but spaces stands in the line so far
        self.held = ""  # the end of the written text, if it may begin a command

    def write(self, text: str) -> int:
        """Write the text, its lines as they are."""
        self.put(text, escaping.block)
        return len(text)

    def put(self, text: str, how: escaping.Escape) -> None:
        """Write the text, escaped by a function for texts of several lines."""
        waiting.clear()
        whole = self.held + text
        margin = "" if self.fresh else "-"  # a command stands at the start of a line
        begun = escaping.COMMAND_BEGUN.search(margin + whole)
        self.held = begun[0] if begun else ""
        whole = whole.removesuffix(self.held)
        self.stream.write(how(margin + whole + self.held)[len(margin):].removesuffix(self.held))
        last = whole.rpartition("\n")[2]
        self.fresh = not last.strip() and (self.fresh or "\n" in whole)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def flush(self) -> None:
        """Write what was held back, and flush the stream beneath."""
        if self.held:
            self.stream.write(self.held)
            self.fresh, self.held = False, ""
        self.stream.flush()

    def isatty(self) -> bool:
        """Whether the stream beneath is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The number of the stream beneath."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream beneath."""
        return self.stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What the stream beneath does with characters that it cannot encode."""
        return self.stream.errors


_PLAIN = {"∞": "inf", "→": "->", "×": "x", "·": "*", "µ": "u", "−": "-", "…": "...", "≤": "<=",
          "≥": ">=", "≠": "!=", "±": "+-", "²": "^2", "³": "^3", "√": "sqrt ", "Σ": "sum ",
          "–": "-", "—": "-", "é": "e", "ᵀ": "^T", "½": "1/2", "│": "|", "├": "|", "└": "`",
          "─": "-"}
"""What stands for a character that a stream cannot encode, such as one of a page of Windows."""


def _plain(error: UnicodeError) -> tuple[str, int]:
    """The handler of what cannot be encoded: a plain word, or the escape of JSON."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    part = error.object[error.start:error.end]
    from json import dumps
    return "".join(_PLAIN.get(c) or dumps(c)[1:-1] for c in part), error.end


codecs.register_error("graphtool", _plain)


def _lenient(stream: Any) -> Any:
    """The stream, which replaces what its encoding lacks; UTF-8 lacks nothing."""
    if "utf" not in (getattr(stream, "encoding", None) or "utf").lower() and hasattr(
            stream, "reconfigure"):
        stream.reconfigure(errors="graphtool")
    return stream


@contextmanager
def escaped() -> Iterator[None]:
    """A context in which all that is printed is escaped."""
    out, err = (Escaped(_lenient(stream or io.StringIO())) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
        for stream in (out, err):
            with suppress(OSError):
                stream.flush()


def _put(text: str, how: escaping.Escape) -> None:
    out = sys.stdout
    if isinstance(out, Escaped):
        out.put(text, how)
    else:
        out.write(how(text))


def note(*texts: str) -> None:
    """Print a message on stderr, each text as a line."""
    print("\n".join(map(escaping.line, texts)), file=sys.stderr)


def lines(texts: Iterable[str]) -> None:
    """Print lines of the result on stdout, each text as one."""
    for text in texts:
        sys.stdout.write(escaping.line(text) + "\n")


def document(text: str) -> None:
    """Print a text that has lines of its own, and names that are escaped as its language does. A
    file or a pipe gets UTF-8, as every artifact is."""
    if "utf" in (sys.stdout.encoding or "utf").lower() or sys.stdout.isatty():
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())


def commands(texts: Iterable[str]) -> None:
    """Print lines that may command a CI service; whoever made them has escaped the names."""
    for text in texts:
        _put(text + "\n", escaping.visible if text.startswith("::") else escaping.block)


def prose(text: str) -> None:
    """Print a part of a text that people read, and show it at once but for what may begin a
    command."""
    _put(text, escaping.prose)
    (sys.stdout.stream if isinstance(sys.stdout, Escaped) else sys.stdout).flush()


@contextmanager
def aside(out: Path | None) -> Iterator[None]:
    """A context in which reports go to stderr if `-o -` sends the result itself to stdout."""
    if str(out) not in ("-", "/dev/stdout"):
        yield
        return
    with redirect_stdout(sys.stderr):
        yield


def report(struct: Any, as_json: bool, rows: Iterable[str]) -> None:
    """Print a report as JSON or as lines."""
    if as_json:
        import msgspec
        document(msgspec.json.format(msgspec.json.encode(struct), indent=1).decode() + "\n")
    else:
        lines(rows)


def table(t: Table) -> None:
    """Print a table: drawn by rich on a terminal, aligned rows in a pipe."""
    from graphtool.report.table import aligned, numeric, stacked
    if not sys.stdout.isatty():
        lines(aligned(t))
        return
    pen = console(sys.stdout)
    if rows := stacked(t, pen.width):
        lines(rows)
        return
    from rich.table import Table as Drawn
    from rich.text import Text
    drawn = Drawn(box=None, pad_edge=False, header_style="bold")
    for i, head in enumerate(t.head):
        drawn.add_column(head, justify="right" if numeric(t, i) else "left", overflow="fold")
    for row in t.rows:
        drawn.add_row(*(Text(escaping.line(str(cell))) for cell in row))
    pen.print(drawn)


def progress(items: Iterator[Any], names: Sequence[str], limit: str = "") -> Iterator[Any]:
    """The items as they are made. On a terminal, a bar on stderr shows which one is being made,
    how many there are, the time so far, and its `limit`."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(),
               *([TextColumn(f"of {limit}")] if limit else []),
               TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task(_brief(names, 0), total=len(names))
        for done, item in enumerate(items, 1):
            yield item
            bar.update(task, advance=1, description=_brief(names, done))


def console(stream: TextIO) -> Any:
    """A console of rich, whose own styles pass: its texts have to be escaped."""
    from rich.console import Console
    waiting.clear()
    return Console(file=stream.stream if isinstance(stream, Escaped) else stream)


def _brief(names: Sequence[str], at: int) -> str:
    return escaping.line(names[at][:40]) if at < len(names) else ""


def chosen_format(format: str | None, json: bool) -> str:
    """The format that the options name. To be called before the work, which may take long.

    Raises UsageError GT3017 for an unknown format, and for --json beside another format."""
    from graphtool.report.findings import FORMATS
    if format is not None and format not in FORMATS:
        raise UsageError("GT3017", f"unknown format {format!r}", hint=one_of(format, FORMATS))
    if json and format not in (None, "json"):
        raise UsageError("GT3017", f"--json and --format {format} contradict each other",
                         hint="give one of them")
    return "json" if json else format or "text"


def tell(struct: Any, form: str, rows: Callable[[], Iterable[str]],
         outcome: Callable[[], Outcome]) -> None:
    """Print a report in the chosen form: its own JSON, its own text, or its findings."""
    if form in ("text", "json"):
        report(struct, form == "json", () if form == "json" else rows())
        return
    from graphtool.io.release import release
    from graphtool.report.findings import WRITERS
    commands(WRITERS[form](outcome(), release().version))


@contextmanager
def stage(verb: str, what: str, path: Path) -> Iterator[None]:
    """Print what a stage wrote, its bytes, and the time that it took."""
    start = time.perf_counter()
    yield
    spent = time.perf_counter() - start
    lines([f"{verb:<7} {what}: {path} ({_bytes(path)}, {spent:.2f} s)"])
    if path.is_dir():
        lines([f"        {p.name} ({_bytes(p)})" for p in sorted(path.iterdir())])


def _bytes(path: Path) -> str:
    from graphtool.report.table import human
    inside = path.rglob("*") if path.is_dir() else (path,)
    return human(sum(p.stat().st_size for p in inside if p.is_file()), "B")
