"""Times models while other processes use the same processors: the median and the 90th percentile.

A competitor computes without a pause. It may use the processors that the contestants are pinned to,
and only those. As root, contestants and competitors are preferred to all other sessions of the
machine, so that what else runs there disturbs little.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import building, prepare, tables, work, zoo
from benchmarks.contest import Contestant, started, turn
from benchmarks.peers import PEERS
from benchmarks.stats import OURS
from benchmarks.work import Journal, Row

MODELS = ("resnet18", "mobilenet_v2", "vit_small", "bert_base_128", "gpt2_64", "yolo_tiny",
          "unet_small", "lstm", "mlp_b64", "whisper_tiny_enc")
PREFERRED = "-19"  # of an automatic group of processes, as a nice value


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)
    parser.set_defaults(models=list(MODELS), contestants=[OURS, "onnxruntime", "openvino"],
                        threads=[2], seconds=0.5, rounds=4)
    parser.add_argument("--busy", default=[0, 1, 2], metavar="NUMBERS",
                        type=lambda text: [int(n) for n in text.split(",")],
                        help="how many competitors there are (0,1,2)")


def main(options: argparse.Namespace) -> int:
    names = zoo.chosen(options.contestants, PEERS)
    journal = Journal(work.results("load.jsonl"), lambda row: (row["model"], row["threads"]))
    for model in () if options.report_only else options.models:
        for threads in options.threads:
            if not options.redo and zoo.covered(journal.rows().get((model, threads)), names):
                continue
            if prepare.ensure(model):
                journal.add(measured(model, names, threads, options))
                print(line(journal.rows()[model, threads]), flush=True)
    rows = [r for k, r in journal.rows().items()
            if k[0] in options.models and k[1] in options.threads]
    text = report(rows, options.command_line)
    work.results("load.md").write_text(text)
    print("\n" + text)
    return sum("error" in row["contestants"].get(OURS, {}) for row in rows)


def measured(model: str, names: list[str], threads: int, options: argparse.Namespace) -> Row:
    """A row with milliseconds: contestant → number of competitors → median, 90th percentile."""
    rows: dict[str, Row] = {n: building.built("peers", model, n, threads) for n in names}
    with started("peers", model, [n for n in names if "error" not in rows[n]], threads) as live:
        for c in live:
            prefer(c.process.pid)
            rows[c.name] |= c.row
        for count in options.busy:
            with competitors(count, threads):
                rounds(live, options.rounds, options.seconds)
            for c in live:
                if c.alive and c.rounds:
                    rows[c.name][str(count)] = percentiles(c.rounds)
                    c.rounds = []
        for c in live:
            rows[c.name] |= c.row
    return {"model": model, "threads": threads, "busy": options.busy, "rounds": options.rounds,
            "seconds": options.seconds, **work.stamp(), "contestants": rows}


def rounds(live: list[Contestant], count: int, seconds: float) -> None:
    """Let the contestants take turns, back and forth."""
    for k in range(count):
        for c in live if k % 2 == 0 else live[::-1]:
            if c.alive:
                turn(c, seconds, urgent=False)


def percentiles(samples: list[list[float]]) -> list[float]:
    """The median and the 90th percentile of all samples, in milliseconds."""
    return [1e3 * float(x) for x in np.percentile([s for r in samples for s in r], [50, 90])]


@contextlib.contextmanager
def competitors(count: int, threads: int) -> Iterator[None]:
    """So many processes that compute, on the last `threads` processors."""
    live = [subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
            for _ in range(count)]
    try:
        for p in live:
            prefer(p.pid)
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(p.pid, set(sorted(os.sched_getaffinity(0))[-threads:]))
        yield
    finally:
        for p in live:
            p.kill()
            p.wait()


def prefer(pid: int) -> None:
    """Weigh the session of a process above others; without the right to, nothing happens."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(PREFERRED)


def line(row: Row) -> str:
    """A model in one line, for whoever watches."""
    parts = [f"{name} {' '.join(_cell(c, n) for n in row['busy'])}"
             for name, c in row["contestants"].items()]
    return f"{row['model']} at {row['threads']}: {', '.join(parts)}"


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: a table for each number of threads and of competitors."""
    if not rows:
        return "Nothing was timed.\n"
    names, first = list(dict.fromkeys(n for r in rows for n in r["contestants"])), rows[-1]
    out = ["# Time of one inference beside busy processes", "",
           f"{first['date']}, {first['cpu']}, {first['cores']} cores; float32; contestants in "
           f"turns, {first['rounds']} rounds of {first['seconds']} s; median / 90th percentile of "
           "all calls in milliseconds. A competitor is a process that computes without a pause on "
           "the processors of the contestants. The ratio is the least 90th percentile of a peer "
           "over graphtool's."
           + (f" Command: `{command}`." if command else ""), ""]
    for threads in sorted({r["threads"] for r in rows}):
        here = [r for r in rows if r["threads"] == threads]
        for n in sorted({n for r in here for n in r["busy"]}):
            body = [[r["model"], *(_cell(r["contestants"].get(name, {}), n) for name in names),
                     tables.number(ratio(r, n))] for r in here if n in r["busy"]]
            out += [f"## {threads} thread{'s' * (threads > 1)}, {n or 'no'} "
                    f"competitor{'s' * (n != 1)}", "",
                    tables.markdown(["model", *names, "ratio"], body), ""]
    return "\n".join([*out, *zoo.failures(rows)])


def ratio(row: Row, busy: int) -> float | None:
    """The best peer's 90th percentile over ours."""
    found = {name: c[str(busy)][1] for name, c in row["contestants"].items() if str(busy) in c}
    peers = [x for name, x in found.items() if name != OURS]
    return min(peers) / found[OURS] if peers and OURS in found else None


def _cell(c: Row, busy: int) -> str:
    found = c.get(str(busy))
    return tables.GAP if found is None else " / ".join(map(tables.number, found))
