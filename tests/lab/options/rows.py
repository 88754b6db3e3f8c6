"""What a row is: a function of torch as text, its operands, and what its options may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class T:
    """A tensor to be drawn, KIND[HIGH]:SHAPE, or SHAPE alone.

    Kinds: f normal, p positive, u in (0, 1), i an index below HIGH, b bool, s a matrix that is
    symmetric and positive definite. Numbers of f and p are multiplied by the size of a case.
    """

    spec: str

    def tensor(self, rng: np.random.Generator, dtype: torch.dtype, size: float) -> torch.Tensor:
        """The tensor; its element type is `dtype` if it is one of floats."""
        kind, _, text = self.spec.rpartition(":")
        shape = [int(n) for n in text.split(",") if n]
        if kind.startswith("i"):
            return torch.from_numpy(np.asarray(rng.integers(0, int(kind[1:] or 4), shape)))
        if kind == "b":
            return torch.from_numpy(np.asarray(rng.random(shape) < 0.5))
        x = np.asarray(rng.uniform(0.05, 0.95, shape) if kind == "u" else rng.normal(size=shape))
        if kind == "s":
            x = x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])
        if kind == "p":
            x = np.abs(x) + 0.1
        return torch.from_numpy(x * (1 if kind == "u" else size)).to(dtype)


@dataclass(frozen=True)
class Row:
    """A function as Python text, its operands, and the values of each option."""

    function: str
    operands: tuple[Any, ...]
    options: Mapping[str, list[Any]]

    def cases(self) -> Iterator[dict[str, Any]]:
        """Every combination of the options; `...` is an option that is left out."""
        for values in itertools.product(*self.options.values()):
            yield {k: v for k, v in zip(self.options, values, strict=True) if v is not ...}


ROWS: list[Row] = []


def row(function: str, *operands: Any, **options: list[Any]) -> None:
    """Add a row; a text among the operands is a tensor's specification."""
    ROWS.append(Row(function, tuple(T(x) if isinstance(x, str) else x for x in operands), options))
