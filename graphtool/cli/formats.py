"""`--format` of the verbs that find something: which one was asked for, and printing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from graphtool.cli import terminal
from graphtool.errors import UsageError, one_of

if TYPE_CHECKING:
    from graphtool.report.findings import Outcome


def chosen(format: str | None, json: bool) -> str:
    """The format that the options name. To be called before the work, which may take long.

    Raises UsageError GT3017 for an unknown format, and for --json beside another one."""
    from graphtool.report.findings import FORMATS
    if format is not None and format not in FORMATS:
        raise UsageError("GT3017", f"unknown format {format!r}", hint=one_of(format, FORMATS))
    if json and format not in (None, "json"):
        raise UsageError("GT3017", f"--json and --format {format} contradict each other",
                         hint="give one of them")
    return "json" if json else format or "text"


def tell(struct: Any, form: str, rows: Callable[[], Iterable[str]],
         found: Callable[[], Outcome]) -> None:
    """Print a report in the chosen form: its own JSON, its own text, or its findings."""
    if form in ("text", "json"):
        terminal.report(struct, form == "json", () if form == "json" else rows())
        return
    from graphtool.io.release import release
    from graphtool.report.findings import WRITERS
    terminal.commands(WRITERS[form](found(), release().version))
