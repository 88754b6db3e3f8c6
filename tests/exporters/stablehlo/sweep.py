"""The cases of the ops' table as StableHLO: read back, and run by others beside the evaluator.

`python -m tests.exporters.stablehlo.sweep` writes benchmarks/results/hlo_ops.md; it needs the extra
`jax`, and IREE.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables, work
from graphtool.errors import UnsupportedError
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.stablehlo import import_text
from graphtool.ir.op import complete_attrs, evaluate
from graphtool.report.diff import diff
from tests.cases import CASES, Case, arrays
from tests.closeness import assert_close
from tests.lab.hlo_peers import PEERS, Guarded, parsed
from tests.ops.test_cases import module_of

HEAD = ("op", "cases", "read back", *PEERS, "why, or what differs")
OUT = Path("benchmarks/results/hlo_ops.md")


def main() -> int:
    """Run all cases, or those of `--ops`, and write the table; how many differ without a reason."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ops", type=lambda s: s.split(","), help="only these ops")
    options = parser.parse_args()
    guards = {peer: Guarded(peer) for peer in PEERS}
    rows: dict[str, list[Any]] = {}
    bad = 0
    for case in CASES:
        if options.ops and case.op.name not in options.ops:
            continue
        row = rows.setdefault(case.op.name, [case.op.name, 0, 0, *[[0, 0] for _ in PEERS], []])
        row[1] += 1
        try:
            bad += one(case, row, guards)
        except UnsupportedError as error:
            row[-1].append(f"refused: {error.items[0].reason}")
    told = report(list(rows.values()))
    if not options.ops:
        OUT.write_text(told)
    print(told)
    return int(bad > 0)


def one(case: Case, row: list[Any], guards: dict[str, Guarded]) -> int:
    """Run a case everywhere (IREE: the first of each op), add what was found; how many differ."""
    module, xs = module_of(case), arrays(case)
    text = stablehlo_of(module)
    parsed(text)
    row[2] += diff(module, import_text(text)).equal
    found = evaluate(case.op, xs, complete_attrs(case.op, case.attrs))
    want = found if isinstance(found, tuple) else (found,)
    given = [x for x in xs if isinstance(x, np.ndarray)]
    bad = 0
    for counts, (peer, guard) in zip(row[3:3 + len(guards)], guards.items(), strict=True):
        if peer == "iree" and counts[1]:
            continue
        counts[1] += 1
        try:
            for a, b in zip(guard(text, given), want, strict=True):
                assert_close(a.view(b.dtype) if a.dtype.itemsize == b.dtype.itemsize else a, b,
                             given)
            counts[0] += 1
        except (RuntimeError, AssertionError, TypeError) as error:
            said = " ".join(str(error).split())
            row[-1].append(f"{case.name}, {peer}: {KNOWN.get((case.name, peer), said[:90])}")
            bad += (case.name, peer) not in KNOWN
    return bad


KNOWN = {
    ("matmul-11", "interpreter"): "its process ends: no element to sum",
    ("resize_by-6", "xla"): "it multiplies by a constant's inverse, and a tie is rounded otherwise",
    **{(name, "iree"): "it takes inputs of float64 as float32 only"
       for name in ("resize_by-0", "fft-0")},
    **{(name, peer): "CHLO's expansion has another value at poles and below 0"
       for name in ("digamma-3", "polygamma-7", "polygamma-8") for peer in PEERS},
}


def report(rows: list[list[Any]]) -> str:
    """The page."""
    stamp = work.stamp()
    done = [r for r in rows if not any(w.startswith("refused") for w in r[-1])]
    total = sum(r[1] for r in done)
    told = [f"{name}: {sum(r[3 + i][0] for r in done):,} of {sum(r[3 + i][1] for r in done):,}"
            for i, name in enumerate(PEERS)]
    lines = ["# StableHLO out: ops\n\n`python -m tests.exporters.stablehlo.sweep`; "
             f"{stamp['date']}, {stamp['cpu']}.\n",
             f"The cases of the ops' table, exported, read back, and run by others. {len(done)} of "
             f"{len(rows)} ops are written, {total:,} cases of them; {sum(r[2] for r in done):,} "
             "are read back as the same graph. As the evaluator computes them: "
             f"{'; '.join(told)}. IREE, which takes a second to compile one, has the first case of "
             "each op.\n"]
    odd = [r for r in rows if r[-1] or r[2] != r[1]]
    cells = [[r[0], str(r[1]), str(r[2]), *(f"{a} of {b}" for a, b in r[3:-1]),
              "; ".join(dict.fromkeys(r[-1]))] for r in odd]
    lines += ["Ops with a case that differs, is refused, or is read back as another graph of the "
              "same meaning:\n", tables.markdown(HEAD, cells)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
