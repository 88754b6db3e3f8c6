"""A model of equinox, by a function of its arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
import numpy as np

from tests.lab.jax_cases import f
from tests.lab.jax_programs import Program
from tests.lab.jax_programs.models import program


def _layers() -> Any:
    return eqx.nn.MLP(32, 8, 128, 3, jax.nn.silu, key=jax.random.key(0))


@cache
def _structure() -> Any:
    """The model without its arrays, of which none is computed."""
    return eqx.partition(eqx.filter_eval_shape(_layers),
                         lambda v: isinstance(v, jax.ShapeDtypeStruct))[1]


def mlp(p: Any, x: Any) -> Any:
    """Forward, row by row."""
    return jax.vmap(eqx.combine(p, _structure()))(x)


def PROGRAMS() -> list[Program]:
    import optax
    arrays = jax.tree.map(np.asarray, eqx.filter(_layers(), eqx.is_array))
    return [program("equinox mlp", mlp, arrays, (f(128, 32),),
                    lambda p, x, y: ((mlp(p, x) - y) ** 2).mean(), (f(128, 8),), optax.lion(1e-4))]
