"""jax.nn and jax.image."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import nn

from tests.lab.jax_cases import Case, f, ints, words

_ACTIVATIONS = words("""
    relu relu6 sigmoid softplus sparse_plus sparse_sigmoid soft_sign silu log_sigmoid
    leaky_relu hard_sigmoid hard_silu hard_tanh tanh elu celu selu gelu glu squareplus mish
    softmax log_softmax standardize identity
""")


def _nn(name: str, fn: Any, *args: Any, tolerance: float = 2e-5) -> Case:
    return Case(f"nn.{name}", fn, args, tolerance)


def _slope(name: str) -> Any:
    return jax.grad(lambda x: (getattr(nn, name)(x) ** 2).sum())


_HEADS = (f(2, 6, 4, 8), f(2, 7, 4, 8, seed=1), f(2, 7, 4, 8, seed=2))
CASES: list[Case] = [
    *(_nn(n, getattr(nn, n), f(3, 6)) for n in _ACTIVATIONS),
    _nn("gelu exact", lambda x: nn.gelu(x, approximate=False), f(3, 6)),
    _nn("logsumexp", lambda x: nn.logsumexp(x, axis=1), f(3, 6)),
    _nn("logmeanexp", lambda x: nn.logmeanexp(x, axis=1), f(3, 6)),
    _nn("one_hot", lambda i: nn.one_hot(i, 5), ints(5, 4)),
    _nn("dot_product_attention", nn.dot_product_attention, *_HEADS),
    _nn("dot_product_attention causal", lambda q, k, v: nn.dot_product_attention(
        q, k[:, :6], v[:, :6], is_causal=True), *_HEADS),
    _nn("scaled_matmul-free", lambda x: jax.nn.standardize(x, axis=0), f(3, 6)),
    *(_nn(f"{n} gradient", _slope(n), f(3, 6))
      for n in ("gelu", "softmax", "silu", "logsumexp", "selu", "softplus")),
    *(Case(f"image.resize {m}", lambda x, m=m: jax.image.resize(x, (2, 9, 6, 3), m),
           (f(2, 6, 8, 3),)) for m in ("nearest", "linear", "cubic", "lanczos3")),
    Case("image.scale_and_translate", lambda x: jax.image.scale_and_translate(
        x, (8, 8), (0, 1), jnp.array([1.5, 1.2]), jnp.array([0.3, 0.7]), "linear"), (f(6, 7),)),
]
