"""Times builds with open sizes beside builds of the same model for one size, and beside runtimes
that take open sizes too, in turns."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from benchmarks import stats, tables, work, zoo
from benchmarks.models import OPEN
from benchmarks.open_cases import FIXED, PEERS, STEPS, ensure
from benchmarks.work import Row

GOAL = 1.1  # the most that an open build may take, in times of the fixed one's


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    names, rows = options.models, []
    asked = options.contestants
    for peers in (PEERS, STEPS):
        options.models = [f"{name}@{'x'.join(map(str, size))}" for name in names
                          for size in OPEN[name] if _trains(name) == (peers is STEPS)]
        options.contestants = asked if peers is PEERS else list(STEPS)
        rows += zoo.timed(options, "open", peers, "open_cases", ensure)
    text = report(rows, options.command_line)
    work.results("open.md").write_text(text)
    print(f"\n{text}\n{work.results('open.md')} written")
    return sum("error" in row["contestants"].get(stats.OURS, {}) for row in rows)


def _trains(name: str) -> bool:
    return name.startswith("train")


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: for each number of threads the time of each model at each size, open over fixed,
    and the best peer's over open."""
    if not rows:
        return "Nothing was timed.\n"
    last = rows[-1]
    out = ["# Time with open sizes beside fixed ones", "",
           f"{last['date']}, {last['cpu']}, {last['cores']} cores; one build with open sizes and "
           f"a build for each size, in turns, {last['rounds']} rounds of {last['seconds']} s, "
           f"medians of all calls in milliseconds; the goal is open/fixed ≤ {GOAL}. The runtimes "
           "beside have a model with open sizes too; the ratio is the best one's time over that "
           "of the open build." + (f" Command: `{command}`." if command else ""), ""]
    for threads in sorted({row["threads"] for row in rows}):
        for title, steps in (("", False), (", training steps", True)):
            here = [row for row in rows
                    if row["threads"] == threads and _trains(row["model"]) == steps]
            if here:
                out += [f"## {threads} thread{'s' if threads > 1 else ''}{title}", "",
                        _table(here), *_told(here), ""]
    runs = [row for row in rows if not _trains(row["model"])]
    if runs:
        out += ["## Largest error against float64, over the largest output", "",
                zoo.facts(runs, _names(runs), "error64", tables.error)]
    return "\n".join([*out, *zoo.failures(rows)])


def _names(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(n for row in rows for n in row["contestants"]))


def _slower(row: Row) -> float | None:
    """Open over fixed."""
    times = zoo.medians(row)
    return times[stats.OURS] / times[FIXED] if {stats.OURS, FIXED} <= times.keys() else None


def _faster(row: Row) -> float | None:
    """The best peer over open."""
    return stats.ratio({n: t for n, t in zoo.medians(row).items() if n != FIXED})


def _table(rows: list[Row]) -> str:
    beside = [n for n in _names(rows) if n not in STEPS]
    body = []
    for row in rows:
        times = zoo.medians(row)
        spread = max((row["contestants"][n]["spread"] for n in times), default=0.0)
        body.append([*row["model"].split("@"), *map(tables.number, (
            times.get(stats.OURS), times.get(FIXED), _slower(row), *map(times.get, beside),
            *((_faster(row),) if beside else ()))), f"{100 * spread:.0f} %"])
    return tables.markdown(["model", "size", "open", "fixed", "open/fixed", *beside,
                            *(("ratio",) if beside else ()), "spread"], body)


def _told(rows: list[Row]) -> Iterable[str]:
    """The means of both ratios."""
    if slower := [r for r in map(_slower, rows) if r]:
        yield (f"Geometric mean of open/fixed: {stats.geometric_mean(slower):.2f}; greatest "
               f"{max(slower):.2f}; above {GOAL}: {sum(r > GOAL for r in slower)} of "
               f"{len(slower)}.")
    if faster := [r for r in map(_faster, rows) if r]:
        yield (f"Geometric mean of the ratio: {stats.geometric_mean(faster):.2f}; least "
               f"{min(faster):.2f}.")
