"""`check`: compares two sides on equal inputs, and finds the first value in which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import msgspec
import numpy as np

from graphtool import interp
from graphtool.importers import import_source
from graphtool.ir.graph import Module
from graphtool.report.align import align
from graphtool.report.findings import Finding, Outcome, outcome
from graphtool.report.flat import flatten
from graphtool.verify.compare import (
    LEAST,
    NO_HALVES,
    Difference,
    compare,
    difference,
    halves_kept,
    is_text,
    magnitude,
    worst,
)
from graphtool.verify.sides import Side, by_position

Array = np.ndarray[Any, Any]


class CheckReport(msgspec.Struct):
    """`check --json`; schemas/check.schema.json is made from it."""

    ok: bool
    a: str
    b: str
    atol: float | None
    rtol: float
    outputs: list[Difference]
    divergence: list[Difference]


def check(a: Side, b: Side, inputs: Mapping[str, Array], atol: float | None, rtol: float,
          divergence: bool = False) -> CheckReport:
    """The comparison of the outputs on the same inputs; with `divergence`, also of inner values.

    The first side is the reference. New state that only one side knows is left out.
    """
    want, got = both_have(a.run(inputs), b.run(by_position(inputs, a.inputs, b.inputs)),
                          {*a.state, *b.state})
    rows = compare(want, got, atol, rtol)
    if atol is None and not all(r.ok for r in rows):
        rows = _without_halves(a, b, want, got, rows, rtol)
    divergence_ = first_divergence(a, b, inputs, atol, rtol) if divergence else []
    return CheckReport(all(r.ok for r in rows), a.kind, b.kind, atol, rtol, rows, divergence_)


def both_have(want: Mapping[str, Array], got: Mapping[str, Array], state: Set[str]
              ) -> tuple[dict[str, Array], dict[str, Array]]:
    """Both sides' outputs, without new state that the other side lacks, if their numbers differ."""
    lone = state & (want.keys() ^ got.keys()) if len(want) != len(got) else set()
    first, second = ({n: x for n, x in side.items() if n not in lone} for side in (want, got))
    return first, second


def _without_halves(a: Side, b: Side, want: Mapping[str, Array], got: Mapping[str, Array],
                    rows: list[Difference], rtol: float) -> list[Difference]:
    """The comparison once more, if a side is onnxruntime and the model computes in float16, with
    room for the roundings that it leaves out. What agrees then has a note that says why."""
    files = [s.source for s in (a, b) if s.source is not None]
    module = next((s.module for s in (a, b) if s.module), None)
    share = halves_kept(module or import_source(str(files[0]))) if files else 0.0
    if share <= LEAST:
        return rows
    room = share * max((magnitude(x) for x in want.values() if not is_text(x)), default=1.0)
    again = compare(want, got, room, rtol)
    return [msgspec.structs.replace(new, note=f"within {room:.2g}: {NO_HALVES}")
            if new.ok and not old.ok else old for old, new in zip(rows, again, strict=True)]


def first_divergence(a: Side, b: Side, inputs: Mapping[str, Array], atol: float | None,
                     rtol: float) -> list[Difference]:
    """The comparisons of the inner values that both graphs have, in order, up to the first out of
    tolerance; empty if a side has no graph."""
    if a.module is None or b.module is None:
        return []
    ours = _values(a.module, inputs)
    theirs = _values(b.module, by_position(inputs, a.inputs, b.inputs))
    left, right = flatten(a.module.graph), flatten(b.module.graph)
    rows = []
    for i, j in sorted(align(left, right).items()):
        x, y = ours.get(left[i].name), theirs.get(right[j].name)
        if x is None or y is None or x.shape != y.shape:
            continue
        rows.append(difference(left[i].name, x, y, atol, rtol))
        if not rows[-1].ok:
            break
    return rows


def _values(module: Module, inputs: Mapping[str, Array]) -> dict[str, Array]:
    values: dict[str, Array] = {}
    interp.run(module, inputs, on_value=values.__setitem__)
    return values


def check_lines(r: CheckReport, a: str = "", b: str = "") -> list[str]:
    """The report as lines of text; of the divergence, the last 10 values. `a` and `b` are the
    sources, which tell two sides of a kind apart."""
    verdict = "match" if r.ok else "DIFFER"
    same = r.a == r.b and a != b
    left, right = (f"{r.a} of {a}", f"{r.b} of {b}") if same else (r.a, r.b)
    out = [f"{left} and {right} {verdict}: {worst(r.outputs)}"]
    out += [row_line(row) for row in r.outputs]
    if r.divergence:
        out += ["", "values in order, up to the first out of tolerance:"]
        out += [row_line(row) for row in r.divergence[-10:]]
    return out


def row_line(r: Difference) -> str:
    """One array as a line of text: name, largest errors, share out of tolerance."""
    mark = "ok  " if r.ok else "FAIL"
    share = f"{r.out} of {r.elements} out" if r.out else f"{r.elements} elements"
    note = f"; {r.note}" if r.note else ""
    return (f"  {mark} {r.name}: max abs {float(r.max_abs):.3g}, max rel {float(r.max_rel):.3g}, "
            f"{share}{note}")


def check_outcome(r: CheckReport, a: str, b: str) -> Outcome:
    """A finding for each output, and one for the first inner value that differs."""
    findings = [Finding("check/output", row.name, "ok" if row.ok else "error", _told(row), "", b)
                for row in r.outputs]
    findings += [Finding("check/first", row.name, "error", f"the first value that differs: "
                         f"{_told(row)}", "", a) for row in r.divergence if not row.ok]
    return outcome("check", f"{a} and {b}", check_lines(r)[0], findings, check_lines(r))


def _told(r: Difference) -> str:
    return row_line(r).partition(": ")[2]
