"""What `tune` measured, as findings: which choices of a file are still the best."""

from __future__ import annotations

from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.tune.search import TuneReport, tune_lines


def tune_outcome(report: TuneReport, source: str) -> Outcome:
    """A finding for each site: an error where the choice of a file is no longer the best."""
    found = [Finding("tune/stale" if t.refuted else "tune/best", t.site,
                     "error" if t.refuted else "ok",
                     f"{t.usual}: {t.usual_us:g} µs, {t.best}: {t.us:g} µs", "", source)
             for t in report.sites]
    lines = tune_lines(report)
    return outcome("tune", source, "; ".join(lines), found, lines)
