"""select's convolutions: products if they are equal to one, else the best kernel for the site.

A 1-d convolution is one on an image that is one pixel high, a 3-d one is a sum of 2-d ones, and a
transposed one consists of phases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.assume import Assumes
from graphtool.ir.graph import Node
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.images import padded
from graphtool.passes.select.equivalent_convolutions import (
    diagonal,
    filters,
    of_one_pixel,
    pixels,
    rows_of_one_pixel,
    together,
    trimmed,
    volume,
)
from graphtool.passes.select.goal import Goal, if_finite, is_constant, is_finite
from graphtool.passes.select.polyphase import polyphase, unfit
from graphtool.passes.select.product import best_product
from graphtool.passes.select.weight_gradient import weight_gradient
from graphtool.symbolic import Dim, at_least_sizes, product, typical_size

_LEFT_OUT = "weights are not multiplied by the zeros"
SEEN = 0.9  # up to this part of taps that see more than padding, the others are left out


def conv(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The convolution as target ops; None if there is no kernel for it."""
    a = node.attrs
    rank = x.ndim
    grouped = a["batch_groups"] != 1  # the gradient of grouped weights
    if not a["channels_last"] or rank not in (3, 4, 5) or a["dtype"] or (grouped and rank == 5):
        return None
    if a["absent"] and not _multiplies_zeros(goal, x, w):
        goal.note(x, "plain loops: kernels multiply the zeros around and between the elements, "
                     "and the weights may be infinite")
        return None
    out = node.outputs[0].type.shape
    fixed = all(isinstance(d, int) for d in w.shape)
    if rank == 5:
        if not fixed:
            return None
        if x.dtype in dtypes.HALVES:  # further sums are in float32
            x, w = (o.cast(v, dtype=dtypes.float32) for v in (x, w))
        return volume(goal, x, w, a, out, partial(_spread, goal))
    if rank == 3:  # a 1-d row is an image that is one pixel high
        x = o.reshape(x, shape=(x.shape[0], 1, *x.shape[1:]))
        w = o.reshape(w, shape=(*w.shape[:2], 1, w.shape[2]))
        a = _one_row(a)
    shape = out if rank == 4 else (out[0], 1, *out[1:])
    y = weight_gradient(goal, a, x, w, shape)
    if y is None:
        if not fixed or grouped:
            return None  # in the gradient of the weights the batch has the role of the channels
        y = _spread(goal, a, x, w, shape)
    return o.reshape(y, shape=out) if rank == 3 else y


def _multiplies_zeros(goal: Goal, x: Tracer, w: Tracer) -> bool:
    """Whether w may be multiplied by zeros that stand for absent elements."""
    why = "weights are multiplied by zeros where the model has no elements"
    return is_finite(w) if is_constant(w) else bool(goal.take(x, if_finite(w, True, why)))


def _one_row(a: Any) -> Any:
    """The attributes of a 1-d convolution as those of a 2-d one."""
    return {**a, "strides": (1, *(a["strides"] or (1,))),
            "padding": ((0, 0), *(a["padding"] or ((0, 0),))),
            "lhs_dilation": (1, *(a["lhs_dilation"] or (1,))),
            "rhs_dilation": (1, *(a["rhs_dilation"] or (1,)))}


def _spread(goal: Goal, a: Any, x: Tracer, w: Tracer, out: tuple[Dim, ...]) -> Any:
    """Transposed convolutions by phases, or with zeros between the elements; other convolutions
    are not changed."""
    if all(d == 1 or n == 1 for d, n in zip(a["lhs_dilation"] or (), x.shape[1:3], strict=False)):
        return _conv2d(goal, a, x, w)
    why = unfit(x, w, a, out)
    if not why and goal.take(x, if_finite(w, True, f"{_LEFT_OUT} between elements")) is None:
        why = "weights that are no constants may be infinite"
    if not why:
        high, wide = a["lhs_dilation"]
        goal.note(x, f"transposed convolution by {high}×{wide} phases, without zeros between the "
                     f"elements")
        lanes = goal.target.lanes if goal.rules.allows("finite") else 0
        return polyphase(x, w, a, out, lambda part, taps, plain, zeros: _conv2d(
            goal, plain, part, taps, zeros), lanes)
    goal.note(x, f"transposed convolution with zeros between the elements: phases are not "
                 f"possible because {why}")
    gaps = tuple(d - 1 for d in a["lhs_dilation"])
    spread = o.pad(x, lo=(0,) * 4, hi=(0,) * 4, interior=(0, *gaps, 0))
    return _conv2d(goal, {**a, "lhs_dilation": None}, spread, w)


