"""The training benchmark's models as functions on JAX, and their steps, jitted with donation.

Written as one writes them by hand there: NCHW, attention by einsum, a scan for the LSTM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Params = Mapping[str, Any]
Forward = Callable[[Params, Any], Any]
EPSILON = 1e-5


def linear(p: Params, key: str, x: Any) -> Any:
    return x @ p[f"{key}.weight"].T + p[f"{key}.bias"]


def conv(x: Any, w: Any, stride: int = 1, padding: int = 0) -> Any:
    return lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2,
                                    dimension_numbers=("NCHW", "OIHW", "NCHW"))


def normal(x: Any, axes: Any) -> Any:
    mean = x.mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + EPSILON)


def batch_norm(p: Params, key: str, x: Any) -> Any:
    return (normal(x, (0, 2, 3)) * p[f"{key}.weight"][:, None, None]
            + p[f"{key}.bias"][:, None, None])


def layer_norm(p: Params, key: str, x: Any) -> Any:
    return normal(x, -1) * p[f"{key}.weight"] + p[f"{key}.bias"]


def pool(x: Any, size: int = 2, stride: int = 2, padding: int = 0) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, size, size), (1, 1, stride, stride),
                             ((0, 0), (0, 0), (padding, padding), (padding, padding)))


relu = jax.nn.relu


def mlp(p: Params, x: Any) -> Any:
    return linear(p, "4", relu(linear(p, "2", relu(linear(p, "0", x)))))


def lenet(p: Params, x: Any) -> Any:
    x = pool(relu(conv(x, p["0.weight"], 1, 2) + p["0.bias"][:, None, None]))
    x = pool(relu(conv(x, p["3.weight"]) + p["3.bias"][:, None, None])).reshape(x.shape[0], -1)
    return linear(p, "11", relu(linear(p, "9", relu(linear(p, "7", x)))))


def residual(p: Params, key: str, x: Any, stride: int, names: Mapping[str, str]) -> Any:
    """`names` says what convolutions, norms and shortcut are called; it has one if p has."""
    short, norm = f"{key}.{names['short']}.0.weight", f"{key}.{names['short']}.1"
    y = relu(batch_norm(p, f"{key}.{names['b1']}",
                        conv(x, p[f"{key}.{names['c1']}.weight"], stride, 1)))
    y = batch_norm(p, f"{key}.{names['b2']}", conv(y, p[f"{key}.{names['c2']}.weight"], 1, 1))
    return relu(y + (batch_norm(p, norm, conv(x, p[short], stride)) if short in p else x))


def resnet8(p: Params, x: Any) -> Any:
    names = {"c1": "c1", "b1": "b1", "c2": "c2", "b2": "b2", "short": "sc"}
    x = relu(batch_norm(p, "b", conv(x, p["c.weight"], 1, 1)))
    for i, stride in enumerate((1, 2, 2)):
        x = residual(p, f"l.{i}", x, stride, names)
    return linear(p, "fc", x.mean((2, 3)))


def resnet18(p: Params, x: Any) -> Any:
    names = {"c1": "conv1", "b1": "bn1", "c2": "conv2", "b2": "bn2", "short": "downsample"}
    x = pool(relu(batch_norm(p, "bn1", conv(x, p["conv1.weight"], 2, 3))), 3, 2, 1)
    for i in range(1, 5):
        for j in range(2):
            x = residual(p, f"layer{i}.{j}", x, 2 if i > 1 and j == 0 else 1, names)
    return linear(p, "fc", x.mean((2, 3)))


def transformer(layers: int, heads: int, causal: bool, p: Params, tokens: Any) -> Any:
    x = p["e.weight"][tokens] + p["p"]
    b, t, d = x.shape
    for i in range(layers):
        k = f"b.{i}"
        q = linear(p, f"{k}.qkv", layer_norm(p, f"{k}.n1", x)).reshape(
            b, t, 3, heads, d // heads).transpose(2, 0, 3, 1, 4)
        s = jnp.einsum("bhqd,bhkd->bhqk", q[0], q[1]) / np.float32(np.sqrt(d // heads))
        if causal:
            s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -jnp.inf)
        y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), q[2])
        x = x + linear(p, f"{k}.o", y.transpose(0, 2, 1, 3).reshape(b, t, d))
        y = jax.nn.gelu(linear(p, f"{k}.f1", layer_norm(p, f"{k}.n2", x)), approximate=True)
        x = x + linear(p, f"{k}.f2", y)
    x = layer_norm(p, "n", x)
    return linear(p, "o", x).reshape(b * t, -1) if causal else linear(p, "o", x.mean(1))


def lstm(p: Params, x: Any) -> Any:
    gates = x @ p["r.weight_ih_l0"].T + p["r.bias_ih_l0"] + p["r.bias_hh_l0"]

    def step(state: tuple[Any, Any], g: Any) -> tuple[tuple[Any, Any], None]:
        h, c = state
        i, f, n, o = jnp.split(g + h @ p["r.weight_hh_l0"].T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(n)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
    zero = jnp.zeros((x.shape[0], p["r.weight_hh_l0"].shape[1]))
    (h, _), _ = lax.scan(step, (zero, zero), gates.transpose(1, 0, 2))
    return linear(p, "o", h)


FORWARD: dict[str, Forward] = {
    "mlp_b64": mlp, "lenet_b64": lenet, "resnet8_cifar_b32": resnet8, "resnet18_b8": resnet18,
    "transformer_enc_b16": partial(transformer, 2, 4, False),
    "gpt2_tiny_b4": partial(transformer, 4, 4, True), "lstm_b32": lstm,
    "linear_b1": lambda p, x: x @ p["weight"].T + p["bias"],
}


def stepper(name: str, optimizer: str, lr: float, params: Mapping[str, Any], x: Any,
            y: Any) -> Callable[[], float]:
    """One step on the batch, until all of its results are there; gives the loss."""
    forward, update, fresh = FORWARD[name], *_OPTIMIZERS[optimizer]
    xs, ys = (jnp.asarray(a if a.dtype == np.float32 else a.astype(np.int32)) for a in (x, y))

    def loss(p: Params) -> Any:
        scores = jax.nn.log_softmax(forward(p, xs))
        return -jnp.take_along_axis(scores, ys[:, None], 1).mean()

    def step(p: Params, state: Any) -> tuple[Any, Any, Any]:
        value, grads = jax.value_and_grad(loss)(p)
        return value, *update(p, grads, state, lr)
    compiled = jax.jit(step, donate_argnums=(0, 1))
    p = {k: jnp.asarray(a) for k, a in params.items()}
    held = [p, fresh(p)]

    def run() -> float:
        value, held[0], held[1] = compiled(held[0], held[1])
        jax.block_until_ready(held[0])
        return float(value)
    return run


def _sgd(p: Any, g: Any, state: Any, lr: float) -> tuple[Any, Any]:
    state = jax.tree.map(lambda s, d: .9 * s + d, state, g)
    return jax.tree.map(lambda w, s: w - lr * s, p, state), state


def _adam(p: Any, g: Any, state: Any, lr: float) -> tuple[Any, Any]:
    m, v, t = state
    t = t + 1
    m = jax.tree.map(lambda s, d: .9 * s + .1 * d, m, g)
    v = jax.tree.map(lambda s, d: .999 * s + .001 * d * d, v, g)
    a, b = 1 - .9 ** t, 1 - .999 ** t
    return jax.tree.map(lambda w, m, v: w - lr * (m / a) / (jnp.sqrt(v / b) + 1e-8), p, m, v), (
        m, v, t)


def _zeros(p: Any) -> Any:
    return jax.tree.map(jnp.zeros_like, p)


_OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "sgd": (_sgd, _zeros), "adam": (_adam, lambda p: (_zeros(p), _zeros(p), jnp.float32(0)))}
