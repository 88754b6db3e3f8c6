"""Special functions that numpy lacks, for one number at a time, and their extension to arrays.

kernels/special.h has the same formulas in C.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


_LGAMMA = 2.55e305  # above, the logarithm of Γ has no double


def elementwise(f: Callable[..., float]) -> Callable[..., Array]:
    """A numpy function from a function of one number, where numpy lacks it."""
    vector = np.vectorize(f, otypes=[np.float64])

    def apply(*xs: Any) -> Array:
        shape = np.broadcast_shapes(*map(np.shape, xs))
        dtype = np.result_type(*xs)
        return vector(*xs).astype(dtype) if math.prod(shape) else np.zeros(shape, dtype)
    return apply


def lgamma(x: float) -> float:
    """log |Γ(x)|; infinite at 0, at negative integers and beyond 2.5·10³⁰⁵."""
    if abs(x) > _LGAMMA or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def digamma(x: float) -> float:
    """Asymptotic series above 10, reached by recurrence; reflection below 0 (DLMF 5.11.2, 5.5)."""
    if math.isnan(x) or x == -math.inf:
        return math.nan
    if x == math.inf:
        return math.inf
    if x <= 0:
        if x == math.floor(x):
            return math.copysign(math.inf, -math.copysign(1.0, x)) if x == 0 else math.nan
        return digamma(1 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1.0))
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    r = 1 / (x * x)
    tail = 1 / 240 - r * (1 / 132 - r * (691 / 32760 - r / 12))
    series = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * tail)))
    return shift + math.log(x) - 0.5 / x - series


_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def polygamma(n: float, x: float) -> float:
    """The n-th derivative of digamma, (−1)ⁿ⁺¹ n! ζ(n+1, x): Σ x⁻ˢ until x is large, then the series
    of Euler and Maclaurin (DLMF 5.15, 25.11.43); n = 1 is reflected below 0. NaN unless n is whole
    and at most 10000, and below −10000 for n > 1."""
    if n == 0:
        return digamma(x)
    if math.isnan(x) or not 0 < n <= 1e4 or n != math.floor(n) or x == -math.inf \
            or (x < -1e4 and n > 1):
        return math.nan
    sign = 1.0 if n % 2 else -1.0
    if x == math.inf:
        return 0.0 * sign
    if x <= 0 and x == math.floor(x):
        return sign * math.inf
    if x < 0 and n == 1:
        root = math.pi / math.sin(math.pi * math.remainder(x, 1.0))
        return root * root - polygamma(1, 1 - x)
    s, total = float(n + 1), 0.0
    while x < 10 + n:
        total += float(np.power(x, -s))
        x += 1
    total += float(np.power(x, 1 - s)) / n + 0.5 * float(np.power(x, -s))
    term = s * float(np.power(x, -s - 1)) / 2
    for k, b in enumerate(_BERNOULLI, 1):
        total += b * term
        term *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * x * x)
    return sign * (math.gamma(s) if s < 171 else math.inf) * total


def erf_inv(x: float) -> float:
    """Inverse error function: Winitzki's approximation, then Newton steps to full precision."""
    if math.isnan(x) or abs(x) > 1:
        return math.nan
    if abs(x) == 1:
        return math.copysign(math.inf, x)
    if x == 0:
        return x
    a, log = 0.147, math.log1p(-x * x)
    b = 2 / (math.pi * a) + log / 2
    y = math.copysign(math.sqrt(math.sqrt(b * b - log / a) - b), x)
    for _ in range(4):
        error = math.erf(y) - x if abs(x) < 0.9 else math.copysign(1.0, x) * (
            (1 - abs(x)) - math.erfc(abs(y)))
        y -= error / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return y


# ---- the incomplete gamma functions ------------------------------------------------------------

