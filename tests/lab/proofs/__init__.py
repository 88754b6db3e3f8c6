"""Tiers of proof for the rewrite rules: `python -m tests.lab proofs [RULE…] [--write]`.

Prints a row for each rule, and with --write keeps the tiers in graphtool/assume/proofs.json. z3 is
needed: pip install z3-solver.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import msgspec

import graphtool.assume
from graphtool.assume.tiers import TIERS, Proof, proofs, recorded
from graphtool.extend import _RULES as PASSES
from graphtool.rewrite.engine import Rule
from graphtool.rewrite.patterns import Applied, Var

LEDGER = Path(graphtool.assume.__file__).parent / "proofs.json"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("rules", nargs="*", metavar="RULE", help="these alone")
    parser.add_argument("--write", action="store_true", help="keep the tiers")


def main(given: argparse.Namespace) -> bool:
    """Prove, print, and keep the tiers; whether a rule is not as sure as it was."""
    worse = False
    for key, rules in grouped().items():
        if given.rules and rules[0].name not in given.rules:
            continue
        begin = time.perf_counter()
        row, why = proof_of(rules)
        worse |= TIERS.index(recorded(key)) < TIERS.index(row.tier)
        if given.write:
            keep(key, row)
        print(f"{row.tier:8} {rules[0].name:28} {row.graphs:4} graphs by {', '.join(row.by)}"
              f" in {time.perf_counter() - begin:.1f} s{why}", flush=True)
    proofs.cache_clear()
    counted = Counter(recorded(key) for key in grouped())
    print(", ".join(f"{n} {tier}" for tier, n in counted.items()), f"of {counted.total()} rules")
    return worse


def keep(key: str, row: Proof) -> None:
    """Keep the tier of a rule, and those of the rules that are still there."""
    proofs.cache_clear()
    found = {k: p for k, p in proofs().items() if k in grouped() and k != key}
    if row.tier != "tested":
        found[key] = row
    LEDGER.write_bytes(b"{\n" + b",\n".join(
        msgspec.json.encode(k) + b": " + msgspec.json.encode(found[k])
        for k in sorted(found)) + b"\n}\n")


def grouped() -> dict[str, list[Rule]]:
    """The rules of graphtool by module and name; several spellings of one are one."""
    out: dict[str, list[Rule]] = {}
    for rules in PASSES.values():
        for r in rules:
            if r.key.startswith("graphtool.") and r not in out.setdefault(r.key, []):
                out[r.key].append(r)
    return out


def proof_of(rules: Sequence[Rule]) -> tuple[Proof, str]:
    """What can be shown of all spellings of a rule, and in words why it is not more."""
    from tests.lab.proofs.cases import cases
    from tests.lab.proofs.prove import attempt
    graphs, by, tier = 0, dict[str, None](), "proved"
    for r in rules:
        known, fired = cases(r), 0
        for graph in known.graphs() if known is not None else ():
            outcome = attempt(r, graph, known.seconds if known is not None else 0)
            if outcome.word == "declined":
                continue
            if outcome.word != "proved":
                return Proof("tested", graphs, list(by), source(rules)), (
                    f": {outcome.detail[:200]!r}")
            fired += 1
            by[outcome.detail] = None
        if known is None or not fired:
            return Proof("tested", graphs, list(by), source(rules)), " (no graphs)"
        graphs += fired
        tier = tier if known.open else "bounded"
    return Proof(tier, graphs, sorted(by), source(rules)), ""  # type: ignore[arg-type]


# ---- what a proof was made of ------------------------------------------------------------------

def source(rules: Sequence[Rule]) -> str:
    """A digest of the rules: their patterns, classes, and the code of their right sides with all
    functions of graphtool's rules and passes that these call."""
    h = hashlib.sha256()
    for r in rules:
        h.update(f"{text(r.pattern)} {r.needs} {r.may} {r.once}".encode())
        for f in sorted(called(r.fn), key=lambda f: (f.__module__, f.__qualname__)):
            h.update(inspect.getsource(f).encode())
    return h.hexdigest()[:16]


def called(fn: Any, seen: set[Any] | None = None) -> set[Any]:
    """A function and what it calls among the rules and passes."""
    seen = set() if seen is None else seen
    if fn not in seen:
        seen.add(fn)
        for name in _names(fn.__code__):
            other = fn.__globals__.get(name)
            if isinstance(other, FunctionType) and other.__module__.startswith(
                    ("graphtool.rewrite.rules", "graphtool.passes", "graphtool.analysis.ranges")):
                called(other, seen)
    return seen


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


def text(p: Any) -> str:
    """A pattern as a text that is equal for equal patterns only."""
    match p:
        case Var(name):
            return name
        case Applied(op, operands, attrs):
            parts = [*map(text, operands), *(f"{k}={text(v)}" for k, v in sorted(attrs.items()))]
            return f"{op.name}({', '.join(parts)})"
        case _:
            return repr(p)
