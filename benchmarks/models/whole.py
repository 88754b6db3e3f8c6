"""Whole models with their losses, as people write them: what `python -m tests.lab wholes` checks.

A model's forward takes a batch and gives one number, so that all that decides a gradient is
inside: losses, targets, frozen parts, noise (which comes in as an input). All are small and seeded.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

FAMILIES = ("whole_vision", "whole_sequence", "whole_schemes", "whole_science")


@dataclass(frozen=True)
class Whole:
    """A model: its class, the inputs of one batch, and whether it is also trained, compiled."""

    name: str
    kind: type[nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    steps: bool


_ALL: dict[str, Whole] = {}


def whole(inputs: Callable[[], tuple[Any, ...]], steps: bool = False) -> Any:
    """A decorator that adds a model; `steps` also trains it compiled."""
    def add(kind: type[nn.Module]) -> type[nn.Module]:
        _ALL[kind.__name__] = Whole(kind.__name__, kind, inputs, steps)
        return kind
    return add


def every() -> dict[str, Whole]:
    """All models by name, in the order of the families."""
    for family in FAMILIES:
        importlib.import_module(f"benchmarks.models.{family}")
    return dict(_ALL)


def built(name: str, dtype: torch.dtype = torch.float64) -> tuple[nn.Module, tuple[Any, ...]]:
    """The model in training mode and one batch; equal parameters for every `dtype`."""
    found = every()[name]
    torch.manual_seed(0)
    with torch.random.fork_rng():
        model = found.kind()
    torch.manual_seed(1)
    batch = found.inputs()
    return model.to(dtype).train(), tuple(
        x.to(dtype) if x.is_floating_point() else x for x in batch)


# ---- what batches are made of ------------------------------------------------------------------

def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def uniform(*shape: int) -> torch.Tensor:
    return torch.rand(*shape)


def labels(classes: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, classes, shape)
