"""jax.random: the same bits from the same key (threefry), and the distributions made of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import random

from tests.lab.jax_cases import Case, f, key, words

_PLAIN = words("""
    normal uniform exponential gumbel laplace logistic cauchy maxwell
""")


def _random(name: str, fn: Any, *args: Any) -> Case:
    return Case(f"random.{name}", fn, (key(), *args), 5e-5)


def _drawn(name: str) -> Any:
    return lambda k: getattr(random, name)(k, shape=(3, 5))


CASES: list[Case] = [
    *(_random(n, _drawn(n)) for n in _PLAIN),
    _random("bits", lambda k: [random.bits(k, (5, 3)), random.bits(k, (4,), jnp.uint8)]),
    _random("split", lambda k: random.split(k, 3)),
    _random("fold_in", lambda k: random.fold_in(k, 42)),
    _random("randint", lambda k: random.randint(k, (20,), -5, 9)),
    _random("bernoulli", lambda k: random.bernoulli(k, 0.3, (20,))),
    _random("permutation", lambda k, x: random.permutation(k, x), f(9, 2)),
    _random("choice", lambda k, x: [random.choice(k, x, (4,)), random.choice(
        k, x, (4,), replace=False)], f(9)),
    _random("categorical", lambda k, x: random.categorical(k, x), f(4, 6)),
    _random("truncated_normal", lambda k: random.truncated_normal(k, -1.0, 2.0, (3, 5))),
    _random("multivariate_normal", lambda k, x: random.multivariate_normal(
        k, x[0], x @ x.T + jnp.eye(3)), f(3, 3)),
    _random("orthogonal", lambda k: jnp.abs(random.orthogonal(k, 3))),
    _random("gamma", lambda k: random.gamma(k, 2.5, (4,))),
    _random("beta", lambda k: random.beta(k, 2.0, 3.0, (4,))),
    _random("dirichlet", lambda k: random.dirichlet(k, jnp.ones(3), (2,))),
    _random("poisson", lambda k: random.poisson(k, 3.0, (6,))),
    _random("t", lambda k: random.t(k, 4.0, (4,))),
    _random("dropout", lambda k, x: jnp.where(random.bernoulli(k, 0.5, x.shape), x / 0.5, 0.0),
            f(3, 6)),
    _random("loop", lambda k: jax.lax.fori_loop(0, 3, lambda i, s: (
        random.split(s[0])[0], s[1] + random.normal(s[0], (4,))), (k, jnp.zeros(4)))),
]
