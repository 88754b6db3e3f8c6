"""Operations of other times and places: operations that StableHLO keeps for older programs, and
those between devices, which in a program for one device hand their operands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.stablehlo.families.index import DimensionNumbers, gathered
from graphtool.importers.stablehlo.families.movement import ints, placed
from graphtool.importers.stablehlo.families.product import contracted
from graphtool.importers.stablehlo.families.window import convolution
from graphtool.importers.stablehlo.kit import Array, Context, Dense, Refused, o, stablehlo
from graphtool.symbolic import Dim, product


@stablehlo("broadcast")
def broadcast(ctx: Context, x: Array, *, broadcast_sizes: Any) -> Array:
    """x repeated along new axes in front."""
    sizes = ints(broadcast_sizes)
    return placed(x, range(len(sizes), len(sizes) + x.ndim), (*sizes, *x.shape))


@stablehlo("map")
def map_(ctx: Context, *xs: Array, dimensions: Any = None) -> list[Any]:
    """The body on each element."""
    return ctx.region(0, xs, vector=True)


@stablehlo("set_dimension_size")
def set_dimension_size(ctx: Context, x: Array, size: Array, *, dimension: int) -> Array:
    """The first elements along an axis."""
    (n,) = size.sizes("the size")
    return x.take(dimension, 0, n)


@stablehlo("torch_index_select")
def torch_index_select(ctx: Context, x: Array, index: Array, *, dim: int, batch_dims: int = 0
                       ) -> Any:
    """x at the indices along one axis; `batch_dims` axes are shared."""
    shape, rank = x.shape, index.ndim
    shared = tuple(range(batch_dims))
    sizes = tuple(1 if d == dim or d in shared else n for d, n in enumerate(shape))
    after = dim + rank - batch_dims
    offsets = (*range(batch_dims, dim), *range(after, after + len(shape) - dim - 1))
    return gathered(x, index, DimensionNumbers(
        offsets, (dim,), shared, shared, (dim,), rank, sizes))


# ---- einsum ------------------------------------------------------------------------------------

@stablehlo("einsum")
def einsum(ctx: Context, a: Array, b: Array, *, einsum_config: str) -> Array:
    """The product that the letters say."""
    given, _, out = einsum_config.replace(" ", "").partition("->")
    left, _, right = given.partition(",")
    a, left = _summed(a, left, right + out)
    b, right = _summed(b, right, left + out)
    both = [c for c in left if c in right]
    batch, inner = [c for c in both if c in out], [c for c in both if c not in out]
    y = contracted(ctx, a, b, _places(left, right, batch), _places(left, right, inner))
    have = [*batch, *(c for c in left if c not in both), *(c for c in right if c not in both)]
    return y.transpose([have.index(c) for c in out])


@stablehlo("unary_einsum")
def unary_einsum(ctx: Context, x: Array, *, einsum_config: str) -> Array:
    """x with the axes that the letters keep, the others summed."""
    given, _, out = einsum_config.replace(" ", "").removeprefix(",").partition("->")
    y, have = _summed(x, given, out)
    return y.transpose([have.index(c) for c in out])


def _places(left: str, right: str, letters: list[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(map(left.index, letters)), tuple(map(right.index, letters))


def _summed(x: Array, letters: str, kept: str) -> tuple[Array, str]:
    """x without the axes whose letters occur nowhere else, and the letters of the others."""
    if "..." in letters or len(set(letters)) != len(letters):
        raise Refused("an einsum with dots, or with a letter twice in one operand, is not "
                      "supported")
    gone = [i for i, c in enumerate(letters) if c not in kept]
    return x.reduce("sum", gone) if gone else x, "".join(c for c in letters if c in kept)


# ---- batch norm --------------------------------------------------------------------------------

@stablehlo("batch_norm_inference")
def batch_norm_inference(ctx: Context, x: Array, scale: Array, offset: Array, mean: Array,
                         variance: Array, *, epsilon: float, feature_index: int) -> Any:
    """Features with the given mean and variance, scaled and moved."""
    return o.batch_norm(x, scale, offset, mean, variance, epsilon=float(epsilon),
                        axis=feature_index)


@stablehlo("batch_norm_training")
def batch_norm_training(ctx: Context, x: Array, scale: Array, offset: Array, *, epsilon: float,
                        feature_index: int) -> list[Array]:
    """The same with the mean and the variance of x itself, which are the other results."""
    axes = tuple(i for i in range(x.ndim) if i != feature_index)
    middle = o.reduce_mean(x, axes=axes)
    apart = x - middle
    mean, variance = middle.reshape(scale.shape), (apart * apart).reduce("mean", axes)
    y = o.batch_norm(x, scale, offset, mean, variance, epsilon=float(epsilon), axis=feature_index)
    return [y, mean, variance]


@stablehlo("batch_norm_grad")
def batch_norm_grad(ctx: Context, x: Array, scale: Array, mean: Array, variance: Array, g: Array,
                    *, epsilon: float, feature_index: int) -> list[Array]:
    """The gradients by x, scale and offset, of `batch_norm_training`."""
    axes = tuple(i for i in range(x.ndim) if i != feature_index)
    features = (x.shape[feature_index],)
    wide = tuple(d if i == feature_index else 1 for i, d in enumerate(x.shape))
    s, m, v = (t.reshape(wide) for t in (scale, mean, variance))
    count = float(product(x.shape[i] for i in axes))  # type: ignore[arg-type]
    apart, inverse = x - m, o.rsqrt(v + float(epsilon))
    total, along = (o.reduce_sum(t, axes=axes) for t in (g, g * apart))
    share = apart * (along * (inverse * inverse)) / count
    gx = s * inverse * (g - total / count - share)
    return [gx, (along * inverse).reshape(features), total.reshape(features)]


# ---- convolution of computed padding -----------------------------------------------------------

@stablehlo("dynamic_conv")
def dynamic_conv(ctx: Context, x: Array, w: Array, d_padding: Array, *, dim_numbers: Any,
                 feature_group_count: int = 1, batch_group_count: int = 1,
                 window_strides: Any = None, lhs_dilation: Any = None, rhs_dilation: Any = None,
                 window_reversal: Any = None) -> Any:
    """`convolution`, with the padding as an operand; x is padded first where that is open."""
    sides = d_padding.sizes("the padding")
    rows = [list(sides[i:i + 2]) for i in range(0, len(sides), 2)]
    if not all(isinstance(d, int) for d in sides):
        if set(ints(lhs_dilation or ())) - {1}:
            raise Refused("padding of open sizes between elements that are spread is not supported")
        places = [[str(d) for d in dim_numbers[0]].index(str(i)) for i in range(len(rows))]
        edges: list[list[Dim]] = [[0, 0]] * x.ndim
        for at, row in zip(places, rows, strict=True):
            edges[at] = row
        x = x.pad([lo for lo, _ in edges], [hi for _, hi in edges])
        rows = [[0, 0]] * len(rows)
    return convolution(ctx, x, w, dim_numbers=dim_numbers, padding=rows,
                       feature_group_count=feature_group_count,
                       batch_group_count=batch_group_count, window_strides=window_strides,
                       lhs_dilation=lhs_dilation, rhs_dilation=rhs_dilation,
                       window_reversal=window_reversal)


# ---- operations between devices -----------------------------------------------------------------

def _rows(x: Any) -> list[list[int]]:
    """`dense<[[0, 1]]>` or nested lists, as rows of numbers; none for anything else."""
    rows = x.elements if isinstance(x, Dense) else x
    if isinstance(rows, list):
        return [[int(v) for v in (r if isinstance(r, list) else [r])] for r in rows]
    return [[int(rows)]] if str(rows).isdecimal() else []


def _alone(ctx: Context, groups: Any) -> None:
    """Raises Refused if a group has more than one member."""
    if any(len(row) > 1 for row in _rows(groups)):
        raise Refused("a program for several devices is not supported")


@stablehlo("all_gather", "all_reduce", "all_to_all", "collective_broadcast", "reduce_scatter",
           "cross-replica-sum")
def among(ctx: Context, *xs: Any, replica_groups: Any, channel_handle: Any = None,
          use_global_device_ids: Any = None, all_gather_dim: Any = None,
          scatter_dimension: Any = None, split_dimension: Any = None, concat_dimension: Any = None,
          split_count: Any = None) -> list[Any]:
    """What one device computes with itself: its own values."""
    _alone(ctx, replica_groups)
    return list(xs)


@stablehlo("collective_permute")
def collective_permute(ctx: Context, *xs: Any, source_target_pairs: Any,
                       channel_handle: Any = None) -> list[Any]:
    """The values themselves if the device sends to itself, else zeros."""
    pairs = _rows(source_target_pairs)
    if any(n for row in pairs for n in row):
        raise Refused("a program for several devices is not supported")
    return list(xs) if pairs else [ctx.builder.constant(np.zeros(
        ctx.result(i).shape, ctx.element(i).numpy)) for i in range(len(xs))]


@stablehlo("sdy.sharding_constraint")
def sharding_constraint(ctx: Context, x: Any, *, sharding: Any = None) -> Any:
    """x: where its parts lie is no matter of one device."""
    return x


@stablehlo("replica_id", "partition_id")
def number(ctx: Context) -> Array:
    """The device's number: 0."""
    return ctx.builder.number(0, ctx.dtype)