def _conv2d(goal: Goal, a: Any, x: Tracer, w: Tracer, zeros: bool = False) -> Any:
    """The convolution of images; `zeros`: the filters have taps that an output does not."""
    strides, dilation = a["strides"] or (1, 1), a["rhs_dilation"] or (1, 1)
    padding = a["padding"] or ((0, 0), (0, 0))
    less = trimmed(x, w, padding, strides, dilation)
    if less is not None:
        x, w, padding = goal.take(x, if_finite(w, less, f"{_LEFT_OUT} of padding")) or (
            x, w, padding)
    m, c, kh, kw = w.shape
    groups: int = a["groups"]
    if not zeros and (kh, kw) == (1, 1) and strides == (1, 1) and groups == 1 and not any(
            p != 0 for pair in padding for p in pair):
        rows = product(x.shape[:-1])
        site = Product(1, typical_size(rows), typical_size(m), typical_size(c), is_constant(w),
                       fixed=isinstance(rows, int), dtype=x.dtype)
        return best_product(goal, site, x, o.reshape(w, shape=(m, c)), True)
    if not zeros and of_one_pixel(x, w, {**a, "padding": padding}) and goal.take(
            x, if_finite(w, True, f"{_LEFT_OUT} of padding")):
        return _one_pixel(goal, x, w, padding)
    depthwise = groups == m == x.shape[3]  # it has a kernel
    left_out = None if _in_memory(goal, x, (kh, kw), padding) else padding
    hidden = {} if depthwise or left_out else _hidden(x, (kh, kw), padding, strides, dilation)
    if hidden:
        hidden = goal.take(x, if_finite(w, hidden, f"{_LEFT_OUT} of padding")) or {}
    if not left_out:
        x = padded(x, padding)
        if not zeros and x.shape[1:3] == (kh, kw) and groups == dilation[0] == dilation[1] == 1:
            return _whole_image(goal, x, w)
    if not depthwise and is_constant(w):
        joined = goal.take(x, _as_one(together(groups, w.shape[0], goal.target.lanes))) or 1
        w, groups, zeros = diagonal(w, groups, joined), groups // joined, zeros or joined > 1
    if groups == dilation[1] == 1 and isinstance(x.shape[2], int) and is_constant(w):
        columns = (x.shape[2] + sum(padding[1] if left_out else ()) - kw) // strides[1] + 1
        count = goal.take(x, _as_one(pixels(columns, m, kw, strides[1], goal.target.lanes))) or 1
        if count > 1:  # adjacent pixels as the channels of one pixel
            y = _direct(goal, x, filters(w, count, strides[1]),
                        (strides[0], strides[1] * count), dilation, 1, True, None, left_out)
            return o.reshape(y, shape=(*y.shape[:2], y.shape[2] * count, m))
    return _direct(goal, x, w, strides, dilation, groups, zeros, hidden, left_out)


def _in_memory(goal: Goal, x: Tracer, window: Any, padding: Any) -> bool:
    """Whether the padding is part of what the kernel reads. Kernels of a device read zeros without
    it, which saves the launch that writes it."""
    sizes = (*x.shape[1:3], *(p for pair in padding for p in pair))
    if not goal.target.grid or not x.dtype.is_float or not all(
            isinstance(d, int) and d >= 0 for d in sizes):
        return True
    whole = tuple(d + sum(pair) for d, pair in zip(x.shape[1:3], padding, strict=True))
    return whole == window or not any(sizes[2:])


