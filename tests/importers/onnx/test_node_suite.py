"""All of ONNX's node cases against the committed list of exceptions."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatch

from tests.importers.onnx.exceptions import EXCEPTIONS, PINNED
from tests.importers.onnx.node_suite import PASS, cases, outcome
from tests.importers.onnx.node_suite import PINNED as PASSED_PINNED


def excepted(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in EXCEPTIONS)


def test_every_case_but_the_exceptions() -> None:
    results = {case.name: outcome(case) for case in cases()}
    passed = {n for n, (status, _) in results.items() if status in (PASS, PASSED_PINNED)}
    assert not {n: r for n, r in results.items() if n not in passed and not excepted(n)}
    assert not {n for n in passed if excepted(n)}, "exceptions that pass"
    idle = {p for p in EXCEPTIONS if not any(fnmatch(n, p) for n in results)}
    assert not idle, "exceptions that name no case"
    assert Counter(s for s, _ in results.values())[PASSED_PINNED] <= PINNED
