"""Whole programs in JAX, of the size that people run: networks, solvers, filters, searches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Program:
    """A program: `forward` of the parameters and the data, a function of a module that imports
    nothing else. `loss` of the same makes a number, by whose gradient `step` of state and data
    trains; a program without parameters has neither."""

    name: str
    forward: Callable[..., Any]
    args: tuple[Any, ...]
    loss: Callable[..., Any] | None = None
    step: Callable[..., Any] | None = None
    state: tuple[Any, ...] = ()
    batch: tuple[Any, ...] = ()
    tolerance: float = 2e-4


def all_programs() -> list[Program]:
    """Every program, networks first."""
    from tests.lab.jax_programs import (
        equinox_models,
        linen_models,
        models,
        nnx_models,
        searches,
        solvers,
    )
    return [p for m in (models, linen_models, nnx_models, equinox_models, solvers, searches)
            for p in m.PROGRAMS()]
