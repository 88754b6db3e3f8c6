"""The record as tables: rates, outcomes, what nothing explains, what was left out, what occurred.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from benchmarks.tables import markdown
from tests.lab.fuzz.outcome import Finding
from tests.lab.fuzz.record import Part, Record

_NOTHING = ("Nothing: what was wrong when it first ran agrees, is refused, or has a known reason "
            "since it was run again.\n")
TITLES = {"onnx": "Random ONNX graphs, beside onnxruntime"}


def report(record: Record, command: str) -> str:
    """The page of all modes."""
    modes = dict.fromkeys(p.mode for p in record.parts)
    parts = ["# Random graphs", "", f"Last run: `{command}`. Each row is what one version of the "
             "code did on one machine on one day. Each seed is compiled in one of the variants, "
             "by turns.", ""]
    for mode in modes:
        parts += _mode(record, mode)
    return "\n".join(parts)


def _mode(record: Record, mode: str) -> list[str]:
    rows = [_row(p) for p in record.parts if p.mode == mode]
    total = Counter[str]()
    for p in record.parts:
        if p.mode == mode:
            total.update(p.statuses)
    found = record.open.get(mode, [])
    return [f"## {TITLES.get(mode, mode)}", "", markdown(
        ["date", "version", "machine", "seeds", "tried", "a second", "compiled", "a second "],
        rows), markdown(["outcome when first run", "number"], [
            [k, f"{n:,}"] for k, n in total.most_common()]),
        "### Not explained", "", groups(found),
        "### Left out, and why", "", markdown(["reason", "number"], [
            [r[:200], str(n)] for r, n in record.reasons.get(mode, Counter()).most_common(40)]),
        "### Operators and dtypes", "", coverage(record.ops.get(mode, Counter()))]


def _row(p: Part) -> list[str]:
    tried, built = sum(p.statuses.values()), sum(p.compiled.values())

    def rate(n: int, stage: str) -> str:
        spent = p.seconds.get(stage)
        return f"{n * p.workers / spent:.1f}" if spent else "–"
    ranges = ", ".join(f"{a}–{b - 1}" for a, b in p.ranges[:4]) + ", …" * (len(p.ranges) > 4)
    each = ", ".join(f"{k} {n:,}" for k, n in sorted(p.compiled.items()))
    return [p.date, p.version, f"{p.cpu}, {p.workers} workers", ranges, f"{tried:,}",
            rate(tried, "evaluated"), f"{built:,}" + (f" ({each})" if each else ""),
            rate(built, "compiled")]


def groups(findings: list[Finding]) -> str:
    """Findings by cause, the usual ones first, with some of their seeds."""
    by: dict[str, list[Finding]] = defaultdict(list)
    for f in findings:
        by[f.cause].append(f)
    rows = [[cause, str(len(fs)), ",".join(str(f.seed) for f in fs[:5]), fs[0].text[:160]]
            for cause, fs in sorted(by.items(), key=lambda row: -len(row[1]))]
    return markdown(["cause", "number", "seeds", "what"], rows) if rows else _NOTHING


def coverage(ops: Counter[str]) -> str:
    """How often each operator occurred with each dtype."""
    by: dict[str, list[str]] = defaultdict(list)
    for pair, n in sorted(ops.items(), key=lambda row: -row[1]):
        op, _, dtype = pair.rpartition(" ")
        by[op].append(f"{dtype} {n:,}")
    table = markdown(["operator", "nodes by dtype"], [[op, ", ".join(by[op])] for op in sorted(by)])
    return f"{len(by)} operators, {len(ops)} pairs of operator and dtype.\n\n{table}"
