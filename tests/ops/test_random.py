"""The generator: known answers, independence of how it is drawn, and the distributions' moments."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool import ops as o
from graphtool.ops.random import state_of


def test_known_answer() -> None:
    """Philox-4x32-10 with counter 0 and key 0, as published with Random123."""
    bits, after = o.rng_bits(state_of(0), shape=(4,))
    assert [f"{b:08x}" for b in bits] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    np.testing.assert_array_equal(after, [0, 1])


def test_drawing_in_two_goes_is_drawing_at_once() -> None:
    whole, end = o.rng_bits(state_of(7), shape=(4, 4))
    first, middle = o.rng_bits(state_of(7), shape=(8,))
    second, last = o.rng_bits(middle, shape=(2, 4))
    np.testing.assert_array_equal(whole.reshape(-1), np.concatenate([first, second.reshape(-1)]))
    np.testing.assert_array_equal(end, last)


def test_uniform_and_normal_moments() -> None:
    u, _ = o.uniform(state_of(1), shape=(100_000,), low=-1.0, high=3.0)
    n, _ = o.normal(state_of(2), shape=(100_000,), mean=1.0, std=2.0)
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.02
    assert abs(u.var() - 16 / 12) < 0.02
    assert abs(n.mean() - 1) < 0.02 and abs(n.std() - 2) < 0.02
    assert abs(np.corrcoef(n[:-1], n[1:])[0, 1]) < 0.01


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
def test_dropout(p: float) -> None:
    x = np.ones(20_000, np.float32)
    y, kept, after = o.dropout(x, state_of(3), p=p)
    assert abs(kept.mean() - (1 - p)) < 0.02 and after[1] > 0
    np.testing.assert_allclose(y[kept], 1 / (1 - p) if p < 1 else 0)
    assert not y[~kept].any()


def test_bernoulli_follows_its_probabilities() -> None:
    p = np.repeat(np.array([0.0, 0.25, 1.0], np.float32), 10_000)
    draws, _ = o.bernoulli(p, state_of(4))
    np.testing.assert_allclose(draws.reshape(3, -1).mean(1), [0, 0.25, 1], atol=0.02)
