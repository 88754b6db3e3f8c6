"""Operations that StableHLO keeps for older programs: einsum, dot, batch norm, map, and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.registry import Refused, stablehlo
from graphtool.importers.stablehlo.driver.values import dims_of, dtype_of, shape_of
from graphtool.importers.stablehlo.families.index import Numbers, gathered
from graphtool.importers.stablehlo.families.movement import (
    ints,
    padded,
    placed,
    reshaped,
    sliced,
    transposed,
)
from graphtool.importers.stablehlo.families.product import contracted
from graphtool.importers.stablehlo.families.window import convolution
from graphtool.symbolic import Dim, product


@stablehlo("broadcast")
def broadcast(ctx: Context, x: Any, *, broadcast_sizes: Any) -> Any:
    """x repeated along new axes in front."""
    sizes, rank = ints(broadcast_sizes), len(shape_of(x))
    return placed(ctx, x, range(len(sizes), len(sizes) + rank), (*sizes, *shape_of(x)))


@stablehlo("map")
def map_(ctx: Context, *xs: Any, dimensions: Any = None) -> list[Any]:
    """The body on each element."""
    return ctx.region(0, xs, vector=True)


@stablehlo("set_dimension_size")
def set_dimension_size(ctx: Context, x: Any, size: Any, *, dimension: int) -> Any:
    """The first elements along an axis."""
    (n,), shape = dims_of(size, "the size"), shape_of(x)
    return sliced(ctx, x, [0] * len(shape), [n if i == dimension else d
                                             for i, d in enumerate(shape)], [1] * len(shape))


@stablehlo("torch_index_select")
def torch_index_select(ctx: Context, x: Any, index: Any, *, dim: int, batch_dims: int = 0) -> Any:
    """x at the indices along one axis; `batch_dims` axes are shared."""
    shape, rank = shape_of(x), len(shape_of(index))
    shared = tuple(range(batch_dims))
    sizes = tuple(1 if d == dim or d in shared else n for d, n in enumerate(shape))
    after = dim + rank - batch_dims
    offsets = (*range(batch_dims, dim), *range(after, after + len(shape) - dim - 1))
    return gathered(ctx, x, index, Numbers(offsets, (dim,), shared, shared, (dim,), rank, sizes))


# ---- einsum ------------------------------------------------------------------------------------

@stablehlo("einsum")
def einsum(ctx: Context, a: Any, b: Any, *, einsum_config: str) -> Any:
    """The product that the letters say."""
    given, _, out = einsum_config.replace(" ", "").partition("->")
    left, _, right = given.partition(",")
    a, left = _summed(ctx, a, left, right + out)
    b, right = _summed(ctx, b, right, left + out)
    both = [c for c in left if c in right]
    batch, inner = [c for c in both if c in out], [c for c in both if c not in out]
    y = contracted(ctx, a, b, _places(left, right, batch), _places(left, right, inner))
    have = [*batch, *(c for c in left if c not in both), *(c for c in right if c not in both)]
    return transposed(ctx, y, [have.index(c) for c in out])


@stablehlo("unary_einsum")
def unary_einsum(ctx: Context, x: Any, *, einsum_config: str) -> Any:
    """x with the axes that the letters keep, the others summed."""
    given, _, out = einsum_config.replace(" ", "").removeprefix(",").partition("->")
    y, have = _summed(ctx, x, given, out)
    return transposed(ctx, y, [have.index(c) for c in out])


def _places(left: str, right: str, letters: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(map(left.index, letters)), tuple(map(right.index, letters))


def _summed(ctx: Context, x: Any, letters: str, kept: str) -> tuple[Any, str]:
    """x without the axes whose letters occur nowhere else, and the letters of the others."""
    if "..." in letters or len(set(letters)) != len(letters):
        raise Refused("an einsum with dots, or with a letter twice in one operand, is not "
                      "supported")
    gone = tuple(i for i, c in enumerate(letters) if c not in kept)
    if not gone:
        return x, letters
    shape = tuple(d for i, d in enumerate(shape_of(x)) if i not in gone)
    return (reshaped(ctx, o.reduce_sum(ctx.tensor(x), axes=gone), shape),
            "".join(c for c in letters if c in kept))


# ---- batch norm --------------------------------------------------------------------------------

@stablehlo("batch_norm_inference")
def batch_norm_inference(ctx: Context, x: Any, scale: Any, offset: Any, mean: Any, variance: Any,
                         *, epsilon: float, feature_index: int) -> Any:
    """Features with the given mean and variance, scaled and moved."""
    return o.batch_norm(*map(ctx.tensor, (x, scale, offset, mean, variance)),
                        epsilon=float(epsilon), axis=feature_index)


@stablehlo("batch_norm_training")
def batch_norm_training(ctx: Context, x: Any, scale: Any, offset: Any, *, epsilon: float,
                        feature_index: int) -> list[Any]:
    """The same with the mean and the variance of x itself, which are the other results."""
    full = ctx.tensor(x)
    axes = tuple(i for i in range(full.ndim) if i != feature_index)
    features = (full.shape[feature_index],)
    mean = o.reduce_mean(full, axes=axes)
    apart = o.sub(full, mean)
    variance = o.reduce_mean(o.mul(apart, apart), axes=axes)
    mean, variance = (o.reshape(v, shape=features) for v in (mean, variance))
    y = o.batch_norm(full, ctx.tensor(scale), ctx.tensor(offset), mean, variance,
                     epsilon=float(epsilon), axis=feature_index)
    return [y, mean, variance]


@stablehlo("batch_norm_grad")
def batch_norm_grad(ctx: Context, x: Any, scale: Any, mean: Any, variance: Any, g: Any, *,
                    epsilon: float, feature_index: int) -> list[Any]:
    """The gradients by x, scale and offset, of `batch_norm_training`."""
    full, up = ctx.tensor(x), ctx.tensor(g)
    axes = tuple(i for i in range(full.ndim) if i != feature_index)
    features = (full.shape[feature_index],)
    wide = tuple(d if i == feature_index else 1 for i, d in enumerate(full.shape))
    s, m, v = (o.reshape(ctx.tensor(t), shape=wide) for t in (scale, mean, variance))
    count = float(product(full.shape[i] for i in axes))  # type: ignore[arg-type]
    apart = o.sub(full, m)
    inverse = o.rsqrt(o.add(v, float(epsilon)))
    total, along = (o.reduce_sum(t, axes=axes) for t in (up, o.mul(up, apart)))
    share = o.div(o.mul(apart, o.mul(along, o.mul(inverse, inverse))), count)
    gx = o.mul(o.mul(s, inverse), o.sub(o.sub(up, o.div(total, count)), share))
    return [gx, o.reshape(o.mul(along, inverse), shape=features),
            o.reshape(total, shape=features)]


# ---- convolution of computed padding -----------------------------------------------------------

@stablehlo("dynamic_conv")
def dynamic_conv(ctx: Context, x: Any, w: Any, d_padding: Any, *, dim_numbers: Any,
                 feature_group_count: int = 1, batch_group_count: int = 1,
                 window_strides: Any = None, lhs_dilation: Any = None, rhs_dilation: Any = None,
                 window_reversal: Any = None) -> Any:
    """`convolution`, with the padding as an operand; x is padded first where that is open."""
    sides = dims_of(d_padding, "the padding")
    rows = [list(sides[i:i + 2]) for i in range(0, len(sides), 2)]
    if not all(isinstance(d, int) for d in sides):
        if set(ints(lhs_dilation or ())) - {1}:
            raise Refused("padding of open sizes between elements that are spread is not supported")
        places = [[str(d) for d in dim_numbers[0]].index(str(i)) for i in range(len(rows))]
        edges: list[list[Dim]] = [[0, 0]] * len(shape_of(x))
        for at, row in zip(places, rows, strict=True):
            edges[at] = row
        zero = np.zeros((), dtype_of(x).numpy)
        x = padded(ctx, x, zero, [lo for lo, _ in edges], [hi for _, hi in edges],
                   [0] * len(edges))
        rows = [[0, 0]] * len(rows)
    return convolution(ctx, x, w, dim_numbers=dim_numbers, padding=rows,
                       feature_group_count=feature_group_count,
                       batch_group_count=batch_group_count, window_strides=window_strides,
                       lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
                       window_reversal=window_reversal)
