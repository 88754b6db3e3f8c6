"""Models of flax (linen and nnx) and equinox, by their apply functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax
from flax import linen, nnx

from benchmarks.jax_cases import f, ints
from benchmarks.jax_programs import Program
from benchmarks.jax_programs.models import cross_entropy, program

KEY = np.array([0, 7], np.uint32)


def compact(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`linen.compact`, with a type."""
    out: Callable[..., Any] = linen.compact(fn)
    return out


class Residual(linen.Module):
    """Two convolutions with batch norm beside a way around them."""

    channels: int
    stride: int = 1

    @compact
    def __call__(self, x: Any, train: bool) -> Any:
        def norm(v: Any) -> Any:
            return linen.BatchNorm(use_running_average=not train, momentum=0.9)(v)
        y = norm(linen.Conv(self.channels, (3, 3), self.stride, use_bias=False)(x))
        y = norm(linen.Conv(self.channels, (3, 3), use_bias=False)(linen.relu(y)))
        if y.shape != x.shape:
            x = norm(linen.Conv(self.channels, (1, 1), self.stride, use_bias=False)(x))
        return linen.relu(x + y)


class ResNet(linen.Module):
    """Three stages of residual blocks for images of 32 × 32."""

    @compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = linen.relu(linen.Conv(16, (3, 3), use_bias=False)(x))
        for channels, stride in ((16, 1), (32, 2), (64, 2)):
            x = Residual(channels, stride)(x, train)
        return linen.Dense(10)(x.mean((1, 2)))


class Encoder(linen.Module):
    """A transformer with dropout."""

    @compact
    def __call__(self, ids: Any, train: bool = False) -> Any:
        x = linen.Embed(256, 64)(ids)
        for _ in range(2):
            y = linen.MultiHeadDotProductAttention(4, dropout_rate=0.1, deterministic=not train)(
                linen.LayerNorm()(x))
            x = x + linen.Dropout(0.1, deterministic=not train)(y)
            y = linen.Dense(64)(linen.gelu(linen.Dense(256)(linen.LayerNorm()(x))))
            x = x + linen.Dropout(0.1, deterministic=not train)(y)
        return linen.Dense(256)(linen.LayerNorm()(x))


class Mixer(nnx.Module):
    """A network of nnx with dropout."""

    def __init__(self, rngs: Any) -> None:
        self.a, self.b = nnx.Linear(64, 128, rngs=rngs), nnx.Linear(128, 10, rngs=rngs)
        self.norm, self.drop = nnx.LayerNorm(128, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: Any, train: Any = None) -> Any:
        h = nnx.gelu(self.norm(self.a(x)))
        return self.b(self.drop(h, deterministic=train is None, rngs=train))


def _plain(x: Any) -> Any:
    return jax.tree.map(np.asarray, x)


def PROGRAMS() -> list[Program]:
    image, tokens = f(8, 32, 32, 3), ints(256, 8, 32)
    resnet, encoder = ResNet(), Encoder()
    net = _plain(resnet.init(jax.random.key(0), image))
    code = _plain(encoder.init(jax.random.key(0), tokens))
    mixer = Mixer(nnx.Rngs(0))
    split: Any = nnx.split
    shape, weights, rest = split(mixer, nnx.Param, ...)
    layers = eqx.nn.MLP(32, 8, 128, 3, jax.nn.silu, key=jax.random.key(0))
    arrays, static = eqx.partition(layers, eqx.is_array)

    def resnet_loss(p: Any, x: Any, stats: Any, y: Any) -> Any:
        out, _ = resnet.apply({"params": p, "batch_stats": stats}, x, True,
                              mutable=["batch_stats"])
        return cross_entropy(out, y)

    def encoder_loss(p: Any, x: Any, key: Any, y: Any) -> Any:
        return cross_entropy(encoder.apply(p, x, True, rngs={"dropout": key}), y)

    def mix(p: Any, x: Any, key: Any = None) -> Any:
        model = nnx.merge(shape, p, rest)
        return model(x, None if key is None else nnx.Rngs(dropout=jax.random.wrap_key_data(key)))

    def mlp(p: Any, x: Any) -> Any:
        return jax.vmap(eqx.combine(p, static))(x)
    return [
        program("flax resnet", lambda p, x, s: resnet.apply({"params": p, "batch_stats": s}, x),
                net["params"], (image, net["batch_stats"]), resnet_loss, (ints(10, 8),),
                optax.sgd(0.1, 0.9), 2e-3),
        program("flax transformer", lambda p, i, k: encoder.apply(p, i), code, (tokens, KEY),
                encoder_loss, (ints(256, 8, 32, seed=1),), optax.adamw(1e-3), 1e-3),
        program("flax nnx", lambda p, x, k: mix(p, x), _plain(weights), (f(64, 64), KEY),
                lambda p, x, k, y: cross_entropy(mix(p, x, k), y), (ints(10, 64),)),
        program("equinox mlp", mlp, _plain(arrays), (f(128, 32),),
                lambda p, x, y: ((mlp(p, x) - y) ** 2).mean(), (f(128, 8),), optax.lion(1e-4)),
    ]
