"""What all runs found so far: a JSON file that a run reads, adds to, and can be resumed from.

A part is what one version did on one machine on one day in one mode. Its seeds are ranges.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.jobs import PROJECT
from tests.lab.fuzz.outcome import Finding, Outcome, grow
from tests.lab.fuzz.processes import Span
from tests.lab.fuzz.seeds import merged

REASONS = 60  # that are kept, the usual ones


@dataclass
class Part:
    """Counts of one mode, version, machine and day."""

    mode: str
    version: str
    date: str
    cpu: str
    workers: int
    ranges: list[Span] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    compiled: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass
class Record:
    """The parts, and by mode the operators, the reasons, and what nothing explains."""

    parts: list[Part] = field(default_factory=list)
    ops: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    open: dict[str, list[Finding]] = field(default_factory=dict)

    def part(self, mode: str, workers: int) -> Part:
        """The part of a run that starts now."""
        stamp = work.stamp()
        new = Part(mode, version(), stamp["date"], stamp["cpu"], workers)
        for p in self.parts:
            if all(getattr(p, n) == getattr(new, n) for n in (
                    "mode", "version", "date", "cpu", "workers")):
                return p
        self.parts.append(new)
        return new

    def done(self, mode: str) -> list[Span]:
        """The seeds that some run of the mode has done."""
        return merged(r for p in self.parts if p.mode == mode for r in p.ranges)

    def add(self, part: Part, span: Span, out: Outcome) -> None:
        """Note the outcome of a span."""
        part.ranges = merged([*part.ranges, span])
        for name in ("statuses", "compiled", "seconds"):
            grow(getattr(part, name), getattr(out, name))
        self.ops.setdefault(part.mode, Counter()).update(out.ops)
        self.reasons.setdefault(part.mode, Counter()).update(out.reasons)
        self.settle(part.mode, span, out.findings)

    def settle(self, mode: str, span: Span, findings: Sequence[Finding]) -> None:
        """What these seeds show now counts, and no longer what they showed before."""
        old = [f for f in self.open.get(mode, []) if not span[0] <= f.seed < span[1]]
        self.open[mode] = sorted([*old, *findings], key=lambda f: f.seed)

    def join(self, other: Record) -> None:
        """Add another record, of seeds that this one does not have."""
        self.parts += other.parts
        for mode in other.ops:
            grow(self.ops.setdefault(mode, Counter()), other.ops[mode])
            grow(self.reasons.setdefault(mode, Counter()), other.reasons.get(mode, Counter()))
            self.open[mode] = sorted([*self.open.get(mode, []), *other.open.get(mode, [])],
                                     key=lambda f: f.seed)

    # ---- the file ------------------------------------------------------------------------------

    def write(self, path: Path) -> None:
        """Replace the file as a whole."""
        known = {mode: dict(found.most_common(REASONS)) for mode, found in self.reasons.items()}
        said = {"parts": [_rounded(vars(p)) for p in self.parts], "ops": self.ops,
                "reasons": known, "open": {m: [vars(f) for f in fs]
                                           for m, fs in self.open.items()}}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        os.replace(new, path)


def read(path: Path) -> Record:
    """The record of the file; an empty one if there is none."""
    if not path.exists():
        return Record()
    said: dict[str, Any] = json.loads(path.read_text())
    parts = [Part(**{**p, "ranges": [(a, b) for a, b in p["ranges"]], **{
        k: Counter(p[k]) for k in ("statuses", "compiled")}}) for p in said["parts"]]
    return Record(parts, {m: Counter(c) for m, c in said["ops"].items()},
                  {m: Counter(c) for m, c in said["reasons"].items()},
                  {m: [Finding(**f) for f in fs] for m, fs in said["open"].items()})


def _rounded(part: dict[str, Any]) -> dict[str, Any]:
    return {**part, "seconds": {k: round(s, 1) for k, s in part["seconds"].items()}}


def version() -> str:
    """The commit, with a + if files were changed since; else the version of the package."""
    git = ["git", "-C", str(PROJECT)]
    try:
        commit = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], text=True, check=True,
                                capture_output=True).stdout.strip()
        changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "graphtool"],
                                 check=False).returncode
    except (OSError, subprocess.CalledProcessError):
        from importlib.metadata import version as of
        return of("graphtool")
    return commit + "+" * bool(changed)
