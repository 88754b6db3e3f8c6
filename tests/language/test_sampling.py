"""The choice of a token: what is left out, how often each comes, and the same seed twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from graphtool.errors import UsageError
from graphtool.language.sampling import Random, Sampling, draw

SCORES = np.log(np.array([0.1, 0.4, 0.3, 0.2], np.float32))


def often(how: Sampling, count: int = 4000) -> Counter[int]:
    random = Random(how.seed)
    return Counter(draw(SCORES, how, random) for _ in range(count))


def test_each_comes_as_often_as_it_is_likely() -> None:
    found = often(Sampling(temperature=1.0))
    np.testing.assert_allclose([found[t] / 4000 for t in range(4)], [0.1, 0.4, 0.3, 0.2],
                               atol=0.025)


@pytest.mark.parametrize(("how", "kept"), [
    (Sampling(0.0), {1}), (Sampling(1.0, top_k=2), {1, 2}), (Sampling(1.0, top_p=0.5), {1, 2}),
    (Sampling(1.0, top_p=0.01), {1}), (Sampling(1.0, top_k=3, top_p=0.95), {1, 2, 3}),
    (Sampling(1e-3), {1})])
def test_unlikely_tokens_are_left_out(how: Sampling, kept: set[int]) -> None:
    assert set(often(how, 500)) == kept


def test_equal_scores_are_taken_in_order() -> None:
    assert draw(np.zeros(5, np.float32), Sampling(0.0), Random(0)) == 0


def test_the_random_numbers_are_splitmix() -> None:
    """The first numbers of the generator for the seed 1234567, as its authors' code gives them."""
    random = Random(1234567)
    want = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [random.next() for _ in want] == [(w >> 11) * 2.0**-53 for w in want]


@pytest.mark.parametrize("wrong", [
    {"temperature": -1.0}, {"temperature": float("inf")}, {"temperature": float("nan")},
    {"top_k": -1}, {"top_p": 0.0}, {"top_p": 1.5}, {"seed": -1}, {"seed": 1 << 64}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="GT3153"):
        Sampling(**wrong)
