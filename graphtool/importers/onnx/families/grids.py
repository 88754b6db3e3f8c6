"""AffineGrid, which makes positions in an image, and Col2Im, which adds blocks at positions.

Image sizes that the run computes are those that the model declares, or symbolic sizes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.claims import agreed_entries, declared_size
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import (
    array_of,
    count_of,
    dim_tensor,
    dim_value,
    dims,
    ints,
)
from graphtool.importers.onnx.families.shape import iota
from graphtool.symbolic import Dim, product


@onnx_op("AffineGrid", since=20)
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0, ctx: Any) -> Any:
    """theta [N, d, d + 1] applied to the points (x, y, …, 1) of an image whose sides run from −1 to
    1: [N, …, H, W, d]."""
    rank = count_of(size) - 2
    room = ctx.room() if array_of(size) is None else None
    given = size.take(0, 2, rank + 2)
    sides = agreed_entries(given, room[1:-1], "the size") if room is not None else dims(
        given, "the size")
    points = []
    for axis in reversed(range(rank)):  # x runs along the last axis
        place = tuple(sides[axis] if k == axis else 1 for k in range(rank))
        line = iota(theta, (1, *place), axis + 1, theta.dtype)
        steps = _scalar(sides[axis], theta).cast(theta.dtype)
        points.append(line * (2.0 / o.max(steps - 1.0, 1.0)) - 1.0 if align_corners
                      else (line * 2.0 + 1.0) / steps - 1.0)
    columns = []
    for j in range(rank):
        def entry(k: int, j: int = j) -> Any:
            one = theta.take(1, j, j + 1).take(2, k, k + 1)
            return one.reshape((theta.shape[0], *(1,) * rank))
        y = entry(rank)
        for k, p in enumerate(points):
            y = y + entry(k) * p
        whole = o.broadcast(y, shape=(theta.shape[0], *sides))
        columns.append(whole.reshape((*whole.shape, 1)))
    return o.concat(*columns, axis=rank + 1)


def _scalar(d: Dim, like: Any) -> Any:
    return iota(like, (1,), 0).number(0).number(d) if isinstance(d, int) else dim_tensor(d,
        like.builder)


@onnx_op("Col2Im", since=18)
def col2im(x: Any, image: Any, block: Any, *, dilations: Any = None, pads: Any = None,
           strides: Any = None, ctx: Any) -> Any:
    """Blocks added to a padded image at their positions, by `scatter`; the image is then
    cropped."""
    n, room = count_of(image), ctx.room()
    known = array_of(image) is not None and array_of(block) is not None
    room = None if known else room
    size: tuple[Dim, ...] = dims(image, "the image shape") if room is None else agreed_entries(
        image, room[2:], "the image shape")
    dilations, strides, pads = dilations or (1,) * n, strides or (1,) * n, pads or (0,) * (2 * n)
    wide = [d + pads[i] + pads[i + n] for i, d in enumerate(size)]
    if array_of(block) is not None and all(isinstance(d, int) for d in size):
        kernel = ints(block, "the block shape")
        channels: Dim = x.shape[1] // math.prod(kernel)
        place = x.builder.constant(_places(wide, kernel, dilations, strides))
    else:
        channels = _channels(x, block, None if room is None else room[1])
        place = _computed_places(x, channels, wide, block, dilations, strides)
    apart = x.reshape((x.shape[0], channels, place.shape[0]))
    canvas = o.broadcast(x.number(0).reshape((1, 1, 1)),
                         shape=(x.shape[0], channels, product(wide)))
    total = o.scatter(canvas, place, apart.transpose((2, 0, 1)), axes=(2,), kind="add")
    full = total.reshape((x.shape[0], channels, *wide))
    return o.slice(full, start=(0, 0, *pads[:n]), strides=(1,) * (n + 2), limit=(
        x.shape[0], channels, *(pads[i] + size[i] for i in range(n))))


def _places(wide: Any, kernel: Any, dilations: Any, strides: Any) -> Any:
    """The position in the flat image of each element of each block, [taps · blocks, 1]."""
    place = np.zeros((1, 1), np.int64)
    for d, k, r, s in zip(wide, kernel, dilations, strides, strict=True):
        count = (d - (k - 1) * r - 1) // s + 1
        line = np.arange(k)[:, None] * r + np.arange(count)[None] * s
        place = (place[:, None, :, None] * d + line[None, :, None, :]).reshape(
            place.shape[0] * k, -1)
    return place.reshape(-1, 1)


def _channels(x: Any, block: Any, declared: int | None) -> Dim:
    taps = o.reduce_prod(block.cast(dtypes.int64), axes=(0,))
    if not isinstance(x.shape[1], int):
        raise Refused("a block_shape that the run computes needs a fixed number of channels; fix "
                      "it with --dynamic NAME=SIZE, or make block_shape a constant")
    count = dim_tensor(x.shape[1], block.builder) / taps.reshape(())
    return declared_size(count, declared, "the number of channels", 1, x.shape[1])


def _computed_places(x: Any, channels: Dim, wide: Any, block: Any, dilations: Any,
                     strides: Any) -> Any:
    """The same if the run computes the sizes: tap and block follow from the index."""
    blocks = x.shape[2]
    line = iota(x, (product(x.shape[1:]) // channels, 1), 0)
    tap, at = line / dim_value(blocks, x), o.mod(line, dim_value(blocks, x))
    place: Any = None
    step: Any = None
    for a in reversed(range(len(wide))):
        k = block.take(0, a, a + 1).cast(dtypes.int64).reshape(())
        d, r, s = wide[a], dilations[a], strides[a]
        reach = (k - 1) * r
        count = (_scalar(d, x) - reach - 1) / s + 1
        here = o.mod(tap, k) * r + o.mod(at, count) * s
        tap, at = tap / k, at / count
        place = here if place is None else place + here * step
        step = _scalar(d, x) if step is None else step * _scalar(d, x)
    return place
