"""Padding by a constant, or by elements of the tensor: reflected, replicated or circular."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.front import Array, Refused
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.symbolic import Dim


def _edges(pad: tuple[Dim, ...], rank: int) -> list[tuple[Dim, Dim]]:
    """torch's flat list, last axis first, as (lo, hi) for every axis."""
    out: list[tuple[Dim, Dim]] = [(0, 0)] * rank
    for i in range(len(pad) // 2):
        out[rank - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return out


@aten("constant_pad_nd")
def constant_pad_nd(c: Context, self: Array, pad: tuple[Dim, ...], value: Any = 0) -> Any:
    """pad by a value; torch lists (lo, hi) from the last axis on."""
    edges = _edges(pad, self.ndim)
    return self.pad([a for a, _ in edges], [b for _, b in edges], float(value))


@aten("pad")
def pad(c: Context, self: Array, pad: tuple[Dim, ...], mode: str = "constant",
        value: Any = None) -> Any:
    """pad by a value, or a gather for "reflect", "replicate" and "circular"."""
    if mode == "constant":
        return constant_pad_nd(c, self, pad, value or 0)
    return _index_pad(c, self, pad, mode)


@aten("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(c: Context, self: Array, padding: tuple[Dim, ...]) -> Any:
    """A gather at indices mirrored at the edges."""
    return _index_pad(c, self, padding, "reflect")


@aten("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(c: Context, self: Array, padding: tuple[Dim, ...]) -> Any:
    """A gather at indices clamped to the edges."""
    return _index_pad(c, self, padding, "replicate")


def _index_pad(c: Context, x: Array, pad: tuple[Dim, ...], mode: str) -> Array:
    """One gather for each padded axis, at constant indices; needs fixed sizes."""
    for axis, (lo, hi) in enumerate(_edges(pad, x.ndim)):
        size = x.shape[axis]
        if (lo, hi) == (0, 0):
            continue
        if not all(isinstance(d, int) for d in (lo, hi, size)):
            raise Refused(f"padding of mode {mode!r} is not supported along a symbolic size; fix "
                          "that size for the export")
        at = np.arange(-int(lo), int(size) + int(hi))  # type: ignore[arg-type]
        x = x.at(_source(at, int(size), mode), axis)  # type: ignore[arg-type]
    return x


def _source(at: Any, size: int, mode: str) -> Any:
    match mode:
        case "reflect":
            period = max(2 * size - 2, 1)
            at = np.mod(at, period)
            return np.where(at < size, at, period - at)
        case "replicate":
            return np.clip(at, 0, size - 1)
        case "circular":
            return np.mod(at, size)
        case _:
            raise Refused(f"padding of mode {mode!r} is not supported")
