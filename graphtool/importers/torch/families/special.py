"""Special functions: gamma and Bessel functions, and orthogonal polynomials by recurrence."""

from __future__ import annotations

from typing import Any

from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten


@aten("polygamma")
def polygamma(c: Context, n: int, self: Array) -> Any:
    """polygamma(n, x), the n-th derivative of digamma, in the float type of the result."""
    return o.polygamma(n, c.cast(self, c.out.dtype))


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
