"""Contests of narrow types beside graphtool in wider floats: times, errors, and what is gained."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping

from benchmarks import prepare, stats, tables, work, zoo
from benchmarks.league import Peer
from benchmarks.stats import BFLOAT, FLOAT, OURS
from benchmarks.work import Row


def run(options: argparse.Namespace, name: str, peers: Mapping[str, Peer], title: str,
        words: str) -> int:
    """Times the models between the peers of benchmarks/NAME.py, writes results/NAME.md, and says
    how many of ours failed. `words` tell what is compared."""
    rows = zoo.timed(options, name, peers, name, prepare.ensure)
    text = report(rows, title, words, options.command_line, options.models)
    path = work.results(f"{name}.md")
    path.write_text(text)
    print(f"\n{text}\n{path} written")
    return zoo.failed(rows, options.models)


def report(rows: list[Row], title: str, words: str, command: str = "",
           models: Iterable[str] = ()) -> str:
    """Markdown: times and ratios for each number of threads, then errors."""
    if not rows:
        return "Nothing was timed.\n"
    names, first = list(rows[0]["contestants"]), rows[-1]
    return "\n".join([
        f"# {title}", "",
        f"{first['date']}, {first['cpu']}, {first['cores']} cores; {words}; contestants in turns, "
        f"{first['rounds']} rounds of {first['seconds']} s, medians of all calls; the ratio is the "
        "best peer's time over graphtool's."
        + (f" Command: `{command}`." if command else ""), "", *zoo.standing(rows, names),
        "## Largest error against the float64 original, over the largest output", "",
        zoo.facts(rows, names, "error64", tables.error),
        *_faster(rows, FLOAT), *_faster(rows, BFLOAT), *zoo.failures(rows, models)])


def _faster(rows: list[Row], than: str) -> list[str]:
    times = [zoo.medians(row) for row in rows]
    gains = [t[than] / t[OURS] for t in times if than in t and OURS in t]
    return [f"Against {than}: {stats.geometric_mean(gains):.2f} times as fast in the geometric "
            f"mean, {min(gains):.2f} at least.", ""] if gains else []
