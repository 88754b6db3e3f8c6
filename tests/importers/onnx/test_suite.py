"""ONNX's own backend cases against the committed list of exceptions, evaluated and compiled."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatch

import pytest

from tests.lab.suite.cases import cases, tenth
from tests.lab.suite.compiled import compiled
from tests.lab.suite.evaluated import PASS, PINNED, evaluated
from tests.lab.suite.exceptions import EXCEPTIONS, EXCEPTIONS_C, PINNED_C, PINNED_EVAL, faults


@pytest.mark.long
def test_the_suite_is_whole() -> None:
    kinds = Counter(c.kind for c in cases())
    assert kinds == {"node": 1884, "simple": 26, "pytorch-converted": 82, "pytorch-operator": 35,
                     "real": 9}


@pytest.mark.long
def test_every_case_but_the_exceptions() -> None:
    results = evaluated([c for c in cases() if c.kind != "real"], workers=1)
    assert faults(results, EXCEPTIONS) == {}
    idle = {p for p in EXCEPTIONS_C if not any(fnmatch(c.name, p) for c in cases())}
    assert not idle, "exceptions that name no case"
    assert Counter(s for s, _ in results.values())[PINNED] <= PINNED_EVAL


@pytest.mark.part(2)
@pytest.mark.parametrize("share", range(2))
def test_a_tenth_of_the_cases_compiled(share: int) -> None:
    some = [c for c in tenth() if c.kind != "real"][share::2]
    assert faults(compiled(some), EXCEPTIONS_C) == {}


def test_real_models_evaluated() -> None:
    quick = [c for c in cases() if c.name in ("test_squeezenet", "test_bvlc_alexnet")]
    assert {s for s, _ in evaluated(quick, workers=1).values()} == {PASS} and len(quick) == 2


@pytest.mark.slow
def test_every_real_model_evaluated() -> None:
    assert faults(evaluated([c for c in cases() if c.kind == "real"], workers=1), EXCEPTIONS) == {}


@pytest.mark.slow
def test_every_case_compiled() -> None:
    results = compiled(list(cases()))
    assert faults(results, EXCEPTIONS_C) == {}
    count = Counter(s for s, _ in results.values())
    assert count[PINNED] <= PINNED_C and count[PASS] + count[PINNED] > 1661
