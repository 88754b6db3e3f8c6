"""Times single kernels over the shapes that the zoo uses, beside the runtimes that read ONNX."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks import prepare, single, stats, tables, work, zoo
from benchmarks.contest import contest
from benchmarks.peers import PEERS
from benchmarks.single import OPS, Single
from benchmarks.stats import OURS
from benchmarks.work import Journal, Row

RUNTIMES = (OURS, "onnxruntime", "openvino")


def arguments(parser: argparse.ArgumentParser) -> None:
    zoo.of_contests(parser, PEERS)
    parser.add_argument("--ops", default=list(OPS), type=lambda text: text.split(","),
                        help=f"ONNX operators, of {','.join(OPS)}")
    parser.add_argument("--most", type=int, default=60, metavar="N",
                        help="the N kernels that weigh most in the zoo (default 60)")


def main(options: argparse.Namespace) -> int:
    ready = [m for m in options.models if prepare.ensure(m)]
    chosen = single.collect(ready, options.ops)[:options.most]
    names = zoo.chosen(options.contestants or [n for n in RUNTIMES if PEERS[n].installed],
                       PEERS)
    journal = Journal(work.results("kernels.jsonl"), lambda row: (row["model"], row["threads"]))
    for one in () if options.report_only else chosen:
        for threads in options.threads:
            if options.redo or not zoo.covered(journal.rows().get((one.name, threads)), names):
                row = contest(one.name, names, threads, options.rounds, options.seconds)
                journal.add(row)
                print(f"{one.operands}: {zoo.line(row)}", flush=True)
    text = report(chosen, journal.rows(), options)
    work.results("kernels.md").write_text(text)
    print(f"\n{text}\n{work.results('kernels.md')} written")
    return 0


def report(chosen: list[Single], rows: dict[Any, Row], options: argparse.Namespace) -> str:
    """Markdown: a table for each number of threads, a mean for each operator."""
    timed = [(one, threads, rows[one.name, threads]) for one in chosen
             for threads in options.threads if (one.name, threads) in rows]
    if not timed:
        return "Nothing was timed.\n"
    stamp = timed[-1][2]
    out = ["# Single kernels over the shapes of the zoo", "",
           f"{stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores; float32; one ONNX node a "
           f"model, contestants in turns, {stamp['rounds']} rounds of {stamp['seconds']} s; `@` is "
           "a weight; the ratio is the best peer's time over graphtool's. Command: "
           f"`{options.command_line}`.", ""]
    for threads in options.threads:
        here = [(one, row) for one, t, row in timed if t == threads]
        out += [f"## {threads} thread{'s' if threads > 1 else ''}", "",
                tables.markdown(["op", "operands", "uses", "µs", "GFLOP/s", "best peer", "ratio"],
                                [_line(one, row) for one, row in here]), _means(here), ""]
    return "\n".join(out)


def _line(one: Single, row: Row) -> list[str]:
    times = zoo.medians(row)
    ours, peer, ratio = times.get(OURS), stats.best_peer(times), stats.ratio(times)
    return [one.op, one.operands, str(sum(one.uses.values())),
            tables.number(1e3 * ours if ours else None),
            tables.number(one.flops / ours / 1e6 if ours else None),
            peer[0] if peer else tables.GAP, tables.number(ratio)]


def _means(rows: list[tuple[Single, Row]]) -> str:
    by_op: dict[str, list[float]] = {}
    for one, row in rows:
        if ratio := stats.ratio(zoo.medians(row)):
            by_op.setdefault(one.op, []).append(ratio)
    return "Geometric means: " + ", ".join(
        f"{op} {stats.geometric_mean(r):.2f} (of {len(r)}, least {min(r):.2f})"
        for op, r in by_op.items()) + "."
