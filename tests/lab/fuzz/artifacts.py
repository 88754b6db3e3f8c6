"""Mutated artifacts: each file is read, or refused by one error with a code, in a child process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.lab.fuzz.artifact_kinds import KINDS
from tests.lab.fuzz.mutations import explore
from tests.lab.fuzz.outcome import Finding, Outcome
from tests.lab.fuzz.processes import Span, Tell

SIZE = 240  # mutations of one kind of file


@cache
def samples(kind: str) -> tuple[Callable[[Path], Any], list[Path]]:
    """How the kind is read, and the files that are changed."""
    read, made = KINDS[kind]
    return read, made()


def work(span: Span, tell: Tell, only: tuple[str, ...] = ()) -> Outcome:
    """The outcome of a span, all of one kind."""
    kinds = only or tuple(KINDS)
    kind = kinds[span[0] // SIZE % len(kinds)]
    tell(span[0])
    out, start = Outcome(), time.perf_counter()
    counts, bad = explore(*samples(kind), span[1] - span[0], span[0])
    for how, n in counts.items():
        out.statuses["wrong" if how == "fault" else how] += n
    out.ops[f"file {kind}"] += span[1] - span[0]
    out.findings = [Finding(_seed(text, span), f"{kind}: {_cause(text)}", text) for text in bad]
    out.seconds["evaluated"] = time.perf_counter() - start
    return out


def _seed(text: str, span: Span) -> int:
    """The number in `NAME NUMBER: what`."""
    found = re.match(r"\S+ (\d+):", text)
    return int(found[1]) if found else span[0]


def _cause(text: str) -> str:
    """What was said, without the names and numbers in it."""
    said = text.partition(": ")[2]
    place = said.rpartition(" at ")[2] if " at " in said else ""
    return " ".join(filter(None, (said.split(" ")[0], place)))[:100]
