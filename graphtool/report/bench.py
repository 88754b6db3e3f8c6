"""Timing: a warm-up, then the candidates alternately, so that a slow moment affects all of them.

Who is faster is said only where the bounds of the ratio leave no doubt.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from math import comb

import msgspec

WARM_UP = 3
LEAST = 6  # rounds; the median of fewer has no bounds of 95 %
BLOCKS = 50  # a moment of noise that lasts several rounds is in one block, and counts once
LEAST_GAIN = 0.005  # a smaller difference is none
NARROW = 1.25  # the upper bound over the lower one, above which no factor is stated


class Timing(msgspec.Struct):
    """Times of one contestant's call in ms. `spread` is the interquartile range over the median."""

    name: str
    runs: int
    median_ms: float
    min_ms: float
    max_ms: float
    spread: float


class Bench(msgspec.Struct):
    """`bench --json`; schemas/bench.schema.json is made from it.

    `ratio` is the median of the other's time over ours: above 1, ours is faster. Its bounds of 95 %
    are `low` and `high`. `clear`: they exclude a ratio of 1, and are so close to each other that
    the ratio is a verdict. null: there is no other contestant, or there are too few runs.
    """

    threads: int
    timings: list[Timing]
    ratio: float | None
    low: float | None = None
    high: float | None = None
    clear: bool = False


def bench(contestants: Mapping[str, Callable[[], object]], threads: int,
          seconds: float = 2.0, most: int = 1000) -> Bench:
    """Time each contestant for about `seconds`. The first is ours, the second the one to compare
    with."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        for _ in range(WARM_UP):
            run()
    end = time.perf_counter() + seconds * len(contestants)
    while (time.perf_counter() < end or len(samples[next(iter(samples))]) < LEAST) and len(
            samples[next(iter(samples))]) < most:
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            samples[name].append(1000 * (time.perf_counter() - start))
    return compared(threads, samples)


def compared(threads: int, samples: Mapping[str, Sequence[float]]) -> Bench:
    """The report of times in ms, by contestant in the order of the rounds."""
    timings = [_timing(name, list(times)) for name, times in samples.items()]
    if len(timings) < 2:
        return Bench(threads, timings, None)
    ours, others = list(samples.values())[:2]
    ratios = _ratios(ours, others)
    low, high = median_bounds(ratios) or (None, None)
    clear = low is not None and high is not None and high <= NARROW * low and (
        low > 1 + LEAST_GAIN or high < 1 - LEAST_GAIN)
    return Bench(threads, timings, statistics.median(ratios), low, high, clear)


def _ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    """The other's time over ours in each block of rounds: the ratio of the block's medians."""
    size = -(-len(ours) // BLOCKS)
    return [statistics.median(others[i:i + size]) / statistics.median(ours[i:i + size])
            for i in range(0, len(ours), size)]


def median_bounds(numbers: Sequence[float]) -> tuple[float, float] | None:
    """Bounds of 95 % for the median of what the numbers were drawn from; None for fewer than 6.

    Of n numbers in order, x_k and x_(n+1-k) enclose the median but for the chance that fewer than k
    of them lie on one side of it, 2 P(B < k) with B binomial in n and 1/2 (the sign test). So no
    distribution is assumed.
    """
    ordered, n = sorted(numbers), len(numbers)
    k, outside = 0, 0.0
    while (outside := outside + 2 * comb(n, k) / 2**n) <= 0.05:
        k += 1
    return (ordered[k - 1], ordered[n - k]) if k else None


def _timing(name: str, times: list[float]) -> Timing:
    low, middle, high = statistics.quantiles(times, n=4)
    return Timing(name, len(times), middle, min(times), max(times), (high - low) / middle)


def bench_lines(b: Bench) -> list[str]:
    """The report as lines of text: milliseconds of each contestant, then the ratio."""
    width = max(len(t.name) for t in b.timings)
    out = [f"{t.name:<{width}}  {t.median_ms:9.3f} ms  (min {t.min_ms:.3f}, max {t.max_ms:.3f}, "
           f"spread {100 * t.spread:.1f} %, {t.runs} runs)" for t in b.timings]
    if b.ratio is not None:
        out.append(_verdict(b, b.ratio))
    return out


def _verdict(b: Bench, ratio: float) -> str:
    """Who is faster, or why that cannot be said."""
    rival = f"{b.timings[1].name} at {b.threads} thread{'s' if b.threads != 1 else ''}"
    if b.low is None or b.high is None:
        return f"no verdict on {rival}: {b.timings[0].runs} runs are too few; give more --seconds"
    if not b.clear:
        why = "no difference is seen" if b.high <= NARROW * b.low else "the times vary too much"
        return (f"no verdict on {rival}: {why}; {b.low:.2f} to {b.high:.2f} times as fast, with "
                "95 % confidence")
    word = "faster" if ratio > 1 else "slower"
    low, factor, high = sorted((b.low, ratio, b.high) if ratio > 1 else (
        1 / b.low, 1 / ratio, 1 / b.high))
    return (f"{factor:.2f} times {word} than {rival} ({low:.2f} to {high:.2f} with 95 % "
            "confidence)")
