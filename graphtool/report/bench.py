"""Timing: a warm-up, then the candidates alternately, so that a slow moment affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

import msgspec

WARM_UP = 3


class Timing(msgspec.Struct):
    """Times of one contestant's call in ms. `spread` is the interquartile range over the median."""

    name: str
    runs: int
    median_ms: float
    min_ms: float
    max_ms: float
    spread: float


class Bench(msgspec.Struct):
    """`bench --json`; schemas/bench.schema.json is made from it. Ratio above 1: ours is faster."""

    threads: int
    timings: list[Timing]
    ratio: float | None


def bench(contestants: Mapping[str, Callable[[], object]], threads: int,
          seconds: float = 2.0, most: int = 1000) -> Bench:
    """Time each contestant for about `seconds`. The first is ours, the second the one to compare
    with."""
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        for _ in range(WARM_UP):
            run()
    end = time.perf_counter() + seconds * len(contestants)
    while (time.perf_counter() < end or len(samples[next(iter(samples))]) < 5) and len(
            samples[next(iter(samples))]) < most:
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            samples[name].append(1000 * (time.perf_counter() - start))
    timings = [_timing(name, times) for name, times in samples.items()]
    ratio = timings[1].median_ms / timings[0].median_ms if len(timings) > 1 else None
    return Bench(threads, timings, ratio)


def _timing(name: str, times: list[float]) -> Timing:
    low, middle, high = statistics.quantiles(times, n=4)
    return Timing(name, len(times), middle, min(times), max(times), (high - low) / middle)


def bench_lines(b: Bench) -> list[str]:
    """The report as lines of text: milliseconds of each contestant, then the ratio."""
    width = max(len(t.name) for t in b.timings)
    out = [f"{t.name:<{width}}  {t.median_ms:9.3f} ms  (min {t.min_ms:.3f}, max {t.max_ms:.3f}, "
           f"spread {100 * t.spread:.1f} %, {t.runs} runs)" for t in b.timings]
    if b.ratio is not None:
        rival, faster = b.timings[1].name, b.ratio >= 1
        factor = b.ratio if faster else 1 / b.ratio
        out.append(f"{factor:.2f} times {'faster' if faster else 'slower'} than {rival} "
                   f"at {b.threads} thread{'s' if b.threads != 1 else ''}")
    return out
