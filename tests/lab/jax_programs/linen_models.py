"""Models of flax.linen, by their apply functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from flax import linen

from tests.lab.jax_cases import f, ints
from tests.lab.jax_programs import Program
from tests.lab.jax_programs.models import cross_entropy, program

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


RESNET, ENCODER = ResNet(), Encoder()


def resnet(p: Any, x: Any, stats: Any) -> Any:
    """Forward, with the running statistics."""
    return RESNET.apply({"params": p, "batch_stats": stats}, x)


def encoder(p: Any, ids: Any, key: Any) -> Any:
    """Forward, without dropout."""
    return ENCODER.apply(p, ids)


def _resnet_loss(p: Any, x: Any, stats: Any, y: Any) -> Any:
    out, _ = RESNET.apply({"params": p, "batch_stats": stats}, x, True, mutable=["batch_stats"])
    return cross_entropy(out, y)


def _encoder_loss(p: Any, x: Any, key: Any, y: Any) -> Any:
    return cross_entropy(ENCODER.apply(p, x, True, rngs={"dropout": key}), y)


def PROGRAMS() -> list[Program]:
    import optax
    image, tokens = f(8, 32, 32, 3), ints(256, 8, 32)
    net = jax.tree.map(np.asarray, RESNET.init(jax.random.key(0), image))
    code = jax.tree.map(np.asarray, ENCODER.init(jax.random.key(0), tokens))
    return [
        program("flax resnet", resnet, net["params"], (image, net["batch_stats"]), _resnet_loss,
                (ints(10, 8),), optax.sgd(0.1, 0.9), 2e-3),
        program("flax transformer", encoder, code, (tokens, KEY), _encoder_loss,
                (ints(256, 8, 32, seed=1),), optax.adamw(1e-3), 1e-3),
    ]
