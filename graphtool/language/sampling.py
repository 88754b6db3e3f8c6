"""The next token from the scores of all: by temperature, the k best, and the likeliest share.

The random numbers are counted from a seed, so that equal scores and seeds give equal tokens, here
and in `kernels/c/host/language.h`, which does the same steps in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool.errors import UsageError

_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Sampling:
    """How a token is drawn. `temperature` 0 takes the best one; `top_k` 0 and `top_p` 1 leave none
    out."""

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises UsageError GT3153 for a number that is out of its range."""
        for name, value, fits, range_ in (
                ("temperature", self.temperature, 0 <= self.temperature < math.inf, "0 or more"),
                ("top-k", self.top_k, self.top_k >= 0, "0 or more"),
                ("top-p", self.top_p, 0 < self.top_p <= 1, "more than 0, at most 1"),
                ("seed", self.seed, 0 <= self.seed <= _WORD, "0 to 2^64 - 1")):
            if not fits:
                raise UsageError("GT3153", f"{name} is {value}", hint=range_)


def samplings(temperature: float, top_k: int, top_p: float, seeds: Sequence[int],
              count: int) -> list[Sampling]:
    """How each of `count` texts is drawn: with its own seed, or all with the given seed.

    Raises UsageError GT3153 for another number of seeds.
    """
    if len(seeds) not in (1, count):
        raise UsageError("GT3153", f"{len(seeds)} seeds for {count} prompts",
                         hint="one seed for all, or one for each")
    every = seeds if len(seeds) == count else [*seeds] * count
    return [Sampling(temperature, top_k, top_p, s) for s in every]


class Random:
    """Numbers from 0 to 1, by Steele, Lea and Flood's SplitMix64 (OOPSLA 2014)."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> float:
        """The next number, of 53 bits; it is less than 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _WORD
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & _WORD
        return ((z ^ z >> 31) >> 11) * 2.0 ** -53


def draw(scores: np.ndarray[Any, Any], how: Sampling, random: Random) -> int:
    """A token by its score, f32[V]; of equal scores the smaller token comes first."""
    order = np.argsort(-scores, kind="stable")
    if how.temperature == 0:
        return int(order[0])
    kept = order[:how.top_k or len(order)]
    best = float(scores[kept[0]])
    weights = [math.exp((float(scores[t]) - best) / how.temperature) for t in kept]
    total = 0.0
    for w in weights:
        total += w
    share, count = 0.0, 0
    while count < len(weights) and (count == 0 or share < how.top_p * total):
        share += weights[count]
        count += 1
    at = random.next() * share
    for t, w in zip(kept[:count], weights, strict=False):
        at -= w
        if at < 0:
            return int(t)
    return int(kept[count - 1])
