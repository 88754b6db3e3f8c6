"""Numbers with their error: what a value is in real arithmetic, and how far the computed one may be
from it.

`lo ≤ x ≤ hi` for the real number, and `|computed − x| ≤ err`. All three are arrays in float64;
after each operation they are widened by a part in 10¹², which is more than float64 rounds away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from graphtool.dtypes import DType

Array = np.ndarray[Any, Any]
_WIDER = 1e-12  # float64 rounds sums of a few thousand terms by less
_TINY = 1e-300


@dataclass(frozen=True)
class Enclosure:
    """An array of real numbers between `lo` and `hi`, computed with an error of at most `err`."""

    lo: Array
    hi: Array
    err: Array

    @property
    def most(self) -> Array:
        """The greatest magnitude of the computed number."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi)) + self.err

    @property
    def computed(self) -> tuple[Array, Array]:
        """Between which numbers the computed one is."""
        return self.lo - self.err, self.hi + self.err

    def tube(self) -> Enclosure:
        """The numbers that may be computed, as real numbers."""
        return Enclosure(*self.computed, np.zeros_like(self.err))

    def real(self) -> Enclosure:
        """The same without error."""
        return replace(self, err=np.zeros_like(self.err))

    def about(self) -> Enclosure:
        """The middle of the numbers that may be computed, and their distance from it as error."""
        low, high = self.computed
        middle = np.where(low == high, low, (low + high) / 2)
        rest = np.where(low == high, 0.0, (high - low) / 2 + np.abs(middle) * _WIDER)
        return Enclosure(middle, middle, rest)

    def map(self, move: Callable[[Array], Array]) -> Enclosure:
        """The enclosure after a function that only moves elements."""
        return Enclosure(move(self.lo), move(self.hi), move(self.err))


def exactly(x: Any) -> Enclosure:
    """Numbers that are known, without error."""
    x = np.asarray(x, np.float64)
    return Enclosure(x, x, np.zeros_like(x))


def enclosed(lo: Any, hi: Any, err: Any) -> Enclosure:
    """An enclosure, widened for the rounding of its own computation; NaN counts as unbounded."""
    lo, hi, err = np.broadcast_arrays(*(np.asarray(x, np.float64) for x in (lo, hi, err)))
    lo = np.where(np.isnan(lo), -np.inf, lo - np.abs(lo) * _WIDER - _TINY)
    hi = np.where(np.isnan(hi), np.inf, hi + np.abs(hi) * _WIDER + _TINY)
    return Enclosure(lo, hi, np.where(np.isnan(err), np.inf, err * (1 + _WIDER)))


@dataclass(frozen=True)
class Precision:
    """A float type: `unit` is half a unit in the last place of 1, `least` half the least positive
    number, `greatest` the greatest number."""

    unit: float
    least: float
    greatest: float

    def rounds(self, most: Array, units: float = 1.0) -> Array:
        """The error of results up to `most` that are rounded with so many `units`; unbounded
        where they may overflow."""
        return np.where(most * (1 + units * self.unit) > self.greatest, np.inf,
                        units * (self.unit * most + self.least))

    def sums(self, terms: int, most: Array) -> Array:
        """The error of a sum of products in any order, fused or not: γₙ·Σ|aᵢ·bᵢ| (Higham, Accuracy
        and Stability, 3.1) with n = terms + 1; `most` is Σ|aᵢ·bᵢ|."""
        n = terms + 1
        if n * self.unit >= 1:
            return np.full(np.shape(most), np.inf)
        gamma = n * self.unit / (1 - n * self.unit)
        return np.where(most * (1 + gamma) > self.greatest, np.inf,
                        gamma * most + 2 * n * self.least)


EXACT = Precision(0.0, 0.0, np.inf)  # real arithmetic


def precision(dtype: DType) -> Precision:
    """The precision of a type. Integers are exact up to their greatest number."""
    if not dtype.is_float:
        return Precision(0.0, 0.0, float(dtype.high) if dtype.is_integer else 1.0)
    info = ml_dtypes.finfo(dtype.numpy)
    return Precision(float(info.eps) / 2, float(info.smallest_subnormal) / 2, float(info.max))


# ---- operations --------------------------------------------------------------------------------

def added(x: Enclosure, y: Enclosure) -> Enclosure:
    """x + y before it is rounded."""
    return enclosed(x.lo + y.lo, x.hi + y.hi, x.err + y.err)


def negative(x: Enclosure) -> Enclosure:
    """−x."""
    return Enclosure(-x.hi, -x.lo, x.err)


def multiplied(x: Enclosure, y: Enclosure) -> Enclosure:
    """x·y before it is rounded. In Σ err the product of both errors counts once."""
    ends = [_product(a, b) for a in (x.lo, x.hi) for b in (y.lo, y.hi)]
    lo, hi = np.minimum.reduce(np.broadcast_arrays(*ends)), np.maximum.reduce(
        np.broadcast_arrays(*ends))
    real = [np.maximum(np.abs(v.lo), np.abs(v.hi)) for v in (x, y)]
    return enclosed(lo, hi, _product(real[0], y.err) + _product(real[1], x.err)
                    + _product(x.err, y.err))


def _product(a: Array, b: Array) -> Array:
    """a·b, where 0·∞ is 0: a bound of 0 is not exceeded, whatever it is multiplied with."""
    return np.where((a == 0) | (b == 0), 0.0, a * b)


def inverse(x: Enclosure) -> Enclosure:
    """1 / x before it is rounded; unbounded where the number or the computed one may be 0."""
    low, high = x.computed
    away = (low > 0) | (high < 0)
    nearest = np.where(away, np.minimum(np.abs(x.lo), np.abs(x.hi)), np.inf)
    least = nearest - x.err
    lo, hi = np.where(away, 1 / np.where(away, x.hi, 1), -np.inf), np.where(
        away, 1 / np.where(away, x.lo, 1), np.inf)
    err = np.where(away, x.err / np.where(away, nearest * least, 1), np.inf)
    return enclosed(lo, hi, err)


def rising(f: Callable[[Array], Array], slope: Callable[[Array, Array], Array], x: Enclosure,
           ) -> Enclosure:
    """A function that never falls; `slope(lo, hi)` is its steepest slope between two numbers. The
    error is no more than the slope allows, nor than the function rises."""
    low, high = x.computed
    lo, hi = f(x.lo), f(x.hi)
    slopes = slope(low, high)
    err = np.where(x.err == 0, 0.0, np.minimum(_product(slopes, x.err), f(high) - f(low)))
    return enclosed(lo, hi, err)


def limited(x: Enclosure, low: float, high: float) -> Enclosure:
    """What is known to be between two numbers in real arithmetic."""
    return Enclosure(np.clip(x.lo, low, high), np.clip(x.hi, low, high), x.err)


def rounded(x: Enclosure, p: Precision, units: float = 1.0) -> Enclosure:
    """x after a result was rounded with so many units in the last place."""
    return enclosed(x.lo, x.hi, x.err + p.rounds(x.most, units))
