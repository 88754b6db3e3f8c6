"""All of ONNX's node cases against the committed list of exceptions, evaluated and compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

import pytest

from tests.importers.onnx.compiled_suite import compiled
from tests.importers.onnx.exceptions import EXCEPTIONS, EXCEPTIONS_C, PINNED
from tests.importers.onnx.node_suite import PASS, cases, evaluated
from tests.importers.onnx.node_suite import PINNED as PASSED_PINNED

Results = dict[str, tuple[str, str]]


def faults(results: Results, exceptions: Mapping[str, str]) -> Results:
    """The cases that do not do what the list says."""
    def excepted(name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in exceptions)
    return {n: r for n, r in results.items() if (r[0] in (PASS, PASSED_PINNED)) is excepted(n)}


def sample(every: list[Any]) -> list[Any]:
    """Every tenth case, and of each operator the first."""
    seen: set[str] = set()
    chosen = []
    for i, case in enumerate(every):
        ops = {f"{n.domain}.{n.op_type}" for n in case.model.graph.node}
        if i % 10 == 0 or not ops <= seen:
            chosen.append(case)
        seen |= ops
    return chosen


def test_every_case_but_the_exceptions() -> None:
    results = evaluated(cases())
    assert faults(results, EXCEPTIONS) == {}
    idle = {p for p in EXCEPTIONS_C if not any(fnmatch(n, p) for n in results)}
    assert not idle, "exceptions that name no case"
    assert Counter(s for s, _ in results.values())[PASSED_PINNED] <= PINNED


def test_a_sample_of_the_cases_compiled() -> None:
    assert faults(compiled(sample(cases())), EXCEPTIONS_C) == {}


@pytest.mark.slow
def test_every_case_compiled() -> None:
    results = compiled(cases())
    assert faults(results, EXCEPTIONS_C) == {}
    assert sum(s in (PASS, PASSED_PINNED) for s, _ in results.values()) > 1661
