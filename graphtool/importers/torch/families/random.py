"""Random ops: torch's hidden generator becomes a state, an input and an output of the graph.

The numbers come from our generator and differ from torch's; their distribution is the same.
"""

from __future__ import annotations

import math
from typing import Any

from graphtool.importers.torch.kit import Array, Context, aten, dtypes, o


def _float(c: Context) -> Any:
    return c.out.dtype if c.out.dtype.is_float else dtypes.float32


@aten("rand", "rand_like")
def rand(c: Context, *_: Any, **__: Any) -> Any:
    """uniform(0, 1) in the shape of the result."""
    return c.drawn(o.uniform, shape=c.out.shape, dtype=_float(c))


@aten("randn", "randn_like")
def randn(c: Context, *_: Any, **__: Any) -> Any:
    """normal(0, 1) in the shape of the result."""
    return c.drawn(o.normal, shape=c.out.shape, dtype=_float(c))


@aten("normal_functional")
def normal_functional(c: Context, self: Array, mean: float = 0.0, std: float = 1.0,
                      **_: Any) -> Any:
    """normal(mean, std) in the shape of the result."""
    return c.drawn(o.normal, shape=c.out.shape, dtype=_float(c), mean=float(mean), std=float(std))


@aten("uniform")
def uniform(c: Context, self: Array, low: float = 0.0, high: float = 1.0, **_: Any) -> Any:
    """uniform(low, high); torch calls the bounds `from` and `to`."""
    return c.drawn(o.uniform, shape=c.out.shape, dtype=_float(c), low=float(low),
                   high=float(high))


@aten("randint.default", "randint_like.default")
def randint(c: Context, first: Any, *more: Any, **_: Any) -> Any:
    """⌊uniform(0, high)⌋; the calls are randint(high, size) and randint_like(x, high)."""
    high = more[0] if isinstance(first, Array) else first
    return _whole(c, 0, high)


@aten("randint.low", "randint_like.low_dtype")
def randint_low(c: Context, first: Any, second: Any, third: Any, **_: Any) -> Any:
    """⌊uniform(low, high)⌋; the calls are randint(low, high, size), randint_like(x, low, high)."""
    low, high = (second, third) if isinstance(first, Array) else (first, second)
    return _whole(c, low, high)


def _whole(c: Context, low: int, high: int) -> Any:
    draw = c.drawn(o.uniform, shape=c.out.shape, dtype=dtypes.float64, low=float(low),
                   high=float(high))
    return c.cast(o.floor(draw), c.out.dtype)


@aten("randperm")
def randperm(c: Context, n: Any, **_: Any) -> Any:
    """i64[n]: the indices that sort n uniform keys."""
    keys = c.drawn(o.uniform, shape=c.out.shape, dtype=dtypes.float64)
    return c.cast(o.sort(keys, axis=0)[1], c.out.dtype)


@aten("multinomial")
def multinomial(c: Context, self: Array, num_samples: int, replacement: bool = False,
                **_: Any) -> Any:
    """i64 indices drawn by weight: with replacement where a uniform draw falls among the running
    sums; without it the top_k of weight / exponential draw."""
    axis = self.ndim - 1
    if not replacement:
        draw = c.drawn(o.uniform, shape=self.shape, dtype=self.dtype)
        return o.top_k(self / -o.log(1.0 - draw), k=num_samples, axis=axis)[1]
    ends = o.cumulative(self, kind="sum", axis=axis)
    total = ends.take(axis, self.shape[axis] - 1, self.shape[axis])
    draw = c.drawn(o.uniform, shape=c.out.shape, dtype=self.dtype) * total
    passed = ends.unsqueeze(-2) <= draw.unsqueeze()
    return passed.cast(dtypes.int64).reduce("sum", (axis + 1,))


@aten("bernoulli.default")
def bernoulli(c: Context, self: Array, **_: Any) -> Any:
    """bernoulli(p): 1 with the probability that each element of self gives."""
    return c.cast(c.drawn(o.bernoulli, self), c.out.dtype)


@aten("bernoulli.p")
def bernoulli_p(c: Context, self: Array, p: float = 0.5, **_: Any) -> Any:
    """uniform(0, 1) < p, in the shape of self."""
    draw = c.drawn(o.uniform, shape=self.shape, dtype=dtypes.float32)
    return c.cast(draw < float(p), c.out.dtype)


@aten("dropout")
def dropout(c: Context, input: Array, p: float, train: bool) -> Any:
    """x / (1 − p) where kept, else 0: the first result of native_dropout."""
    return native_dropout(c, input, p, train)[0]


@aten("native_dropout")
def native_dropout(c: Context, input: Array, p: float, train: bool | None = None) -> Any:
    """(x / (1 − p) where kept, else 0; the bool mask of the kept elements), by our dropout op."""
    if train is False or p == 0:
        return input, c.full(input.shape, True, dtypes.bool_) if c.used(1) else None
    y, mask, c.state = o.dropout(input, c.random_state(), p=float(p))
    return y, mask


# ---- other distributions, by what makes them of a uniform or a normal draw ---------------------

def _unit(c: Context) -> Any:
    return c.drawn(o.uniform, shape=c.out.shape, dtype=_float(c))


@aten("normal")
def normal(c: Context, mean: Any, std: Any = 1.0, *_: Any, **__: Any) -> Any:
    """mean + std·normal(0, 1); the mean and the deviation are numbers or tensors."""
    draw = c.drawn(o.normal, shape=c.out.shape, dtype=_float(c))
    return draw * c.cast(std, draw.dtype) + c.cast(mean, draw.dtype)


@aten("log_normal")
def log_normal(c: Context, self: Array, mean: float = 1.0, std: float = 2.0, **_: Any) -> Any:
    """exp(normal(mean, std))."""
    return o.exp(normal_functional(c, self, mean, std))


@aten("exponential")
def exponential(c: Context, self: Array, lambd: float = 1.0, **_: Any) -> Any:
    """−log(1 − u) / λ of a uniform draw u."""
    return o.log1p(-_unit(c)) * (-1.0 / lambd)


@aten("cauchy")
def cauchy(c: Context, self: Array, median: float = 0.0, sigma: float = 1.0, **_: Any) -> Any:
    """median + σ·tan(π·(u − ½)) of a uniform draw u."""
    quantile = o.tan((_unit(c) - 0.5) * math.pi)
    return quantile * float(sigma) + float(median)


@aten("geometric")
def geometric(c: Context, self: Array, p: float, **_: Any) -> Any:
    """⌈log(1 − u) / log(1 − p)⌉, at least 1: the number of trials up to the first success."""
    tries = o.ceil(o.log1p(-_unit(c)) / math.log1p(-p))
    return c.cast(o.max(tries, 1.0), c.out.dtype)


@aten("rrelu_with_noise_functional", "rrelu_with_noise")
def rrelu(c: Context, self: Array, noise: Array, lower: float = 1 / 8, upper: float = 1 / 3,
          training: bool = False, *_: Any) -> Any:
    """(x·slope, slope): in training a uniform slope for each x ≤ 0; else (lower + upper) / 2."""
    if not training:
        return o.leaky_relu(self, slope=(lower + upper) / 2), noise
    draw = c.drawn(o.uniform, shape=self.shape, dtype=self.dtype, low=float(lower),
                   high=float(upper))
    slope = o.select(self <= 0.0, draw, 1.0)
    return self * slope, slope
