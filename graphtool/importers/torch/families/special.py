"""Special functions: Bessel functions, orthogonal polynomials by recurrence, and functions of
logarithms that are finite where their limit is, in values and in gradients."""

from __future__ import annotations

import math
from typing import Any

from graphtool.importers.torch.families.elementwise import operands
from graphtool.importers.torch.kit import Array, Context, Refused, aten, o

# ---- Bessel ------------------------------------------------------------------------------------

def _bessel(scaled: Any) -> Any:
    def handler(c: Context, self: Array) -> Any:
        x = c.cast(self, c.out.dtype)
        return scaled(x) * o.exp(abs(x))
    return handler


aten("i0", "special_i0", "special_modified_bessel_i0")(_bessel(o.i0e))
aten("special_i1", "special_modified_bessel_i1")(_bessel(o.i1e))


@aten("special_spherical_bessel_j0")
def spherical_bessel_j0(c: Context, x: Array) -> Any:
    """sin(x) / x; where |x| < 0.5 by the power series."""
    v = c.cast(x, c.out.dtype)
    near = abs(v) < 0.5
    square = v * v
    series: Any = 1.0
    for k in (10, 8, 6, 4, 2):  # 1 − x²/6·(1 − x²/20·(…))
        series = 1.0 - square * (series * (1 / (k * (k + 1))) if isinstance(series, Array)
                                 else series / (k * (k + 1)))
    away = o.sin(v) / o.select(near, 1.0, v)
    return o.select(near, series, o.select(o.is_inf(v), 0.0, away))


# ---- orthogonal polynomials --------------------------------------------------------------------

# name → (p₁ as a·x + b, the recurrence pₖ₊₁ = (a·x + b)·pₖ + c·pₖ₋₁ as (a, b, c) of k)
_POLYNOMIALS: dict[str, tuple[tuple[float, float], Any]] = {
    "chebyshev_polynomial_t": ((1, 0), lambda k: (2, 0, -1)),
    "chebyshev_polynomial_u": ((2, 0), lambda k: (2, 0, -1)),
    "chebyshev_polynomial_v": ((2, -1), lambda k: (2, 0, -1)),
    "chebyshev_polynomial_w": ((2, 1), lambda k: (2, 0, -1)),
    "shifted_chebyshev_polynomial_t": ((2, -1), lambda k: (4, -2, -1)),
    "shifted_chebyshev_polynomial_u": ((4, -2), lambda k: (4, -2, -1)),
    "shifted_chebyshev_polynomial_v": ((4, -3), lambda k: (4, -2, -1)),
    "shifted_chebyshev_polynomial_w": ((4, -1), lambda k: (4, -2, -1)),
    "hermite_polynomial_h": ((2, 0), lambda k: (2, 0, -2 * k)),
    "hermite_polynomial_he": ((1, 0), lambda k: (1, 0, -k)),
    "laguerre_polynomial_l": ((-1, 1), lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1),
                                                  -k / (k + 1))),
    "legendre_polynomial_p": ((1, 0), lambda k: ((2 * k + 1) / (k + 1), 0, -k / (k + 1))),
}
_HIGHEST = 64


def _polynomial(first: tuple[float, float], step: Any) -> Any:
    def handler(c: Context, x: Any, n: Any) -> Any:
        """The polynomial of degree n at x; n is a number of at most 64."""
        if isinstance(n, Array):
            raise Refused("a polynomial whose degree is a tensor is not supported; the degree "
                          "must be a number")
        if n > _HIGHEST:
            raise Refused(f"a polynomial of degree {n} is not supported; the highest degree is "
                          f"{_HIGHEST}")
        v = c.cast(x, c.out.dtype)
        if n < 0:
            return c.full(v.shape, 0.0, v.dtype)
        before, here = c.full(v.shape, 1.0, v.dtype), _line(v, *first)
        for k in range(1, int(n)):
            a, b, less = step(k)
            before, here = here, _line(v, a, b) * here + before * float(less)
        return here if n >= 1 else before
    return handler


def _line(x: Array, a: float, b: float) -> Any:
    y = x * float(a)
    return y + float(b) if b else y


for _name, (_first, _step) in _POLYNOMIALS.items():
    aten(f"special_{_name}")(_polynomial(_first, _step))


# ---- functions of logarithms --------------------------------------------------------------------

@aten("logaddexp")
def logaddexp(c: Context, self: Any, other: Any) -> Any:
    """log(exp a + exp b) as max(a, b) + log1p(exp(−|a − b|))."""
    return log_of_sum(*operands(c, self, other))


def log_of_sum(a: Any, b: Any) -> Any:
    """log(exp a + exp b). Equal operands share the gradient, infinite ones too."""
    equal, big = o.eq(a, b), o.max(a, b)
    gap = o.select(equal, 0.0, o.min(a, b) - big)  # not ∞ − ∞
    both = a * 0.5 + b * 0.5 + math.log(2)
    return o.select(equal, both, big + o.log1p(o.exp(gap)))


def _times_log(log: Any, one: float) -> Any:
    """a·log(b), and 0 where a = 0 and the logarithm is not finite; so are its gradients."""
    def handler(c: Context, self: Any, other: Any) -> Any:
        a, b = (c.full((), x, c.out.dtype) if not isinstance(x, Array) else x
                for x in operands(c, self, other))
        outside = (b <= one - 1.0) | o.eq(b, math.inf)
        return a * log(o.select(o.eq(a, 0.0) & outside, one, b))
    return handler


aten("xlogy", "special_xlogy")(_times_log(o.log, 1.0))
aten("special_xlog1py")(_times_log(o.log1p, 0.0))


@aten("logit", "special_logit")
def logit(c: Context, self: Array, eps: float | None = None) -> Any:
    """log x − log(1 − x); with `eps` ≥ 0, of x cut to [eps, 1 − eps]: first from below, so that
    eps > 0.5 makes x < eps to eps, and x ≥ eps to 1 − eps."""
    x = c.cast(self, c.out.dtype)
    if eps is not None and eps > 0.5:
        x = o.select(x < eps, eps, o.select(x > 1.0 - eps, 1.0 - eps, x))
    elif eps is not None and eps >= 0:
        x = o.clamp(x, eps, 1.0 - eps)
    return o.log(x) - o.log1p(-x)


@aten("special_entr")
def entr(c: Context, self: Array) -> Any:
    """−x·log x, 0 at 0 and −∞ below; the gradient at 0 is ∞, as torch's."""
    x = c.cast(self, c.out.dtype)
    zero, below = o.eq(x, 0.0), x < 0.0
    away = o.select(zero | below, 1.0, x)
    steep = o.sqrt(o.select(zero, x, 1.0))  # 0 with an infinite gradient
    return o.select(below, -math.inf, o.select(zero, steep, -(away * o.log(away))))
