"""Rounding that compensates its own errors: GPTQ (Frantar, Ashkboos, Hoefler and Alistarh 2022).

Columns of a weight are rounded one after the other. The error of each is spread over the columns
that are still to come, by the inverse of H = Σ xᵀx, so that the error of the layer's result over
the examples is small, not that of the weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.passes.quantise.grids import WEIGHT_MOST, channel_scales
from graphtool.passes.quantise.layers import Layer
from graphtool.passes.quantise.weights import (
    BITS,
    Blocks,
    Channels,
    Form,
    Stored,
    block_integers,
    block_scales,
)

Array = np.ndarray[Any, Any]
_DAMPING = 0.01  # of the mean of H's diagonal, added to it: few examples leave H singular
_TOGETHER = 128  # columns whose errors reach the later ones in one product


def compensated(layer: Layer, form: Form, block: int, gram: Array) -> Stored:
    """The weight of a layer that is `deep`, rounded with the sums `gram` [inputs, inputs] of its
    examples."""
    w = layer.rows.astype(np.float64).copy()
    upper = _inverse_factor(gram, w)
    if form in BITS:
        return _in_blocks(w, upper, BITS[form], block)
    scales = channel_scales(layer.rows, 0)
    q = np.zeros(w.shape, np.int8)

    def column(i: int, x: Array) -> Array:
        q[:, i] = np.clip(np.rint(x / scales[:, 0]), -WEIGHT_MOST, WEIGHT_MOST).astype(np.int8)
        return np.asarray(q[:, i] * scales[:, 0].astype(np.float64))
    _through(w, upper, column)
    if layer.axis:
        return Channels(np.ascontiguousarray(q.T), np.ascontiguousarray(scales.T))
    return Channels(q.reshape(layer.w.shape), scales.reshape(-1, *(1,) * (layer.w.ndim - 1)))


def _in_blocks(w: Array, upper: Array, bits: int, block: int) -> Blocks:
    n, k = w.shape
    count = -(-k // block)
    q = np.full((n, count * block), 2 ** (bits - 1), np.uint8)
    scales = np.ones((n, count), np.float32)

    def column(i: int, x: Array) -> Array:
        at = i // block
        if i % block == 0:  # the block's scale, by its weights as they have become
            part = w[:, i:i + block].astype(np.float32)
            scales[:, at] = block_scales(part, bits, np.ones(part.shape, np.float32))
        q[:, i] = block_integers(x[:, None], scales[:, at], bits)[:, 0]
        return np.asarray((q[:, i].astype(np.float64) - 2 ** (bits - 1)) * scales[:, at])
    _through(w, upper, column, block)
    return Blocks(q.reshape(n, count, block), scales, bits, k)


def _inverse_factor(gram: Array, w: Array) -> Array:
    """U with UᵀU = H⁻¹, upper triangular; weights of inputs that are always 0 become
    0."""
    h = gram.copy()
    dead = np.diag(h) == 0
    h[dead, dead] = 1.0
    w[:, dead] = 0.0
    h[np.diag_indices_from(h)] += _DAMPING * np.diag(h).mean()
    return np.asarray(np.linalg.cholesky(np.linalg.inv(h)).T)


def _through(w: Array, upper: Array, column: Any, block: int = 1) -> None:
    """Round the columns in order: `column(i, x)` gives the rounded x; w changes as errors
    spread."""
    k = w.shape[1]
    step = max(_TOGETHER // block, 1) * block
    for start in range(0, k, step):
        end = min(start + step, k)
        errors = np.zeros((w.shape[0], end - start))
        for i in range(start, end):
            lost = (w[:, i] - column(i, w[:, i])) / upper[i, i]
            w[:, i:end] -= np.outer(lost, upper[i, i:end])
            errors[:, i - start] = lost
        w[:, end:] -= errors @ upper[start:end, end:]
