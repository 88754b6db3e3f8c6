"""Whole programs: networks with their gradients, solvers, filters, searches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.lab.jax_cases import Case, f, ints


def _mlp(p: Any, x: Any) -> Any:
    h = jax.nn.relu(x @ p["w1"] + p["b1"])
    return h @ p["w2"] + p["b2"]


def _loss(p: Any, x: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(_mlp(p, x)), y[:, None], 1).mean()


def _sgd_step(p: Any, x: Any, y: Any) -> Any:
    value, grads = jax.value_and_grad(_loss)(p, x, y)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, p, grads)


_MLP = {"w1": f(6, 8), "b1": f(8, seed=1), "w2": f(8, 4, seed=2), "b2": f(4, seed=3)}


def _attention(p: Any, x: Any) -> Any:
    """A block of a transformer: layer norm, four heads with a causal mask, and an MLP."""
    def norm(v: Any) -> Any:
        m = v.mean(-1, keepdims=True)
        return (v - m) * lax.rsqrt(((v - m) ** 2).mean(-1, keepdims=True) + 1e-5)
    b, t, d = x.shape
    q, k, v = ((norm(x) @ p[n]).reshape(b, t, 4, d // 4) for n in ("q", "k", "v"))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / jnp.sqrt(d / 4)
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
    y = x + jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v).reshape(b, t, d) @ p["o"]
    return y + jax.nn.gelu(norm(y) @ p["up"]) @ p["down"]


_BLOCK = {n: 0.3 * f(*s, seed=i) for i, (n, s) in enumerate({
    "q": (16, 16), "k": (16, 16), "v": (16, 16), "o": (16, 16), "up": (16, 32),
    "down": (32, 16)}.items())}


def _rnn(p: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ p["h"] + x @ p["x"])
        return h, h @ p["y"]
    return lax.scan(step, jnp.zeros((xs.shape[1], 5)), xs)


_RNN = {"h": f(5, 5), "x": f(3, 5, seed=1), "y": f(5, 2, seed=2)}


def _integrate(y: Any) -> Any:
    """A pendulum by Runge and Kutta's method, until its angle changes its sign."""
    def slope(s: Any) -> Any:
        return jnp.array([s[1], -9.81 * jnp.sin(s[0])])

    def step(c: Any) -> Any:
        t, s = c
        k1 = slope(s)
        k2 = slope(s + 0.005 * k1)
        k3 = slope(s + 0.005 * k2)
        k4 = slope(s + 0.01 * k3)
        return t + 0.01, s + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return lax.while_loop(lambda c: (c[1][0] > 0) & (c[0] < 5), step, (0.0, y))


def _kmeans(x: Any) -> Any:
    def step(_: Any, centres: Any) -> Any:
        near = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
        sums = jax.ops.segment_sum(x, near, 3)
        counts = jax.ops.segment_sum(jnp.ones(len(x)), near, 3)
        return sums / jnp.maximum(counts, 1)[:, None]
    return lax.fori_loop(0, 6, step, x[:3])


def _beam(scores: Any, table: Any) -> Any:
    """One step of a beam search with four beams over 10 words."""
    total = scores[:, None] + jax.nn.log_softmax(table)
    best, flat = lax.top_k(total.reshape(-1), 4)
    return best, flat // 10, flat % 10


def _kalman(zs: Any) -> Any:
    a, h = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])
    q, r = 0.01 * jnp.eye(2), jnp.array([[0.5]])

    def step(c: Any, z: Any) -> Any:
        x, p = a @ c[0], a @ c[1] @ a.T + q
        gain = jnp.linalg.solve(h @ p @ h.T + r, h @ p).T
        x = x + gain @ (z - h @ x)
        return (x, (jnp.eye(2) - gain @ h) @ p), x
    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), zs)


def _convnet(p: Any, x: Any) -> Any:
    y = lax.conv_general_dilated(x, p["c1"], (1, 1), "SAME", dimension_numbers=(
        "NHWC", "HWIO", "NHWC"))
    y = lax.reduce_window(jax.nn.relu(y), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return y.reshape(x.shape[0], -1) @ p["w"]


_CONV = {"c1": f(3, 3, 2, 4), "w": f(36, 3, seed=1)}


def _adam(p: Any, m: Any, v: Any, x: Any, y: Any) -> Any:
    g = jax.grad(_loss)(p, x, y)
    m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
    v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
    return jax.tree.map(lambda w, a, b: w - 0.01 * a / (jnp.sqrt(b) + 1e-8), p, m, v), m, v


_ZEROS = jax.tree.map(lambda x: 0 * x, _MLP)
CASES: list[Case] = [Case(f"programs.{n}", fn, args, 1e-4) for n, fn, args in (
    ("mlp", _mlp, (_MLP, f(5, 6))),
    ("mlp training step", _sgd_step, (_MLP, f(5, 6), ints(4, 5))),
    ("mlp adam step", _adam, (_MLP, _ZEROS, _ZEROS, f(5, 6), ints(4, 5))),
    ("attention block", _attention, (_BLOCK, f(2, 6, 16))),
    ("attention gradient", jax.grad(lambda p, x: (_attention(p, x) ** 2).mean()),
     (_BLOCK, f(2, 6, 16))),
    ("rnn", _rnn, (_RNN, f(7, 2, 3))),
    ("rnn gradient", jax.grad(lambda p, x: (_rnn(p, x)[1] ** 2).mean()), (_RNN, f(7, 2, 3))),
    ("convnet", _convnet, (_CONV, f(2, 6, 6, 2))),
    ("convnet gradient", jax.grad(lambda p, x: (_convnet(p, x) ** 2).mean()),
     (_CONV, f(2, 6, 6, 2))),
    ("pendulum", _integrate, (jnp.array([1.0, 0.0]),)),
    ("k-means", _kmeans, (f(20, 2),)),
    ("beam step", _beam, (f(4), f(4, 10))),
    ("kalman filter", _kalman, (f(9, 1),)),
    ("hessian", jax.hessian(lambda x: (jnp.sin(x) * x[::-1]).sum()), (f(4),)),
    ("jacobian", jax.jacfwd(lambda x: jnp.cumsum(x ** 2)), (f(4),)),
    ("vmap", jax.vmap(lambda x, i: x[i] * jnp.sort(x), (0, 0)), (f(3, 5), ints(5, 3))),
    ("newton", lambda x: lax.fori_loop(0, 8, lambda i, v: v - jax.grad(
        lambda u: (u ** 4 - 3 * u).sum())(v) / (12 * v ** 2 + 1), x), (f(4),)),
    ("checkpointed", jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), (f(4),)),
)]
