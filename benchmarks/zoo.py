"""Times the zoo on graphtool and on whatever else is installed; a table and a plot of it."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from benchmarks import building, plot, prepare, stats, tables, work
from benchmarks.contest import contest
from benchmarks.league import Peer
from benchmarks.peers import PEERS
from benchmarks.stats import OURS
from benchmarks.work import Journal, Row


def arguments(parser: argparse.ArgumentParser) -> None:
    of_contests(parser, PEERS)
    parser.add_argument("--name", default="zoo", help="of the journal and the tables (zoo)")
    parser.add_argument("--build-only", type=float, metavar="SECONDS",
                        help="do the build steps that are missing, each within so many seconds, "
                             "and time nothing: a later run loads what is there")


def of_contests(parser: argparse.ArgumentParser, peers: Mapping[str, Peer]) -> None:
    """The options of all commands that hold contests."""
    parser.add_argument("-c", "--contestants", type=lambda text: text.split(","),
                        help=f"of {','.join(peers)}; unless given, those that are installed")
    parser.add_argument("-t", "--threads", default=[1, 2],
                        type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each round")
    parser.add_argument("--redo", action="store_true", help="time again what is in the journal")
    parser.add_argument("--report-only", action="store_true", help="time nothing")


def main(options: argparse.Namespace) -> int:
    if options.build_only:
        return build_only(options)
    name = options.name
    rows = timed(options, name, PEERS, "peers", prepare.ensure)
    text = report(rows, options.command_line, options.models)
    work.results(f"{name}.md").write_text(text)
    work.results(f"{name}.svg").write_text(figure(text))
    print("\n" + text)
    print(f"{work.results(name + '.md')} and {name}.svg written")
    return failed(rows, options.models)


def failed(rows: list[Row], models: Iterable[str]) -> int:
    """How many contests of ours failed, and how many models could not be prepared."""
    return len(untimed(rows, models)) + sum(
        "error" in row["contestants"].get(OURS, {}) for row in rows)


def build_only(options: argparse.Namespace) -> int:
    """How many builds fail of those that last."""
    names = [n for n in chosen(options.contestants, PEERS) if PEERS[n].lasting]
    failed = 0
    for model in filter(prepare.ensure, options.models):
        for name, threads in itertools.product(names, options.threads):
            row = building.built("peers", model, name, threads, options.build_only)
            failed += "error" in row
            print(f"{model} by {name} at {threads}: " + row.get(
                "error", f"{row.get('build_cpu_s', 0.0):.1f} s of processors"), flush=True)
    return failed


def timed(options: argparse.Namespace, name: str, peers: Mapping[str, Peer], league: str,
          ensure: Callable[[str], bool]) -> list[Row]:
    """Times what the journal NAME.jsonl lacks of the models that can be had, between the peers of
    the module `league`; gives the rows that were asked for."""
    names = chosen(options.contestants, peers)
    journal = Journal(work.results(f"{name}.jsonl"), lambda row: (row["model"], row["threads"]))
    for model in () if options.report_only else options.models:
        missing = [t for t in options.threads if options.redo
                   or not covered(journal.rows().get((model, t)), names)]
        if not missing or not ensure(model):
            continue
        for threads in missing:
            row = contest(model, names, threads, options.rounds, options.seconds, league)
            journal.add(row)
            print(line(row), flush=True)
    return [journal.rows()[k] for k in ((m, t) for m in options.models for t in options.threads)
            if k in journal.rows()]


def chosen(names: list[str] | None, peers: Mapping[str, Peer]) -> list[str]:
    """The contestants. Raises SystemExit for unknown or missing ones."""
    for name in names or ():
        if name not in peers:
            raise SystemExit(f"there is no contestant {name!r}, but {', '.join(peers)}")
        if not peers[name].installed:
            raise SystemExit(f"{name} needs {', '.join(peers[name].needs)}, which is missing")
    return names or [n for n, p in peers.items() if p.installed]


def covered(row: Row | None, names: Iterable[str]) -> bool:
    """Whether one run has all of them: figures of different runs are not compared."""
    return row is not None and set(names) <= set(row["contestants"])


def medians(row: Row) -> dict[str, float]:
    return {name: c["median"] for name, c in row["contestants"].items() if "median" in c}


def line(row: Row) -> str:
    """A contest in one line, for whoever watches."""
    parts = [f"{n} {tables.number(c['median'])} ms" if "median" in c else
             f"{n} FAILED ({c.get('error', '')[:60]})" for n, c in row["contestants"].items()]
    ratio = stats.ratio(medians(row))
    tail = f"; {ratio:.2f} times the best peer's speed" if ratio else ""
    return f"{row['model']} at {row['threads']}: {', '.join(parts)}{tail}"


def report(rows: list[Row], command: str = "", models: Iterable[str] = ()) -> str:
    """Markdown: times and ratios for each number of threads, then errors and memory."""
    if not rows:
        return "Nothing was timed.\n"
    names = list(dict.fromkeys(n for row in rows for n in row["contestants"]))
    first = rows[-1]
    out = ["# Time of one inference beside other runtimes", "",
           f"{first['date']}, {first['cpu']}, {first['cores']} cores; float32; contestants in "
           f"turns, {first['rounds']} rounds of {first['seconds']} s, medians of all calls; "
           "the ratio is the best peer's time over graphtool's, the spread how far apart the "
           "medians of the rounds lie at most."
           + (f" Command: `{command}`." if command else ""), "", *standing(rows, names)]
    out += ["## Largest error against float64, over the largest output", "",
            facts(rows, names, "error64", tables.error),
            "## Peak resident memory of the process, MB", "",
            facts(rows, names, "peak_mb", lambda x: tables.number(x, 4)),
            "## Of that private after two runs, MB: what is not mapped from a file", "",
            facts(rows, names, "private_mb", lambda x: tables.number(x, 4)),
            *failures(rows, models)]
    return "\n".join(out)


def standing(rows: list[Row], names: list[str]) -> list[str]:
    """Times and ratios for each number of threads."""
    out = []
    for threads in sorted({row["threads"] for row in rows}):
        here = [row for row in rows if row["threads"] == threads]
        out += [f"## {threads} thread{'s' if threads > 1 else ''}, milliseconds", "",
                _times(here, names), _mean(here), ""]
    return out


def failures(rows: list[Row], models: Iterable[str] = ()) -> list[str]:
    """What failed: contestants, and those of the models that could not be prepared."""
    told = [f"* {model}: not timed, because it could not be prepared"
            for model in untimed(rows, models)]
    told += [f"* {row['model']} at {row['threads']}: {name}: {c['error']}" for row in rows
             for name, c in row["contestants"].items() if "error" in c]
    return ["## Failures", "", *told, ""] if told else []


def untimed(rows: list[Row], models: Iterable[str]) -> list[str]:
    """The models without a row."""
    timed = {row["model"] for row in rows}
    return [model for model in models if model not in timed]


def _times(rows: list[Row], names: list[str]) -> str:
    body = []
    for row in rows:
        times = medians(row)
        peer, ratio = stats.best_peer(times), stats.ratio(times)
        spread = max((row["contestants"][n]["spread"] for n in times), default=0.0)
        body.append([row["model"], *(tables.number(times.get(n)) for n in names),
                     peer[0] if peer else tables.GAP,
                     tables.number(ratio) if ratio else tables.GAP, f"{100 * spread:.0f} %"])
    return tables.markdown(["model", *names, "best peer", "ratio", "spread"], body)


def _mean(rows: list[Row]) -> str:
    ratios = [r for r in (stats.ratio(medians(row)) for row in rows) if r]
    if not ratios:
        return ""
    return (f"Geometric mean of the ratio over {len(ratios)} models: "
            f"{stats.geometric_mean(ratios):.2f}; least {min(ratios):.2f}.")


def facts(rows: list[Row], names: list[str], key: str, show: Any) -> str:
    """A table of one fact, the largest over the numbers of threads."""
    models = list(dict.fromkeys(row["model"] for row in rows))

    def largest(model: str, name: str) -> float | None:
        found = [row["contestants"][name][key] for row in rows
                 if row["model"] == model and key in row["contestants"].get(name, {})]
        return max(found) if found else None
    return tables.markdown(["model", *names],
                           [[m, *(show(largest(m, n)) for n in names)] for m in models])


def figure(text: str) -> str:
    """SVG of the first table of a report: the times of all contestants over graphtool's."""
    rows = tables.read(text)
    names = list(rows[0])[1:list(rows[0]).index("best peer")]
    times = {row["model"]: {n: float(row[n]) for n in names if row[n] != tables.GAP}
             for row in rows}
    return plot.bars(f"Time of one inference over {OURS}'s, one thread (less is better)", times)