def igamma(a: float, x: float) -> float:
    """P(a, x) = γ(a, x) / Γ(a): by its series for x < a + 1, else by 1 − Q (DLMF 8.2, 8.11.4)."""
    edge = _gamma_edge(a, x)
    if edge is not None:
        return edge
    if a > _LARGE:
        return _gamma_large(a, x, -1.0)
    return _gamma_series(a, x) if x < a + 1 else 1 - _gamma_fraction(a, x)


def igammac(a: float, x: float) -> float:
    """Q(a, x) = 1 − P(a, x), by a continued fraction for x ≥ a + 1 (DLMF 8.9.2)."""
    edge = _gamma_edge(a, x)
    if edge is not None:
        return 1 - edge
    if a > _LARGE:
        return _gamma_large(a, x, 1.0)
    return 1 - _gamma_series(a, x) if x < a + 1 else _gamma_fraction(a, x)


def _gamma_edge(a: float, x: float) -> float | None:
    """P(a, x) where a limit gives it."""
    if math.isnan(a) or math.isnan(x) or a < 0 or x < 0 or (a == 0 and x == 0) or (
            math.isinf(a) and math.isinf(x)):
        return math.nan
    if a == 0 or math.isinf(x):
        return 1.0
    return 0.0 if x == 0 or math.isinf(a) else None


_LARGE = 1e5  # of a: there the series and the fraction have terms in proportion to √a


def _gamma_large(a: float, x: float, side: float) -> float:
    """Q(a, x) for side 1, P(a, x) for −1, a being large: Temme's expansion, uniform in x, with its
    first two coefficients (DLMF 8.12.3 to 8.12.10)."""
    m = (x - a) / a
    near = abs(m) < 1e-3
    excess = m * m * (0.5 - m * (1 / 3 - m * (0.25 - m * (0.2 - m / 6)))) if near else (
        m - math.log(max(x / a, 1e-300)))
    eta = math.copysign(math.sqrt(2 * excess), m)
    c0 = -1 / 3 + eta / 12 - 2 * eta * eta / 135 if near else 1 / m - 1 / eta
    rest = math.exp(-a * excess) / math.sqrt(2 * math.pi * a) * (c0 - (1 / 540 + eta / 288) / a)
    return 0.5 * math.erfc(side * eta * math.sqrt(a / 2)) + side * rest


def _gamma_series(a: float, x: float) -> float:
    term = total = 1.0
    n = a
    while term > total * 1e-17:
        n += 1
        term *= x / n
        total += term
    return total * math.exp(a * math.log(x) - x - math.lgamma(a + 1))


def _gamma_fraction(a: float, x: float) -> float:
    """The continued fraction of Q(a, x), by Lentz's method."""
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 10000):
        step = -i * (i - a)
        b += 2
        d = step * d + b
        c = b + step / c
        d = 1 / (d if abs(d) > 1e-300 else 1e-300)
        c = c if abs(c) > 1e-300 else 1e-300
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return h * math.exp(a * math.log(x) - x - math.lgamma(a))


# ---- modified Bessel functions -----------------------------------------------------------------

def i0e(x: float) -> float:
    """I₀(x)·e^−|x|"""
    return _bessel_i(0, abs(x))


def i1e(x: float) -> float:
    """I₁(x)·e^−|x|"""
    return math.copysign(_bessel_i(1, abs(x)), x) if x else x


def _bessel_i(order: int, x: float) -> float:
    """e^−x·I(x) for order 0 or 1: the power series below 20, which has no cancellation, then the
    asymptotic one (DLMF 10.25.2, 10.40.1)."""
    if not x < math.inf:
        return 0.0 if x == math.inf else math.nan
    term = total = 1.0
    if x < 20:
        for k in range(1, 60):
            term *= x * x / (4 * k * (k + order))
            total += term
        return total * math.exp(-x) * (x / 2 if order else 1.0)
    for k in range(1, 20):
        term *= ((2 * k - 1) ** 2 - 4 * order) / (8 * k * x)
        total += term
    return total / math.sqrt(2 * math.pi) / math.sqrt(x)
