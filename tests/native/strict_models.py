"""The ten models whose results in `strict` are equal to the bit everywhere: small, of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import graphtool
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.ir.graph import Module
from tests.passes.pass_samples import SAMPLES, module, positive, values


def residual(x: Any) -> Any:
    """A residual block of an image network, with groups, a pool and a mean."""
    y = o.relu(o.conv(x, values(x, 24, 12, 3, 3), padding=((1, 1), (1, 1))))
    y = o.conv(y, values(x, 24, 6, 3, 3), groups=4, padding=((1, 1), (1, 1)))
    y = o.batch_norm(y, positive(x, 24), values(x, 24), values(x, 24, seed=1), positive(x, 24))
    y = o.avg_pool(o.silu(y), window=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1)))
    y = o.reshape(o.reduce_mean(y, axes=(2, 3)), shape=(2, 24))
    return o.linear(y, values(x, 10, 24), values(x, 10))


def separable(x: Any) -> Any:
    """A mobile block: depthwise, a gate of its channels, pointwise; then a transposed one."""
    y = o.conv(x, values(x, 16, 1, 3, 3), groups=16, padding=((1, 1), (1, 1)))
    g = o.sigmoid(o.conv(o.reduce_mean(y, axes=(2, 3)), values(x, 16, 16, 1, 1)))
    y = o.conv(y * g, values(x, 20, 16, 1, 1))
    return o.tanh(o.conv(y, values(x, 3, 20, 4, 4), padding=((2, 2), (2, 2)),
                         lhs_dilation=(2, 2)))


def encoder(x: Any) -> Any:
    """A layer of an encoder under a mask, RMS norm, erf and logarithms."""
    y = o.rms_norm(x, positive(x, 24), axes=(2,))
    q, k, v = (o.transpose(o.reshape(o.matmul(y, values(x, 24, 24, seed=i)), shape=(2, 9, 3, 8)),
                           perm=(0, 2, 1, 3)) for i in range(3))
    a = o.attention(q, k, v, o.gt(values(x, 9, 9), -1.0))
    y = x + o.reshape(o.transpose(a, perm=(0, 2, 1, 3)), shape=(2, 9, 24))
    y = y + o.matmul(o.gelu(o.matmul(y, values(x, 24, 50))), values(x, 50, 24))
    return o.log_softmax(y, axis=2), o.cumulative(y, kind="sum", axis=1)


def gated(x: Any) -> Any:
    y, *_ = o.gru(x, values(x, 1, 30, 6), values(x, 1, 30, 10), values(x, 1, 60))
    return y


def waves(x: Any) -> Any:
    """One-dimensional convolutions, and the scalar functions that are the library's own."""
    y = o.conv(x, values(x, 8, 5, 7), padding=((3, 3),), rhs_dilation=(1,))
    return (o.sin(y), o.cos(y), o.log1p(o.exp(o.neg(o.abs(y)))), o.expm1(y), o.erf(y),
            o.atan(y), o.reduce_sum(y, axes=(0, 2)), o.reduce_max(y, axes=(2,)),
            o.layer_norm(y, None, None, axes=(2,)))


MODELS: dict[str, Callable[[], Module]] = {
    "residual": lambda: module(residual, "f32[2,12,12,12]"),
    "separable": lambda: module(separable, "f32[1,16,10,10]"),
    "encoder": lambda: module(encoder, "f32[2,9,24]"),
    "gru": lambda: module(gated, "f32[7,3,6]"),
    "waves": lambda: module(waves, "f32[3,5,90]"),
    "convnet": lambda: SAMPLES["convnet"],
    "decoder": lambda: SAMPLES["block"],
    "lstm": lambda: SAMPLES["recurrent"],
    "digits": lambda: graphtool.import_model("samples/digits.onnx"),
    "transformer": lambda: graphtool.import_model("samples/transformer.py:model"),
}


@cache
def strict_model(name: str) -> Module:
    """The model of this name."""
    return MODELS[name]()


def inputs_of(m: Module) -> dict[str, Any]:
    """The same inputs at every call: open sizes are 3."""
    found = made_up.random_inputs(m, 5, {s: 3 for s in m.symbols})
    return {k: np.clip(x, 0, 10) if x.dtype.kind == "i" else x for k, x in found.items()}
