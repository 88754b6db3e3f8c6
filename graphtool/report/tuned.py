"""What `tune` measured, as findings: which choices of a file are still the best."""

from __future__ import annotations

from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.table import Column
from graphtool.tune.search import Tuned, TuneReport, tune_lines

SITES: tuple[Column[Tuned], ...] = (
    Column("×", "count"), Column("µs", lambda t: f"{t.us:.1f}"),
    Column("gain", lambda t: f"{t.usual_us / t.us:.2f}"), Column("best"),
    Column("without this", lambda t: t.usual if t.usual != t.best else "the same"),
    Column("site"))


def stale_line(t: Tuned) -> str:
    """By how much another kernel is better than the recorded one, with the bounds."""
    assert t.low is not None and t.high is not None
    return (f"{t.usual} takes {t.usual_us / t.us:.2f} times as long as {t.best} ({t.low:.2f} to "
            f"{t.high:.2f} with 95 % confidence)")


def tune_outcome(report: TuneReport, source: str) -> Outcome:
    """A finding for each site: an error where the choice of a file is no longer the best."""
    findings = [Finding("tune/stale" if t.refuted else "tune/best", t.site,
                        "error" if t.refuted else "ok",
                        stale_line(t) if t.refuted else f"{t.usual}: {t.usual_us:g} µs", "", source)
                for t in report.sites]
    lines = tune_lines(report)
    return outcome("tune", source, "; ".join(lines), findings, lines)
