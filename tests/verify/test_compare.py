"""Tolerances: what counts as equal, and what is reported of what does not."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool.errors import InputError
from graphtool.verify.compare import compare, difference, worst

NAN, INF = np.nan, np.inf
CASES = [  # expected, actual, ok, largest absolute error, out of tolerance
    ([1.0, 2.0], [1.0, 2.0], True, 0.0, 0),
    ([1.0, 2.0], [1.0, 2.00001], True, 1e-5, 0),
    ([1.0, 2.0], [1.0, 2.1], False, 0.1, 1),
    ([NAN, INF, -INF], [NAN, INF, -INF], True, 0.0, 0),
    ([1.0, NAN], [1.0, 1.0], False, INF, 1),
    ([INF, 1.0], [-INF, 1.0], False, INF, 1),
    ([INF, 1.0], [1e30, 1.0], False, INF, 1),
    ([1, 2, 3], [1, 2, 4], False, 1.0, 1),
    ([True, False], [True, True], False, 1.0, 1),
    ([2**63 - 1], [2**63 - 2], False, 1.0, 1),
    ([], [], True, 0.0, 0),
]


@pytest.mark.parametrize(("e", "a", "ok", "gap", "out"), CASES)
def test_difference(e: list[float], a: list[float], ok: bool, gap: float, out: int) -> None:
    d = difference("x", np.array(e), np.array(a), 1e-4, 1e-4)
    assert (d.ok, d.out, d.elements) == (ok, out, len(e))
    assert float(d.max_abs) == pytest.approx(gap, rel=1e-3)
    assert (float(d.max_rel) == 0) == (gap == 0)


def test_the_default_tolerance_scales_with_the_array() -> None:
    e = np.array([1000.0, 0.0])
    assert difference("x", e, e + 0.009, None, 0).ok
    assert not difference("x", e, e + 0.011, None, 0).ok
    assert not difference("x", e, e + 0.009, 1e-5, 0).ok


def test_shapes_must_be_equal() -> None:
    d = difference("x", np.zeros((2, 3)), np.zeros((3, 2)), 1, 1)
    assert not d.ok and "shapes differ: [2, 3] and [3, 2]" in d.note


def test_the_first_fault_is_shown() -> None:
    d = difference("x", np.zeros((2, 3)), np.array([[0, 0, 0], [0, 0.5, 9]]), 1e-3, 0)
    assert d.note == "first at [1, 1]: 0 expected, 0.5 found" and d.out == 2


def test_other_names_go_by_position() -> None:
    rows = compare({"a": np.ones(2), "b": np.zeros(2)}, {"x": np.ones(2), "y": np.zeros(2)}, 0, 0)
    assert [r.name for r in rows] == ["a", "b"] and all(r.ok for r in rows)
    assert worst(rows) == "max abs 0, max rel 0, 0 of 4 out of tolerance"
    with pytest.raises(InputError, match="1 outputs on one side, 2 on the other"):
        compare({"a": np.ones(2)}, {"x": np.ones(2), "y": np.ones(2)}, 0, 0)
