"""What is said about samples of time: medians, spreads, ratios and their geometric mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OURS = "graphtool"
FLOAT, BFLOAT = "float32", "bfloat16"  # graphtool in wider floats, as contestants that are no peers


@dataclass(frozen=True)
class Summary:
    """Milliseconds of one call. `spread` is how far the rounds' medians lie apart, over the
    median: what is smaller than that difference between two contestants means nothing."""

    median: float
    least: float
    spread: float
    calls: int


def summary(rounds: Sequence[Sequence[float]]) -> Summary:
    """Of seconds in rounds; a round is a run of calls without a pause."""
    samples = [1e3 * s for r in rounds for s in r]
    medians = [1e3 * statistics.median(r) for r in rounds if r]
    middle = statistics.median(samples)
    return Summary(middle, min(samples), (max(medians) - min(medians)) / middle, len(samples))


def best_peer(times: Mapping[str, float]) -> tuple[str, float] | None:
    """The fastest contestant besides ours."""
    peers = [(ms, name) for name, ms in times.items() if name not in (OURS, FLOAT, BFLOAT)]
    return (min(peers)[1], min(peers)[0]) if peers else None


def ratio(times: Mapping[str, float]) -> float | None:
    """How many times faster ours is than the best peer; None where either is missing."""
    peer = best_peer(times)
    return peer[1] / times[OURS] if peer and OURS in times else None


def geometric_mean(values: Iterable[float]) -> float:
    """NaN of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(statistics.fmean(logs)) if logs else math.nan


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The exponent p of time ~ sizeᵖ, by least squares on logarithms; 1 is linear."""
    return statistics.linear_regression([math.log(s) for s in sizes],
                                        [math.log(t) for t in times]).slope
