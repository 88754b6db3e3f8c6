"""jax.scipy: special functions, statistics, linear algebra, signals."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import scipy

from tests.lab.jax_cases import Case, f, unit, words

_SPECIAL = words("""
    digamma erf erfc erfinv expit gamma gammaln i0 i0e i1 i1e log_ndtr logit ndtr ndtri entr
    loggamma log_softmax softmax factorial spence exp1 expi sici
""")
_PAIRS = words("""
    beta betaln gammainc gammaincc rel_entr xlogy xlog1py kl_div poch
""")
_STATS = {"norm": (), "expon": (), "laplace": (), "logistic": (), "cauchy": (), "uniform": (),
          "gamma": (2.5,), "beta": (2.0, 3.0), "t": (4.0,), "chi2": (3.0,), "pareto": (2.0,)}


def _case(name: str, fn: Any, *args: Any, tolerance: float = 5e-5) -> Case:
    return Case(f"scipy.{name}", fn, args, tolerance)


_SPD = "linalg."
CASES: list[Case] = [
    *(_case(f"special.{n}", getattr(scipy.special, n), unit(3, 5)) for n in _SPECIAL),
    *(_case(f"special.{n}", getattr(scipy.special, n), unit(3, 5) * 2, unit(3, 5, seed=1) * 2)
      for n in _PAIRS),
    _case("special.logsumexp", lambda x: scipy.special.logsumexp(x, axis=1), f(3, 5)),
    _case("special.polygamma", lambda x: scipy.special.polygamma(1, x), unit(5) + 1,
          tolerance=1e-4),
    _case("special.zeta", lambda x: scipy.special.zeta(x + 2, 1.5), unit(5), tolerance=1e-4),
    _case("special.betainc", lambda x: scipy.special.betainc(2.0, 3.0, x), unit(5),
          tolerance=1e-4),
    *(_case(f"stats.{n}.logpdf", lambda x, n=n, a=a: getattr(scipy.stats, n).logpdf(x, *a),
            unit(3, 5) + (1 if n == "pareto" else 0)) for n, a in _STATS.items()),
    _case("stats.norm.cdf", lambda x: [scipy.stats.norm.cdf(x), scipy.stats.norm.sf(x),
                                       scipy.stats.norm.logcdf(x)], f(3, 5)),
    _case("stats.norm.ppf", scipy.stats.norm.ppf, unit(3, 5)),
    _case("stats.poisson.logpmf", lambda x: scipy.stats.poisson.logpmf(jnp.floor(x * 5), 2.5),
          unit(3, 5)),
    _case("stats.rankdata", scipy.stats.rankdata, f(7)),
    _case("linalg.cho_solve", lambda a, b: scipy.linalg.cho_solve(scipy.linalg.cho_factor(
        a @ a.T + jnp.eye(4)), b), f(4, 4), f(4, 2, seed=1), tolerance=1e-3),
    _case("linalg.solve_triangular", lambda a, b: scipy.linalg.solve_triangular(
        jnp.tril(a) + 3 * jnp.eye(4), b, lower=True), f(4, 4), f(4, 2, seed=1)),
    _case("linalg.lu", lambda a: scipy.linalg.lu(a), f(4, 4), tolerance=1e-4),
    _case("linalg.expm", lambda a: scipy.linalg.expm(a * 0.3), f(4, 4), tolerance=1e-4),
    _case("linalg.block_diag", lambda a, b: scipy.linalg.block_diag(a, b), f(2, 3), f(3, 2)),
    _case("linalg.toeplitz", scipy.linalg.toeplitz, f(4), f(5, seed=1)),
    _case("signal.convolve", lambda a, b: scipy.signal.convolve(a, b, "same"), f(9, 8),
          f(3, 3, seed=1)),
    _case("signal.detrend", scipy.signal.detrend, f(3, 16), tolerance=1e-4),
    _case("ndimage.map_coordinates", lambda x, c: scipy.ndimage.map_coordinates(
        x, c, order=1), f(5, 6), unit(2, 7) * 4),
    _case("fft.dct", lambda x: scipy.fft.dct(x), f(3, 8)),
    _case("interpolate", lambda x, q: scipy.interpolate.RegularGridInterpolator(
        (jnp.arange(5.0), jnp.arange(6.0)), x)(q), f(5, 6), unit(7, 2) * 4),
]
