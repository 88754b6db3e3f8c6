"""Functions of JAX with inputs, by the module of JAX that they are from. Importing this needs jax.

A case is a function and its arguments; arrays in them become inputs. One case may call several
functions of a family, and returns all results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """A function of arrays, its arguments, and how far a result may be off, of its magnitude."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    tolerance: float = 2e-5


def f(*shape: int, seed: int = 0) -> Array:
    """Normal numbers in float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def unit(*shape: int, seed: int = 0) -> Array:
    """Numbers from 0.05 to 0.95 in float32."""
    return np.random.default_rng(seed).uniform(0.05, 0.95, shape).astype(np.float32)


def ints(high: int, *shape: int, seed: int = 0, low: int = 0) -> Array:
    """Integers of `low` up to below `high` in int32."""
    return np.random.default_rng(seed).integers(low, high, shape).astype(np.int32)


def key(seed: int = 7) -> Array:
    """A key of jax.random as it was before typed keys: two words."""
    return np.array([0, seed], np.uint32)


def words(text: str) -> list[str]:
    """The names in a text."""
    return text.split()


def all_cases() -> list[Case]:
    """Every case, those of jax.numpy first."""
    from tests.lab.jax_cases import lax, networks, numpy, programs, random, scipy
    return [c for m in (numpy, lax, networks, scipy, random, programs) for c in m.CASES]
