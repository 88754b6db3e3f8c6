"""Random ONNX graphs: the evaluator, its passes and compiled C beside onnxruntime.

The same seed makes the same graph on every machine; `--seed S --count 1` shows one again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context

from benchmarks import work
from benchmarks.fuzz.evaluated import Finding
from benchmarks.suite.limits import WORKERS
from benchmarks.tables import markdown

CHUNK = 24


@dataclass
class Outcome:
    """What became of a chunk of seeds."""

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    compiled: int = 0
    programs: int = 0
    seconds: list[float] = field(default_factory=lambda: [0.0, 0.0])  # evaluated, compiled

    def add(self, other: Outcome) -> None:
        """Sum up."""
        for mine, others in ((self.statuses, other.statuses), (self.reasons, other.reasons),
                             (self.ops, other.ops)):
            mine.update(others)
        self.findings += other.findings
        self.compiled += other.compiled
        self.programs += other.programs
        self.seconds = [a + b for a, b in zip(self.seconds, other.seconds, strict=True)]


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many graphs")
    parser.add_argument("--minutes", type=float, help="stop after so long")
    parser.add_argument("--compile", type=int, default=0, metavar="N",
                        help="compile so many of each chunk of 24 as well")
    parser.add_argument("--only", nargs="*", default=[], metavar="OP", help="these operators only")
    parser.add_argument("-j", "--workers", type=int, default=WORKERS)


def main(options: argparse.Namespace) -> int:
    """Run, write fuzz.md, and count the causes that nothing explains."""
    start, total = time.perf_counter(), Outcome()
    for outcome in chunks(options, start):
        total.add(outcome)
        for f in outcome.findings:
            print(f"seed {f.seed}: {f.cause}: {f.text[:200]}", flush=True)
    text = report(total, time.perf_counter() - start, options.command_line)
    work.results("fuzz.md").write_text(text)
    print(text)
    return len({f.cause for f in total.findings})


def chunks(options: argparse.Namespace, start: float) -> Iterator[Outcome]:
    """The outcomes of all seeds, until the time is over."""
    last = options.seed + options.count
    spans = [(s, min(s + CHUNK, last)) for s in range(options.seed, last, CHUNK)]
    per = 2 * options.workers
    with ProcessPoolExecutor(options.workers, mp_context=get_context("fork")) as pool:
        for at in range(0, len(spans), per):
            if options.minutes and time.perf_counter() - start > 60 * options.minutes:
                return
            yield from pool.map(chunk, [(*span, options.compile, tuple(options.only))
                                        for span in spans[at:at + per]])


def chunk(job: tuple[int, int, int, tuple[str, ...]]) -> Outcome:
    """One worker's job: evaluate the seeds of a span, compile the first ones."""
    from benchmarks.fuzz import grow
    from benchmarks.fuzz.compiled import compiled
    from benchmarks.fuzz.evaluated import evaluated
    from benchmarks.fuzz.oracle import Oracle
    warnings.simplefilter("ignore")
    first, end, most, only = job
    out, oracle, start = Outcome(), Oracle(), time.perf_counter()
    try:
        found = [evaluated(grow.case(seed, only), oracle) for seed in range(first, end)]
    finally:
        oracle.close()
    out.seconds[0], start = time.perf_counter() - start, time.perf_counter()
    ready = [e for e in found if e.module is not None][:most]
    out.compiled, out.programs = len(ready), compiled(ready) if ready else 0
    out.seconds[1] = time.perf_counter() - start
    for e in found:
        out.statuses["wrong" if e.findings else e.status] += 1
        out.ops.update(e.case.ops)
        out.findings += e.findings
        if e.why and e.status != "wrong":
            out.reasons[f"{e.status}: {e.why}"] += 1
    return out


def report(total: Outcome, seconds: float, command: str) -> str:
    """Dated counts, rates, findings by cause, and why cases were left out."""
    stamp = work.stamp()
    tried = sum(total.statuses.values())
    groups: dict[str, list[Finding]] = defaultdict(list)
    for f in total.findings:
        groups[f.cause].append(f)
    rows = [[cause, str(len(fs)), str(fs[0].seed), fs[0].text[:160]]
            for cause, fs in sorted(groups.items(), key=lambda row: -len(row[1]))]
    rate = tried / total.seconds[0] if total.seconds[0] else 0.0
    built = total.compiled / total.seconds[1] if total.seconds[1] else 0.0
    parts = [
        "# Random graphs", "",
        f"`{command}`, {stamp['date']}, {stamp['cpu']}, {stamp['cores']} cores, {seconds:.0f} s.",
        "", f"{tried} graphs of {len(total.ops)} operators evaluated ({rate:.1f} a second and "
        f"worker); {total.compiled} compiled as {total.programs} programs ({built:.1f} graphs a "
        "second and worker).", "",
        markdown(["outcome", "graphs"], [[k, str(n)] for k, n in total.statuses.most_common()]),
        "## Not explained", "",
        markdown(["cause", "graphs", "a seed", "what"], rows) if rows else "Nothing.\n",
        "## Left out, and why", "",
        markdown(["reason", "graphs"], [[r[:200], str(n)]
                                        for r, n in total.reasons.most_common(60)])]
    return "\n".join(parts)
