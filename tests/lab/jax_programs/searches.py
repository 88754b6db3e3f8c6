"""Clustering, decoding, quantised products, dynamic programming."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.lab.jax_cases import f, ints
from tests.lab.jax_programs import Program


def _kmeans(x: Any) -> Any:
    def step(_: Any, centres: Any) -> Any:
        near = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
        sums = jax.ops.segment_sum(x, near, 16)
        counts = jax.ops.segment_sum(jnp.ones(len(x)), near, 16)
        return sums / jnp.maximum(counts, 1)[:, None]
    return lax.fori_loop(0, 10, step, x[:16])


def _quantised(x: Any, w: Any, scale: Any) -> Any:
    """A product of bytes: rows of x are quantised by their greatest element."""
    top = jnp.abs(x).max(-1, keepdims=True) / 127
    q = jnp.clip(jnp.round(x / top), -127, 127).astype(jnp.int8)
    y = lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    return y.astype(jnp.float32) * top * scale


def _beam(p: Any) -> Any:
    """A beam search through a table of transitions, of 16 words."""
    def step(c: Any, _: Any) -> Any:
        score, word = c
        total = score[:, None] + jax.nn.log_softmax(p[word])
        best, at = lax.top_k(total.reshape(-1), 8)
        return (best, at % p.shape[1]), (at // p.shape[1], at % p.shape[1])
    start = jnp.where(jnp.arange(8) == 0, 0.0, -1e9)
    return lax.scan(step, (start, jnp.zeros(8, jnp.int32)), None, 16)


def _decode(p: Any, cache: Any, x: Any, at: Any) -> Any:
    """A step of attention with a cache of keys and values."""
    q, k, v = (x @ p[n] for n in "qkv")
    keys = lax.dynamic_update_slice(cache[0], k[:, None], (0, at, 0))
    values = lax.dynamic_update_slice(cache[1], v[:, None], (0, at, 0))
    a = jnp.einsum("bd,btd->bt", q, keys) / 8
    a = jax.nn.softmax(jnp.where(jnp.arange(keys.shape[1]) <= at, a, -1e9))
    return jnp.einsum("bt,btd->bd", a, values) @ p["o"], (keys, values)


def _forward_algorithm(p: Any, seen: Any) -> Any:
    """The likelihood of a hidden Markov model."""
    move, emit = jax.nn.log_softmax(p["move"]), jax.nn.log_softmax(p["emit"])

    def step(a: Any, o: Any) -> Any:
        a = jax.nn.logsumexp(a[:, :, None] + move, 1) + emit[:, o].T
        return a, None
    first = jnp.broadcast_to(emit[:, 0], (seen.shape[1], move.shape[0]))
    return jax.nn.logsumexp(lax.scan(step, first, seen)[0], 1)


def _mixture(p: Any, x: Any) -> Any:
    """Steps of expectation and maximisation for a mixture of normal distributions."""
    def step(_: Any, c: Any) -> Any:
        mean, scale, share = c
        log = jnp.log(share) - jnp.log(scale).sum(-1) - 0.5 * (
            ((x[:, None] - mean) / scale) ** 2).sum(-1)
        own = jax.nn.softmax(log)
        count = own.sum(0)
        mean = own.T @ x / count[:, None]
        spread = own.T @ (x ** 2) / count[:, None] - mean ** 2
        return mean, jnp.sqrt(spread + 1e-3), count / len(x)
    return lax.fori_loop(0, 10, step, p)


def _life(board: Any) -> Any:
    def step(b: Any, _: Any) -> Any:
        near = sum(jnp.roll(b, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - b
        return ((near == 3) | ((b == 1) & (near == 2))).astype(b.dtype), None
    return lax.scan(step, board, None, 32)[0]


def PROGRAMS() -> list[Program]:
    attention = {n: f(64, 64, seed=i) / 8 for i, n in enumerate("qkvo")}
    markov = {"move": f(16, 16), "emit": f(16, 32, seed=1)}
    x = f(1000, 4)
    return [
        Program("k-means", _kmeans, (f(1000, 8),), tolerance=1e-3),
        Program("quantised product", _quantised, (f(64, 512), ints(127, 512, 256, low=-127).astype(
            np.int8), f(256) ** 2)),
        Program("beam search", _beam, (f(200, 200),)),
        Program("cached attention", _decode, (attention, (f(8, 128, 64), f(8, 128, 64, seed=1)),
                                              f(8, 64, seed=2), np.int32(77))),
        Program("markov model", _forward_algorithm, (markov, ints(32, 40, 16)),
                lambda p, s: -_forward_algorithm(p, s).mean()),
        Program("mixture", _mixture, ((x[:8].copy(), np.ones((8, 4), np.float32), np.full(
            8, 1 / 8, np.float32)), x), tolerance=2e-3),
        Program("life", _life, ((f(64, 64) > 0).astype(np.int32),)),
    ]
