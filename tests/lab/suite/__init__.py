"""ONNX's own backend suite, all classes, in the evaluator and in compiled C: counts and reasons."""

from __future__ import annotations

import argparse
import json
import time

from benchmarks import work
from tests.lab.suite.cases import chosen, tenth
from tests.lab.suite.exceptions import EXCEPTIONS, EXCEPTIONS_C, faults
from tests.lab.suite.limits import WORKERS
from tests.lab.suite.table import report


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD",
                        help="cases with one of these words in their names, or of these classes")
    parser.add_argument("--mode", choices=("eval", "c", "both"), default="both")
    parser.add_argument("--tenth", action="store_true", help="the fixed tenth that CI runs")
    parser.add_argument("-j", "--workers", type=int, default=WORKERS)


def main(options: argparse.Namespace) -> int:
    """Run, write suite.md and suite.json, and count the cases that do not do what the list says."""
    from tests.lab.suite.compiled import compiled
    from tests.lab.suite.evaluated import evaluated
    some = tenth() if options.tenth else chosen(options.only)
    results, seconds, wrong = {}, {}, 0
    for mode, run, listed in (("eval", evaluated, EXCEPTIONS), ("c", compiled, EXCEPTIONS_C)):
        if options.mode in (mode, "both"):
            start = time.perf_counter()
            results[mode] = run(some, options.workers)
            seconds[mode] = time.perf_counter() - start
            for name, (status, why) in faults(results[mode], listed).items():
                wrong += 1
                print(f"{mode}: {status} {name}: {' '.join(why.split())[:200]}", flush=True)
    text = report(some, results, seconds, options.command_line)
    if not options.only and not options.tenth:
        work.results("suite.json").write_text(json.dumps(results, indent=1) + "\n")
        work.results("suite.md").write_text(text)
    print(text)
    return wrong
