"""Networks in plain JAX, trained by optax, which only the training imports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.lab.jax_cases import f, ints
from tests.lab.jax_programs import Program


def trained(loss: Callable[..., Any], optimizer: Any) -> Callable[..., Any]:
    """A step of training: parameters, optimizer state and data to both and the loss."""
    import optax

    def step(p: Any, s: Any, *data: Any) -> Any:
        value, g = jax.value_and_grad(loss)(p, *data)
        updates, s = optimizer.update(g, s, p)
        return optax.apply_updates(p, updates), s, value
    return step


def program(name: str, forward: Any, p: Any, data: tuple[Any, ...], loss: Any, truth: tuple[
        Any, ...] = (), optimizer: Any = None, tolerance: float = 2e-4) -> Program:
    """A program with parameters; `truth` is what the loss takes beside the data."""
    import optax
    chosen = optimizer or optax.adam(1e-3)
    return Program(name, forward, (p, *data), loss, trained(loss, chosen), (p, chosen.init(p)),
                   (*data, *truth), tolerance)


def dense(m: int, n: int, seed: int = 0) -> dict[str, Any]:
    return {"w": f(m, n, seed=seed) / np.float32(np.sqrt(m)), "b": np.zeros(n, np.float32)}


def _mlp(p: Any, x: Any) -> Any:
    for layer in p[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ p[-1]["w"] + p[-1]["b"]


def cross_entropy(logits: Any, y: Any) -> Any:
    """The mean over the batch."""
    import optax
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def _norm(x: Any, p: Any) -> Any:
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * p["g"] + p["b"]


def _block(p: Any, x: Any, heads: int = 4) -> Any:
    b, t, d = x.shape
    h = _norm(x, p["n1"])
    q, k, v = ((h @ p[n]).reshape(b, t, heads, d // heads) for n in ("q", "k", "v"))
    a = jnp.einsum("bthd,bshd->bhts", q, k) / np.sqrt(d // heads).astype(np.float32)
    a = jnp.where(jnp.tril(jnp.ones((t, t), bool)), a, -1e9)
    x = x + jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(a), v).reshape(b, t, d) @ p["o"]
    return x + jax.nn.gelu(_norm(x, p["n2"]) @ p["up"]) @ p["down"]


def _gpt(p: Any, ids: Any) -> Any:
    x = p["embed"][ids] + p["place"][:ids.shape[1]]
    for layer in p["layers"]:
        x = _block(layer, x)
    return _norm(x, p["norm"]) @ p["embed"].T


def _gpt_weights(words: int, d: int, length: int, layers: int) -> Any:
    one = np.float32(1 / np.sqrt(d))
    norm = {"g": np.ones(d, np.float32), "b": np.zeros(d, np.float32)}
    return {"embed": f(words, d) * one, "place": f(length, d, seed=1) * one, "norm": norm,
            "layers": [{"n1": norm, "n2": norm, **{n: one * f(d, d, seed=i) for i, n in enumerate(
                "qkvo")}, "up": one * f(d, 4 * d, seed=5), "down": one / 2 * f(
                4 * d, d, seed=6)} for _ in range(layers)]}


def _rnn(p: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = jnp.tanh(h @ p["h"] + x @ p["x"] + p["b"])
        return h, h
    last, _ = lax.scan(step, jnp.zeros((xs.shape[1], 64)), xs)
    return last @ p["y"]


def _lstm(p: Any, xs: Any) -> Any:
    def step(c: Any, x: Any) -> Any:
        h, s = c
        i, g, u, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4, -1)
        s = jax.nn.sigmoid(g) * s + jax.nn.sigmoid(i) * jnp.tanh(u)
        h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h
    zero = jnp.zeros((xs.shape[1], 64))
    _, hs = lax.scan(step, (zero, zero), xs)
    return hs @ p["y"]


def _conv(x: Any, w: Any, stride: int = 1) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME",
                                    dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _group_norm(x: Any, groups: int = 4) -> Any:
    y = x.reshape(*x.shape[:3], groups, -1)
    m, v = y.mean((1, 2, 4), keepdims=True), y.var((1, 2, 4), keepdims=True)
    return ((y - m) * lax.rsqrt(v + 1e-5)).reshape(x.shape)


def _unet(p: Any, x: Any, t: Any) -> Any:
    """A step of a diffusion model: two scales, with the time as a bias."""
    time = jnp.sin(t[:, None] * p["freq"]) @ p["time"]
    a = jax.nn.silu(_group_norm(_conv(x, p["c1"]) + time[:, None, None]))
    b = jax.nn.silu(_group_norm(_conv(a, p["c2"], 2)))
    b = jax.nn.silu(_group_norm(_conv(b, p["c3"])))
    up = jax.image.resize(b, a.shape[:3] + b.shape[3:], "nearest")
    return _conv(jnp.concatenate([a, up], -1), p["c4"])


def _vae(p: Any, x: Any, key: Any) -> Any:
    h = jax.nn.relu(x @ p["e1"])
    mean, log = jnp.split(h @ p["e2"], 2, -1)
    z = mean + jnp.exp(0.5 * log) * jax.random.normal(key, mean.shape)
    return jax.nn.relu(z @ p["d1"]) @ p["d2"], mean, log


def _vae_loss(p: Any, x: Any, key: Any) -> Any:
    import optax
    y, mean, log = _vae(p, x, key)
    return optax.sigmoid_binary_cross_entropy(y, x).sum(-1).mean() - 0.5 * (
        1 + log - mean ** 2 - jnp.exp(log)).sum(-1).mean()


def _policy(p: Any, x: Any) -> Any:
    h = jnp.tanh(x @ p["w1"])
    return jax.nn.log_softmax(h @ p["pi"]), (h @ p["v"])[:, 0]


def _ppo(p: Any, x: Any, action: Any, old: Any, advantage: Any, returns: Any) -> Any:
    logits, value = _policy(p, x)
    ratio = jnp.exp(jnp.take_along_axis(logits, action[:, None], 1)[:, 0] - old)
    clipped = jnp.clip(ratio, 0.8, 1.2) * advantage
    entropy = -(jnp.exp(logits) * logits).sum(-1).mean()
    return (-jnp.minimum(ratio * advantage, clipped).mean() + 0.5 * ((value - returns) ** 2).mean()
            - 0.01 * entropy)


def _graph_net(p: Any, x: Any, source: Any, target: Any) -> Any:
    def layer(h: Any, w: Any) -> Any:
        return jax.ops.segment_sum((h @ w)[source], target, x.shape[0])
    return layer(jax.nn.relu(layer(x, p["w1"])), p["w2"])


def _skip_gram(p: Any, word: Any, near: Any, far: Any) -> Any:
    a = p["in"][word]
    good = jnp.einsum("bd,bd->b", a, p["out"][near])
    bad = jnp.einsum("bd,bkd->bk", a, p["out"][far])
    return good, bad


def _skip_loss(p: Any, *data: Any) -> Any:
    good, bad = _skip_gram(p, *data)
    return -(jax.nn.log_sigmoid(good).mean() + jax.nn.log_sigmoid(-bad).sum(-1).mean())


def PROGRAMS() -> list[Program]:
    import optax
    mlp = [dense(784, 256), dense(256, 128, 1), dense(128, 10, 2)]
    gpt = _gpt_weights(512, 128, 64, 2)
    rnn = {"h": f(64, 64) / 8, "x": f(32, 64, seed=1) / 6, "b": f(64), "y": f(64, 8, seed=2) / 8}
    lstm = {"h": f(64, 256) / 8, "x": f(32, 256, seed=1) / 6, "b": f(256), "y": f(64, 8) / 8}
    unet = {"c1": f(3, 3, 4, 32) / 6, "c2": f(3, 3, 32, 64) / 17, "c3": f(3, 3, 64, 64) / 24,
            "c4": f(3, 3, 96, 4) / 29, "freq": f(16), "time": f(16, 32) / 4}
    vae = {"e1": f(784, 256) / 28, "e2": f(256, 40) / 16, "d1": f(20, 256) / 4,
           "d2": f(256, 784) / 16}
    policy = {"w1": f(32, 128) / 6, "pi": f(128, 6) / 11, "v": f(128, 1) / 11}
    graph = {"w1": f(64, 64) / 8, "w2": f(64, 16) / 8}
    skip = {"in": f(2000, 64) / 8, "out": f(2000, 64, seed=1) / 8}
    pixels = 1 / (1 + np.exp(-f(64, 784, seed=4)))
    return [
        program("mlp", _mlp, mlp, (f(64, 784, seed=3),),
                lambda p, x, y: cross_entropy(_mlp(p, x), y), (ints(10, 64),)),
        program("transformer", _gpt, gpt, (ints(512, 4, 64),),
                lambda p, i, y: cross_entropy(_gpt(p, i), y), (ints(512, 4, 64, seed=1),),
                optax.adamw(1e-3)),
        program("rnn", _rnn, rnn, (f(50, 16, 32),),
                lambda p, x, y: cross_entropy(_rnn(p, x), y), (ints(8, 16),)),
        program("lstm", _lstm, lstm, (f(50, 16, 32),),
                lambda p, x, y: ((_lstm(p, x) - y) ** 2).mean(), (f(50, 16, 8),)),
        program("diffusion", _unet, unet, (f(4, 16, 16, 4), f(4)),
                lambda p, x, t, e: ((_unet(p, x, t) - e) ** 2).mean(), (f(4, 16, 16, 4, seed=9),)),
        program("vae", _vae, vae, (pixels, np.array([0, 7], np.uint32)), _vae_loss),
        program("policy", _policy, policy, (f(256, 32),), _ppo, (
            ints(6, 256), f(256) / 8 - 1.8, f(256, seed=2), f(256, seed=3)), optax.chain(
                optax.clip_by_global_norm(0.5), optax.adam(3e-4))),
        program("graph network", _graph_net, graph, (f(500, 64), ints(500, 4000), ints(
            500, 4000, seed=1)), lambda p, x, s, t, y: cross_entropy(_graph_net(p, x, s, t), y),
            (ints(16, 500),), optax.sgd(0.1, momentum=0.9)),
        program("skip-gram", _skip_gram, skip, (ints(2000, 128), ints(2000, 128, seed=1), ints(
            2000, 128, 8, seed=2)), _skip_loss, (), optax.adagrad(0.1)),
    ]
