"""Random numbers as values: a generator takes a state and gives numbers and the next state.

The state is u64[2]: a key (the seed) and the number of 128-bit blocks drawn so far. The same state
gives the same numbers in the evaluator and in C. The generator is counter-based: Philox-4x32-10
(Salmon et al. 2011), written in graph ops.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.facets import Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like
from graphtool.ops.common import composite, need
from graphtool.symbolic import Dim, ceildiv, product

_MULTIPLY = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF
_STATE = TensorType(dtypes.uint64, (2,))


def _and(a: Any, b: Any) -> Any:
    return o.and_(a, b)


def _high(x: Any) -> Any:
    return o.shift_right(x, 32)


def _entry(state: Any, i: int) -> Any:
    return o.slice(state, start=(i,), limit=(i + 1,), strides=(1,))


def _philox(counter: Any, key: Any) -> list[Any]:
    """Ten rounds on the counter (counter, 0) with a key; the results are four 32-bit words, each
    in a u64."""
    lanes = [_and(counter, _LOW), _high(counter), _and(counter, 0), _and(counter, 0)]
    k0, k1 = _and(key, _LOW), _high(key)
    for _ in range(10):
        a, b = lanes[0] * _MULTIPLY[0], lanes[2] * _MULTIPLY[1]
        lanes = [o.xor(o.xor(_high(b), lanes[1]), k0), _and(b, _LOW),
                 o.xor(o.xor(_high(a), lanes[3]), k1), _and(a, _LOW)]
        k0, k1 = _and(k0 + _WEYL[0], _LOW), _and(k1 + _WEYL[1], _LOW)
    return lanes


def _bits_types(state: TensorType, *, shape: tuple[Dim, ...]) -> tuple[TensorType, TensorType]:
    need(state == _STATE, f"the state is {state}, expected {_STATE}")
    return TensorType(dtypes.uint32, shape), _STATE


@composite(types=_bits_types, vjp=lambda g, y, state, *, shape: (None,),
           traits=Trait.RANDOM)
def rng_bits(state: Any, *, shape: tuple[Dim, ...]) -> Any:
    """Independent uniform u32 → (bits, next state)."""
    n = product(shape)
    blocks = ceildiv(n, 4)
    key, first = _entry(state, 0), _entry(state, 1)
    counter = like(state, o.iota, shape=(blocks,), axis=0, dtype=dtypes.uint64) + first
    lanes = o.stack(*_philox(counter, key), axis=1)
    flat = o.slice(o.reshape(lanes, shape=(blocks * 4,)), start=(0,), limit=(n,), strides=(1,))
    bits = o.reshape(o.cast(flat, dtype=dtypes.uint32), shape=shape)
    drawn = blocks if isinstance(blocks, int) else like(state, o.dim, of=blocks,
                                                        dtype=dtypes.uint64)
    return bits, o.concat(key, first + drawn, axis=0)


def _drawn_types(state: TensorType, *, shape: tuple[Dim, ...], dtype: DType = dtypes.float32,
                 **_: Any) -> tuple[TensorType, TensorType]:
    need(dtype.is_float, f"is not defined on {dtype.short}")
    return TensorType(dtype, shape), _bits_types(state, shape=shape)[1]


def _unit(bits: Any, dtype: DType) -> Any:
    """Numbers of [0, 1) in steps of 2⁻²⁴, which float32 represents exactly."""
    return o.cast(o.shift_right(bits, 8), dtype=dtypes.float32 if dtype.bits < 32 else dtype) * (
        2.0**-24)


@composite(types=_drawn_types, vjp=lambda g, y, state, **_: (None,), traits=Trait.RANDOM)
def uniform(state: Any, *, shape: tuple[Dim, ...], dtype: DType = dtypes.float32, low: float = 0.0,
            high: float = 1.0) -> Any:
    """Uniform on [low, high) → (values, next state)."""
    bits, after = o.rng_bits(state, shape=shape)
    return o.cast(_unit(bits, dtype) * (high - low) + low, dtype=dtype), after


@composite(types=_drawn_types, vjp=lambda g, y, state, **_: (None,), traits=Trait.RANDOM)
def normal(state: Any, *, shape: tuple[Dim, ...], dtype: DType = dtypes.float32, mean: float = 0.0,
           std: float = 1.0) -> Any:
    """Normally distributed, by the method of Box and Muller → (values, next state)."""
    bits, after = o.rng_bits(state, shape=(2, *shape))

    def half(i: int) -> Any:
        part = o.slice(bits, start=(i, *(0,) * len(shape)), limit=(i + 1, *shape),
                       strides=(1,) * (len(shape) + 1))
        return _unit(o.reshape(part, shape=shape), dtype)
    radius = o.sqrt(o.log(1.0 - half(0)) * -2.0)
    return o.cast(radius * o.cos(half(1) * (2 * math.pi)) * std + mean, dtype=dtype), after


def _dropout_types(x: TensorType, state: TensorType, *,
                   p: float) -> tuple[TensorType, TensorType, TensorType]:
    need(0 <= p <= 1 and x.dtype.is_float,
         f"p must be in [0, 1) and x a float tensor, got p = {p} and {x}")
    return x, TensorType(dtypes.bool_, x.shape), _bits_types(state, shape=x.shape)[1]


def _dropout_vjp(g: Any, y: Any, x: Any, _state: Any, *, p: float) -> tuple[Any, ...]:
    keep = 1 / (1 - p) if p < 1 else 0.0
    return (None if g[0] is None else o.select(y[1], g[0] * keep, 0.0)), None


@composite(types=_dropout_types, vjp=_dropout_vjp, traits=Trait.RANDOM, precision=Precision.FOLLOW)
def dropout(x: Any, state: Any, *, p: float = 0.5) -> Any:
    """0 with probability p, else x / (1 − p) → (y, the mask of the elements kept, next state)."""
    draw, after = o.uniform(state, shape=x.shape, dtype=dtypes.float32)
    kept = o.ge(draw, p)
    return o.select(kept, x * (1 / (1 - p) if p < 1 else 0.0), 0.0), kept, after


@composite(types=lambda p, state: (TensorType(dtypes.bool_, p.shape), _STATE),
           vjp=lambda g, y, p, state: (None, None), traits=Trait.RANDOM)
def bernoulli(p: Any, state: Any) -> Any:
    """True with probability p, elementwise → (bool, next state)."""
    draw, after = o.uniform(state, shape=p.shape, dtype=p.dtype)
    return o.lt(draw, p), after


def state_of(seed: int) -> np.ndarray[Any, Any]:
    """The initial state for a seed."""
    return np.array([seed & (2**64 - 1), 0], np.uint64)