def _as_one(count: int) -> int | Assumes[int]:
    """So many groups or pixels as one: their filters then hold zeros."""
    return count if count == 1 else Assumes(
        count, "finite", "filters hold zeros for what an output does not see")


def _hidden(x: Tracer, window: Any, padding: Any, strides: Any, dilation: Any) -> dict[str, int]:
    """The padding above, below, left and right that windows reach, where it pays to leave it out:
    windows that are dilated by much of the image see mostly padding."""
    sizes = (*x.shape[1:3], *(p for pair in padding for p in pair))
    if min(dilation) == 1 or not all(isinstance(d, int) and d >= 0 for d in sizes):
        return {}
    hidden = []
    for size, (lo, hi), k, step, apart in zip(x.shape[1:3], padding, window, strides, dilation,
                                              strict=True):
        reach = (k - 1) * apart + 1
        outputs = (size + lo + hi - reach) // step + 1
        hidden.append((outputs, lo, max(0, (outputs - 1) * step + reach - size - lo)))
    (h, above, below), (w, left, right) = hidden
    edges = {"above": above, "below": below, "left": left, "right": right}
    s = Conv(1, h, w, 1, 1, *window, *strides, *dilation, **edges)
    seen = s.rows_seen * sum(len(s.columns_seen(i)) for i in range(w))
    return edges if seen < SEEN * h * w * s.kh * s.kw else {}


def _direct(goal: Goal, x: Any, w: Any, strides: Any, dilation: Any, groups: int,
            zeros: bool, hidden: Mapping[str, Any] | None = None, padding: Any = None) -> Any:
    """The convolution of an image by the best kernel for the site; `padding` is what is not part
    of the image."""
    m, _, kh, kw = w.shape
    n, height, width, channels = x.shape
    if padding:
        height, width = height + sum(padding[0]), width + sum(padding[1])
    h, wide = ((d - (k - 1) * r - 1) // s + 1 for d, k, s, r in zip(
        (height, width), (kh, kw), strides, dilation, strict=True))
    outputs = n * h * wide
    site = Conv(typical_size(n), typical_size(h), typical_size(wide), typical_size(channels),
                typical_size(m), kh, kw, strides[0], strides[1], dilation[0], dilation[1], groups,
                is_constant(w), x.dtype, zeros=zeros,
                least=0 if isinstance(outputs, int) else max(at_least_sizes(outputs), 1),
                **(hidden or {}))
    more = {"padding": padding} if padding else {}
    y = goal.best(site, x, w, strides=strides, dilation=dilation, groups=groups, **more)
    return y if y.dtype is x.dtype else o.cast(y, dtype=x.dtype)


def _whole_image(goal: Goal, x: Tracer, w: Tracer) -> Any:
    """A window as large as the image: one product for each image."""
    n, m, depth = x.shape[0], w.shape[0], product(w.shape[1:])
    rows = o.reshape(o.transpose(w, perm=(2, 3, 1, 0)), shape=(depth, m))
    site = Product(1, typical_size(n), typical_size(m), typical_size(depth), is_constant(w),
                   fixed=isinstance(n, int), dtype=x.dtype)
    y = best_product(goal, site, o.reshape(x, shape=(n, depth)), rows, False)
    return o.reshape(y, shape=(n, 1, 1, m))


def _one_pixel(goal: Goal, x: Tracer, w: Tracer, padding: Any) -> Any:
    """y[i, j] = x · w[lo - i, lo - j]: one product for all outputs."""
    rows, out = rows_of_one_pixel(w, padding)
    c, columns = rows.shape
    site = Product(1, typical_size(x.shape[0]), typical_size(columns), typical_size(c),
                   is_constant(w), fixed=isinstance(x.shape[0], int), dtype=x.dtype)
    y = best_product(goal, site, o.reshape(x, shape=(x.shape[0], c)), rows, False)
    return o.reshape(y, shape=(x.shape[0], *out, w.shape[0]))
