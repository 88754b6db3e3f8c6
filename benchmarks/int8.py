"""Times quantised models beside the runtimes that take them, and beside their float32 originals.

The contestants of a contest are those of peers.py and `float32`: graphtool on the model that was
quantised.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from benchmarks import peers, prepare, stats, tables, work, zoo
from benchmarks.league import Case, Peer
from benchmarks.stats import OURS
from benchmarks.work import Row

FLOAT = "float32"
PEERS: dict[str, Peer] = {p.name: p for p in (
    peers.PEERS[OURS], replace(peers.PEERS[OURS], name=FLOAT), peers.PEERS["onnxruntime"],
    peers.PEERS["openvino"])}
facts = peers.facts


def case(model: str, peer: str, threads: int) -> Case:
    plain = model.partition(".")[0] if peer == FLOAT else model
    return Case(work.prepared(plain), threads, work.cache(peer, plain))


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)


def main(options: argparse.Namespace) -> int:
    rows = zoo.timed(options, "int8", PEERS, "int8", prepare.ensure)
    text = report(rows, options.command_line)
    work.results("int8.md").write_text(text)
    print(f"\n{text}\n{work.results('int8.md')} written")
    return sum("error" in row["contestants"].get(OURS, {}) for row in rows)


def report(rows: list[Row], command: str = "") -> str:
    """Markdown: times and ratios for each number of threads, then errors and memory."""
    if not rows:
        return "Nothing was timed.\n"
    names, first = list(rows[0]["contestants"]), rows[-1]
    out = ["# Time of one inference of quantised models", "",
           f"{first['date']}, {first['cpu']}, {first['cores']} cores; 8 bits, quantised by "
           f"onnxruntime's tools; `{FLOAT}` is graphtool on the model before; contestants in "
           f"turns, {first['rounds']} rounds of {first['seconds']} s, medians of all calls; the "
           "ratio is the best contestant's time over graphtool's."
           + (f" Command: `{command}`." if command else ""), "", *zoo.standing(rows, names),
           "## Largest error against the float64 original, over the largest output", "",
           zoo.facts(rows, names, "error64", tables.error), *_faster(rows),
           *zoo.failures(rows)]
    return "\n".join(out)


def _faster(rows: list[Row]) -> list[str]:
    times = [zoo.medians(row) for row in rows]
    gains = [t[FLOAT] / t[OURS] for t in times if FLOAT in t and OURS in t]
    return [f"Against float32: {stats.geometric_mean(gains):.2f} times as fast in the geometric "
            f"mean, {min(gains):.2f} at least.", ""] if gains else []
