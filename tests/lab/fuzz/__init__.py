"""Random graphs, modules and files, to find what no person thought of: docs/testing.md.

The same seed is the same graph on every machine. Results are added to a record, fuzz.json, from
which fuzz.md is made; `--resume` leaves out what stands there.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from benchmarks import work
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Lost, Run, Span, crew
from tests.lab.fuzz.record import Record, read
from tests.lab.fuzz.report import coverage, groups, report
from tests.lab.fuzz.seeds import CHUNK, seeds, spans
from tests.lab.suite.limits import WORKERS

SANITIZERS = ("address,undefined", "thread")
EACH = 60  # seconds between two writes of the record


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1000, help="how many seeds")
    parser.add_argument("--minutes", type=float, help="begin nothing after so long")
    parser.add_argument("--compile", type=float, default=0, metavar="SHARE",
                        help="compile this share of the graphs as well, 0 to 1")
    parser.add_argument("--only", nargs="*", default=[], metavar="OP", help="these operators only")
    parser.add_argument("--torch", action="store_true",
                        help="torch modules, captured by torch.export or torch.fx, beside torch")
    parser.add_argument("--grad", action="store_true",
                        help="with --torch: gradients too, all floats being float64")
    parser.add_argument("--edges", action="store_true",
                        help="torch modules of whole numbers at the limits of their types, views, "
                             "writes through views, casts and mixed types")
    parser.add_argument("--artifacts", action="store_true",
                        help="mutated graph, weights, listing, program, build, tuning and "
                             "checkpoint files: each is read, or refused by an error with a code; "
                             "with --sanitize: programs, and those accepted are compiled and run")
    parser.add_argument("--sanitize", metavar="LIST", choices=SANITIZERS,
                        help="compile the graphs under sanitizers and run them on buffers that "
                             f"stand apart: {' or '.join(SANITIZERS)}")
    parser.add_argument("--realistic", action="store_true",
                        help="with --sanitize: models of benchmarks/models in floats, 8 and 4 "
                             "bits, and training steps, in place of random graphs")
    parser.add_argument("--rerun", metavar="SEEDS",
                        help="these seeds again, compiled too: 7,30-39. What they show now "
                             "replaces in the record what they showed before; the models and "
                             "their inputs are kept in fuzz/ of the work folder")
    parser.add_argument("--resume", action="store_true",
                        help="leave out the seeds that the record has")
    parser.add_argument("--record", type=Path, metavar="FILE",
                        help="the record (default: results/fuzz.json in the work folder)")
    parser.add_argument("--join", type=Path, nargs="*", default=[], metavar="FILE",
                        help="add these records, of other seeds or modes, to the record")
    parser.add_argument("-j", "--workers", type=int, default=WORKERS)


def main(options: argparse.Namespace) -> int:
    """Run, add to the record, write the report, and count the causes that nothing explains."""
    path = options.record or work.results("fuzz.json")
    record, start, total = read(path), time.perf_counter(), Outcome()
    for other in options.join:
        record.join(read(other))
    mode, run, size = chosen(options)
    part, written = record.part(mode, options.workers), start
    for span, out in crew(until(wanted(options, record, mode, size), options.minutes), run,
                          options.workers):
        found = lost(out) if isinstance(out, Lost) else out
        for f in found.findings:
            print(f"seed {f.seed}: {f.cause}: {f.text[:200]}", flush=True)
        total.add(found)
        if options.rerun:
            record.settle(mode, span, found.findings)
        elif not options.only:
            record.add(part, span, found)
        if time.perf_counter() - written > EACH:
            written = time.perf_counter()
            record.write(path)
    record.parts = [p for p in record.parts if p.ranges]
    record.write(path)
    text = report(record, options.command_line)
    path.with_suffix(".md").write_text(text)
    print(summary(total, time.perf_counter() - start))
    print(f"{path.with_suffix('.md')} written")
    return len({f.cause for f in total.findings})


def chosen(options: argparse.Namespace) -> tuple[str, Run, int]:
    """The mode's name, what does a span of it, and the seeds of a span."""
    keep = options.rerun is not None
    share, only = 1.0 if keep else options.compile, tuple(options.only)
    if options.artifacts and options.sanitize:
        from tests.lab.fuzz import mutants
        return f"mutated programs, {options.sanitize}", partial(
            mutants.work, sanitizers=options.sanitize), mutants.SIZE
    if options.artifacts:
        from tests.lab.fuzz import artifacts
        return "mutated artifacts", partial(artifacts.work, only=only), artifacts.SIZE
    if options.sanitize and options.realistic:
        from tests.lab.fuzz import realistic
        options.seed, options.count = 0, len(realistic.MODELS)
        return f"realistic models, {options.sanitize}", partial(
            realistic.work_through, sanitizers=options.sanitize), 1
    if options.sanitize:
        from tests.lab.fuzz import sanitized
        return f"onnx, {options.sanitize}", partial(
            sanitized.work, sanitizers=options.sanitize, only=only), CHUNK
    if options.torch or options.grad or options.edges:
        from tests.lab.fuzz import module_checks
        name = "torch --grad" if options.grad else "edges" if options.edges else "torch"
        return name, partial(module_checks.work, share=share, only=only, grad=options.grad,
                             keep=keep, edges=options.edges), CHUNK
    from tests.lab.fuzz import graphs
    return "onnx", partial(graphs.work, share=share, only=only, keep=keep), CHUNK


def wanted(options: argparse.Namespace, record: Record, mode: str, size: int) -> Iterator[Span]:
    """The spans of seeds that the options ask for."""
    if options.rerun:
        return chain.from_iterable(spans(a, b, 1) for a, b in seeds(options.rerun))
    return spans(options.seed, options.seed + options.count, size,
                 record.done(mode) if options.resume else ())


def until(these: Iterable[Span], minutes: float | None) -> Iterator[Span]:
    """The spans, until the time is over."""
    start = time.perf_counter()
    for span in these:
        if minutes and time.perf_counter() - start > 60 * minutes:
            return
        yield span


def lost(one: Lost) -> Outcome:
    """A seed whose process died."""
    out = Outcome(findings=[Finding(one.seed, f"lost: {one.why}")])
    out.statuses["wrong"] = 1
    return out


def summary(total: Outcome, seconds: float) -> str:
    """What this run did."""
    built = sum(total.compiled.values())
    said = ", ".join(f"{n:,} {k}" for k, n in total.statuses.most_common())
    return "\n".join([
        f"{total.tried:,} seeds in {seconds:.0f} s: {said}; {built:,} compiled.", "",
        groups(total.findings), coverage(total.ops)])
