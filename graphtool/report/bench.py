"""Timing: a warm-up, then the candidates alternately, so that a slow moment affects all of them.

Who is faster is said only where the bounds of the ratio leave no doubt.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from graphtool.analysis.bounds import median_bounds, ratios
from graphtool.report.bench_base import Compared, compared_lines
from graphtool.report.findings import Finding, Outcome, outcome

WARM_UP = 3
MOST = 1000  # rounds
LEAST = 6  # rounds; the median of fewer has no bounds of 95 %
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
    compared: Compared | None = None


def bench(contestants: Mapping[str, Callable[[], object]], threads: int,
          seconds: float = 2.0, most: int = MOST) -> Bench:
    """Time each contestant for about `seconds`. The first is ours, the second the one to compare
    with."""
    return compared(threads, race(contestants, seconds, most))


def race(contestants: Mapping[str, Callable[[], object]], seconds: float = 2.0,
         most: int = MOST) -> dict[str, list[float]]:
    """Milliseconds of each contestant's calls, in turns, after a warm-up."""
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
    return samples


def compared(threads: int, samples: Mapping[str, Sequence[float]]) -> Bench:
    """The report of times in ms, by contestant in the order of the rounds."""
    timings = [_timing(name, list(times)) for name, times in samples.items()]
    if len(timings) < 2:
        return Bench(threads, timings, None)
    ours, others = list(samples.values())[:2]
    found = ratios(ours, others)
    low, high = median_bounds(found) or (None, None)
    clear = low is not None and high is not None and high <= NARROW * low and (
        low > 1 + LEAST_GAIN or high < 1 - LEAST_GAIN)
    return Bench(threads, timings, statistics.median(found), low, high, clear)


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
    return out + (compared_lines(b.compared) if b.compared else [])


def bench_outcome(b: Bench, build: str) -> Outcome:
    """A finding for each contestant, and one for the comparison with a rival or a base."""
    found = [Finding("bench/time", t.name, "ok", f"{t.median_ms:.3f} ms (spread "
                     f"{100 * t.spread:.1f} %, {t.runs} runs)") for t in b.timings]
    if b.ratio is not None:
        found.append(Finding("bench/ratio", build, "ok" if b.clear else "note",
                             _verdict(b, b.ratio)))
    if b.compared is not None:
        level = {"slower": "warning", "unclear": "note"}
        found.append(Finding(
            f"bench/{b.compared.verdict}", build, "error" if b.compared.failed else
            level.get(b.compared.verdict, "ok"),  # type: ignore[arg-type]
            compared_lines(b.compared)[0], "", b.compared.base))
    lines = bench_lines(b)
    return outcome("bench", build, lines[-1], found, lines)


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
