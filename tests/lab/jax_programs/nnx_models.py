"""A model of flax.nnx, by a function of its parameters."""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import numpy as np
from flax import nnx

from tests.lab.jax_cases import f, ints
from tests.lab.jax_programs import Program
from tests.lab.jax_programs.models import cross_entropy, program

KEY = np.array([0, 7], np.uint32)


class Mixer(nnx.Module):
    """A network of nnx with dropout."""

    def __init__(self, rngs: Any) -> None:
        self.a, self.b = nnx.Linear(64, 128, rngs=rngs), nnx.Linear(128, 10, rngs=rngs)
        self.norm, self.drop = nnx.LayerNorm(128, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)

    def __call__(self, x: Any, train: Any = None) -> Any:
        h = nnx.gelu(self.norm(self.a(x)))
        return self.b(self.drop(h, deterministic=train is None, rngs=train))


@cache
def _structure() -> tuple[Any, Any]:
    """The model without its parameters; no array is computed."""
    split: Any = nnx.split
    shape, _, rest = split(nnx.eval_shape(lambda: Mixer(nnx.Rngs(0))), nnx.Param, ...)
    return shape, rest


def _mix(p: Any, x: Any, rngs: Any) -> Any:
    shape, rest = _structure()
    return nnx.merge(shape, p, rest)(x, rngs)


def mix(p: Any, x: Any, key: Any) -> Any:
    """Forward, without dropout."""
    return _mix(p, x, None)


def _loss(p: Any, x: Any, key: Any, y: Any) -> Any:
    return cross_entropy(_mix(p, x, nnx.Rngs(dropout=jax.random.wrap_key_data(key))), y)


def PROGRAMS() -> list[Program]:
    split: Any = nnx.split
    _, weights, _ = split(Mixer(nnx.Rngs(0)), nnx.Param, ...)
    return [program("flax nnx", mix, jax.tree.map(np.asarray, weights), (f(64, 64), KEY), _loss,
                    (ints(10, 64),))]
