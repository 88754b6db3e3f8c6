"""Weights in fewer bits: rounded to integers with a scale for each channel or block, or to 16-bit
floats.

A block is a number of adjacent inputs of one output. Its integers have 2, 4 or 8 bits and the zero
2^(bits − 1), as `linear_nbits` reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.passes.quantise.grids import Grid, channel_integers, channel_scales
from graphtool.passes.quantise.layers import Layer

Array = np.ndarray[Any, Any]
Form = Literal["static", "dynamic", "int8", "int4", "int2", "bfloat16", "float16"]
FORMS: dict[str, Form] = {f: f for f in (
    "static", "dynamic", "int8", "int4", "int2", "bfloat16", "float16")}
BITS: dict[str, int] = {"int8": 8, "int4": 4, "int2": 2}
HALVES: dict[str, DType] = {row.name: row for row in dtypes.HALVES}
_TRIED = np.linspace(0.7, 1.1, 17)  # factors of the scale at which the largest weight is exact
_ROWS = 1 << 16  # blocks that are searched together


@dataclass(frozen=True, eq=False)
class Channels:
    """int8 in the shape of the weight, and scales that broadcast to it."""

    q: Array
    scales: Array

    @property
    def nbytes(self) -> int:
        """Bytes of integers and scales."""
        return self.q.nbytes + self.scales.nbytes

    @property
    def real(self) -> Array:
        """The numbers that are represented, in the shape of the weight."""
        return np.asarray(self.q.astype(np.float32) * self.scales)


@dataclass(frozen=True, eq=False)
class Blocks:
    """q [outputs, blocks, block] without sign, scales [outputs, blocks]; of `inputs` columns."""

    q: Array
    scales: Array
    bits: int
    inputs: int

    @property
    def block(self) -> int:
        """The number of columns that share a scale."""
        return int(self.q.shape[2])

    @property
    def packed(self) -> Array:
        """The integers in bytes, the lowest bits first: [outputs, blocks, block·bits / 8]."""
        per = 8 // self.bits
        parts = self.q.reshape(*self.q.shape[:2], -1, per)
        out = np.zeros(parts.shape[:3], np.uint8)
        for i in range(per):
            out |= parts[..., i].astype(np.uint8) << np.uint8(i * self.bits)
        return out

    @property
    def nbytes(self) -> int:
        """Bytes of packed integers and scales."""
        return self.q.size * self.bits // 8 + self.scales.nbytes

    @property
    def real(self) -> Array:
        """The numbers that are represented: [outputs, inputs]."""
        centred = self.q.astype(np.float32) - np.float32(2 ** (self.bits - 1))
        wide = (centred * self.scales[:, :, None]).reshape(self.q.shape[0], -1)
        return np.asarray(wide[:, :self.inputs])


@dataclass(frozen=True, eq=False)
class Half:
    """The weight in a 16-bit float type."""

    w: Array

    @property
    def nbytes(self) -> int:
        """Bytes of the weight."""
        return self.w.nbytes

    @property
    def real(self) -> Array:
        """The numbers that are represented."""
        return self.w.astype(np.float32)


@dataclass(frozen=True, eq=False)
class Beside:
    """No weight: the right one of two activations, on this grid."""

    grid: Grid

    @property
    def nbytes(self) -> int:
        """Nothing is stored."""
        return 0

    @property
    def real(self) -> Array:
        """There are no numbers."""
        return np.zeros(0, np.float32)


Stored = Channels | Blocks | Half | Beside


def stored(layer: Layer, form: Form, block: int) -> Stored:
    """The layer's weight rounded to nearest; tables have one scale for each row."""
    if form in HALVES:
        return Half(layer.w.astype(HALVES[form].numpy))
    if form in BITS and layer.kind != "table":
        return blocks(layer.rows, BITS[form], block)
    scales = channel_scales(layer.w, layer.axis)
    return Channels(channel_integers(layer.w, scales), scales)


def blocks(rows: Array, bits: int, block: int, importance: Array | None = None) -> Blocks:
    """The rows [outputs, inputs] in blocks; `importance` weighs the errors of each input.

    The scale of a block is the one with the least squared error of some around that at which the
    largest weight is exact.
    """
    n, k = rows.shape
    count = -(-k // block)
    wide = np.zeros((n, count * block), np.float32)
    wide[:, :k] = rows
    weigh = np.zeros(count * block, np.float32)
    weigh[:k] = 1.0 if importance is None else importance
    flat = wide.reshape(-1, block)
    each = np.broadcast_to(weigh.reshape(1, count, block), (n, count, block)).reshape(-1, block)
    scales = np.concatenate([
        block_scales(flat[i:i + _ROWS], bits, each[i:i + _ROWS])
        for i in range(0, len(flat), _ROWS)])
    q = block_integers(flat, scales, bits)
    return Blocks(q.reshape(n, count, block), scales.reshape(n, count), bits, k)


def block_scales(x: Array, bits: int, weigh: Array) -> Array:
    """The scale of each row of x, float32; a negative one means that the largest weight of the
    row, which has the most steps, is positive."""
    at = np.abs(x).argmax(axis=1)
    most = x[np.arange(len(x)), at].astype(np.float32)
    tiny = np.float32(np.finfo(np.float32).tiny)
    most = np.where(np.abs(most) > tiny, most, np.float32(1))
    least = np.full(len(x), np.inf)
    best = most / -(2 ** (bits - 1))
    for end in {-(2 ** (bits - 1)), 2 ** (bits - 1) - 1}:
        for factor in _TRIED:
            tried = (most / end * factor).astype(np.float32)
            q = block_integers(x, tried, bits).astype(np.float32) - 2 ** (bits - 1)
            down = (weigh * q * q).sum(1)
            up = (weigh * q * x).sum(1)
            fit = np.where(down > 0, up / np.maximum(down, tiny), tried).astype(np.float32)
            fit = np.where(np.abs(fit) > tiny, fit, tried)
            lost = (weigh * (q * fit[:, None] - x) ** 2).sum(1)
            better = lost < least
            least, best = np.where(better, lost, least), np.where(better, fit, best)
    return np.asarray(best, np.float32)


def block_integers(x: Array, scales: Array, bits: int) -> Array:
    """The integers 0 … 2^bits − 1 of the rows of x."""
    centre = 2 ** (bits - 1)
    steps = np.rint(x / scales.reshape(-1, *(1,) * (x.ndim - 1))) + centre
    return np.asarray(np.clip(steps, 0, 2 * centre - 1), np.uint8)
