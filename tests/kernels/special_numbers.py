"""NaN and infinities strewn over inputs, and where they come out; small models for every kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Module
from tests.passes.pass_samples import module

Array = np.ndarray[Any, Any]
SPECIAL = np.array([np.nan, np.inf, -np.inf])
P1, P2, P3 = ((1, 1),) * 2, ((2, 2),) * 2, ((3, 3),) * 2


def laden(inputs: Mapping[str, Array], seed: int, share: float = 0.004) -> dict[str, Array]:
    """The inputs with a few NaN and infinities in most of the floats."""
    rng, out = np.random.default_rng(seed), {}
    for name, x in inputs.items():
        if dtypes.of_numpy(x.dtype).is_float and x.size and rng.random() < 0.8:
            x = x.copy()
            at = rng.integers(0, x.size, max(1, int(x.size * share)))
            x.reshape(-1)[at] = rng.choice(SPECIAL, len(at)).astype(x.dtype)
        out[name] = x
    return out


def places(x: Array) -> Array:
    """2 where x is NaN, 1 and -1 where it is infinite, else 0; integers as they are."""
    if not dtypes.of_numpy(x.dtype).is_float:
        return x
    wide = x.astype(np.float64)
    return np.where(np.isnan(wide), 2.0, np.where(np.isinf(wide), np.sign(wide), 0.0))


def moved(got: Mapping[str, Array], want: Mapping[str, Array]) -> list[str]:
    """The outputs in which NaN or infinities stand in other places than in `want`."""
    return [f"{name}: {np.count_nonzero(a)} for {np.count_nonzero(b)}"
            for name, w in want.items()
            for a, b in [(places(got[name]), places(w))] if not np.array_equal(a, b)]


def conv(*shape: int, **attrs: Any) -> Callable[[Any], Any]:
    """A convolution with constant filters."""
    def fn(x: Any) -> Any:
        w = np.random.default_rng(list(shape)).standard_normal(shape)
        return o.conv(x, x.builder.constant(w.astype(x.dtype.numpy)), **attrs)
    return fn


def by_weights(**attrs: Any) -> Callable[..., Any]:
    """The gradient of a convolution by its weights, as `grad` writes it."""
    return lambda x, g: o.conv(o.transpose(x, perm=(1, 0, 2, 3)),
                               o.transpose(g, perm=(1, 0, 2, 3)), **attrs)


def nbits(x: Any) -> Any:
    rng = np.random.default_rng(0)
    tables = (rng.integers(0, 256, (24, 5, 8), np.uint8),
              *rng.standard_normal((2, 24, 5)).astype(np.float32))
    return o.linear_nbits(x, *map(x.builder.constant, tables), bits=4, block=16)


def product(k: int, n: int) -> Callable[[Any], Any]:
    def fn(x: Any) -> Any:
        w = np.random.default_rng(k).standard_normal((k, n)).astype(x.dtype.numpy)
        return o.matmul(x, x.builder.constant(w))
    return fn


def attention(**attrs: Any) -> Callable[..., Any]:
    return lambda q, k, v, *mask: o.attention(q, k, v, *(o.gt(m, 0.0) for m in mask), **attrs)


_QKV = ("f32[1,2,40,16]",) * 3

MODELS: dict[str, Module] = {name: module(fn, *types) for name, (fn, *types) in {
    "groups as one": (conv(16, 4, 3, 3, groups=4, padding=P1), "f32[1,16,9,9]"),
    "groups of volumes": (conv(8, 3, 3, 3, 3, groups=2, padding=(*P1, (1, 1))), "f32[1,6,5,8,8]"),
    "winograd": (conv(32, 32, 3, 3, padding=P1), "f32[1,32,12,12]"),
    "winograd, weights move": (lambda x, w: o.conv(x, w, padding=P1), "f32[1,32,12,12]",
                               "f32[32,32,3,3]"),
    "winograd of float16": (conv(32, 32, 3, 3, padding=P1), "f16[1,32,12,12]"),
    "winograd along lines": (conv(32, 32, 5, 5, padding=P2), "f32[1,32,16,16]"),
    "pixels as one": (conv(3, 16, 5, 5, padding=P2), "f32[1,16,16,16]"),
    "strided": (conv(16, 3, 7, 7, strides=(2, 2), padding=P3), "f32[1,3,32,32]"),
    "depthwise": (conv(32, 1, 3, 3, groups=32, padding=P1), "f32[1,32,12,12]"),
    "depthwise, few channels": (conv(3, 1, 3, 3, groups=3, padding=P1), "f32[1,3,12,12]"),
    "volume smaller than its window": (
        lambda x, w: o.conv(x, w, padding=(*P2, (0, 0)), strides=(2, 2, 1), groups=4),
        "f32[1,4,4,2,4]", "f32[8,1,3,5,3]"),
    "image smaller than its window": (lambda x, w: o.conv(x, w, padding=P3), "f32[1,8,2,2]",
                                      "f32[16,8,7,7]"),
    "pixel under moving weights": (lambda x, w: o.conv(x, w, padding=P1), "f32[2,20,1,1]",
                                   "f32[24,20,3,3]"),
    "transposed, weights move": (lambda x, w: o.conv(x, w, padding=P2, lhs_dilation=(2, 2)),
                                 "f32[1,16,8,8]", "f32[8,16,4,4]"),
    "one pixel": (conv(24, 20, 3, 3, padding=P1), "f32[2,20,1,1]"),
    "dilated": (conv(24, 20, 3, 3, padding=((6, 6),) * 2, rhs_dilation=(6, 6)), "f32[1,20,8,8]"),
    "transposed": (conv(8, 16, 4, 4, padding=P2, lhs_dilation=(2, 2)), "f32[1,16,8,8]"),
    "transposed to few": (conv(2, 16, 4, 4, padding=P2, lhs_dilation=(2, 2)), "f32[1,16,8,8]"),
    "by weights": (by_weights(padding=P1), "f32[2,16,64,64]", "f32[2,16,64,64]"),
    "bfloat16": (conv(16, 7, 3, 3, padding=P1), "bf16[1,7,9,9]"),
    "attention": (attention(), *_QKV),
    "causal attention": (attention(causal=True), *_QKV),
    "attention under a mask": (attention(), *_QKV, "f32[1,1,40,40]"),
    "few bits": (nbits, "f32[9,80]"),
    "product": (product(37, 45), "f32[9,37]"),
    "product of bfloat16": (product(37, 45), "bf16[9,37]"),
    "product of float16": (product(37, 45), "f16[9,37]"),
    "largest of windows": (lambda x: o.max_pool(x, window=(3, 3), strides=(2, 2), padding=P1),
                           "f32[1,32,17,17]"),
    "sums of windows": (lambda x: o.avg_pool(x, window=(7, 7), padding=P3), "f32[1,32,17,17]"),
    "long sums": (lambda x: (o.reduce_sum(x, axes=(0,)), o.reduce_sum(x, axes=(1,)),
                             o.reduce_max(x, axes=(1,))), "f32[2000,40]"),
    "softmax": (lambda x: o.softmax(x, axis=1), "f32[9,40]"),
}.items()}
# the models in which the default rules choose something that assumes finite numbers
FINITE = {"volume smaller than its window", "image smaller than its window",
          "pixel under moving weights", "transposed, weights move",
          "groups as one", "groups of volumes", "winograd", "winograd, weights move",
          "winograd of float16", "winograd along lines", "pixels as one", "transposed to few",
          "by weights", "causal attention", "attention under a mask", "few bits"}
