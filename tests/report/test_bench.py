"""Verdicts on made-up times: said where the bounds carry them, withheld where they do not."""

from __future__ import annotations

import random
import statistics

import pytest

from graphtool.report.bench import Bench, bench, bench_lines, compared, median_bounds


def race(ours: float, others: float, noise: float, rounds: int, seed: int = 0) -> Bench:
    """Two contestants whose times vary by a factor of up to 1 + noise."""
    draw = random.Random(seed)
    return compared(2, {"graphtool": [ours * (1 + noise * draw.random()) for _ in range(rounds)],
                        "rival": [others * (1 + noise * draw.random()) for _ in range(rounds)]})


@pytest.mark.parametrize(("times", "text"), [
    ((1.0, 2.0, 0.02, 200), "2.00 times faster than rival at 2 threads (1.99 to 2.00 with 95 % "
                            "confidence)"),
    ((2.0, 1.0, 0.02, 200), "2.00 times slower than rival at 2 threads (2.00 to 2.01 with 95 % "
                            "confidence)"),
    ((1.0, 1.0, 0.02, 200), "no verdict on rival at 2 threads: no difference is seen; 1.00 to 1.00 "
                            "times as fast, with 95 % confidence"),
    ((1.0, 1.3, 9.0, 12), "no verdict on rival at 2 threads: the times vary too much; 1.27 to 2.13 "
                          "times as fast, with 95 % confidence"),
    ((1.0, 1463.0, 30.0, 5), "no verdict on rival at 2 threads: 5 runs are too few; give more "
                             "--seconds")])
def test_verdicts(times: tuple[float, float, float, int], text: str) -> None:
    assert bench_lines(race(*times))[-1] == text


def test_a_factor_needs_narrow_bounds() -> None:
    """Ours is faster for certain, but nobody can say how much."""
    found = race(1.0, 9.0, 3.0, 10)
    assert found.low is not None and found.low > 1 and not found.clear
    assert "vary too much" in bench_lines(found)[-1]


def test_a_difference_without_meaning_is_none() -> None:
    found = compared(1, {"a": [1.0] * 99, "b": [1.002] * 99})
    assert found.low == found.high == 1.002 and not found.clear
    assert "no difference is seen" in bench_lines(found)[-1]


def test_a_slow_phase_does_not_decide() -> None:
    """A rival that was disturbed for a third of the time is not slower for that."""
    times = [1.0] * 300
    found = compared(1, {"a": times, "b": [1.0] * 200 + [5.0] * 100})
    assert found.ratio == 1.0 and not found.clear


def test_bounds_hold_the_median_of_what_was_drawn() -> None:
    """In at least 95 % of the samples, for a skewed distribution whose median is 1."""
    draw = random.Random(1)
    for n in (6, 9, 50):
        held = [low <= 1 <= high for _ in range(2000) if (found := median_bounds(
            [draw.lognormvariate(0, 2) for _ in range(n)])) for low, high in [found]]
        assert len(held) == 2000 and statistics.mean(held) > 0.94


@pytest.mark.parametrize(("n", "bounds"), [(5, None), (6, (0, 5)), (8, (0, 7)), (9, (1, 7))])
def test_ranks_of_the_bounds(n: int, bounds: tuple[int, int] | None) -> None:
    assert median_bounds(range(n)) == bounds


def test_alone_there_is_no_verdict() -> None:
    found = bench({"graphtool": lambda: None}, 1, seconds=0.0)
    assert (found.ratio, found.low, found.high, found.clear) == (None, None, None, False)
    assert found.timings[0].runs == 6 and len(bench_lines(found)) == 1
