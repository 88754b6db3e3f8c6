"""The gradient of a convolution's weights, as one product for each tap of the window.

It arrives as a convolution whose channels are the batch and whose window is the image. Each tap is
also xᵀ·g over all pixels, and with channels last both operands are in the order that products need.
If each channel has its own filter, a kernel computes all taps of a channel at once instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.operands import packed
from graphtool.kernels.choice.sites import Conv, Product
from graphtool.kernels.conv_grad_parts import pays
from graphtool.kernels.depthwise_grad import MOST
from graphtool.kernels.images import padded
from graphtool.passes.select.goal import Goal, if_finite
from graphtool.symbolic import product, typical_size

RESIDENT = 4096  # up to so many pixels, a panel of g stays in the second-level cache
LEAST = 8  # from so many channels of x on, a register tile has enough rows
WIDEST = 16  # lanes of the widest vectors: sums in order must not depend on the machine's lanes


def weight_gradient(goal: Goal, a: Mapping[str, Any], x: Tracer, w: Tracer,
                    out: tuple[Any, ...]) -> Any:
    """The convolution of x [C, H, W, N] by w [O, N, P, Q] with channels last, as products.

    None if it is not such a gradient, or a kernel is as good. N, the batch, may be symbolic.
    """
    padding = a["padding"] or ((0, 0),) * 2
    sizes = (*x.shape[:3], w.shape[0], *w.shape[2:], *out, *(p for pair in padding for p in pair))
    if not all(isinstance(d, int) for d in sizes) or a["groups"] != 1:
        return None
    c, m, rows, columns = x.shape[0], w.shape[0], *w.shape[2:]
    kh, kw = out[1:3]
    lhs = a["lhs_dilation"] or (1, 1)
    if a["batch_groups"] != 1:
        return _depthwise(goal, a, x, w, out) if a["batch_groups"] == c == m else None
    lanes = WIDEST if goal.rules.in_order else goal.target.lanes
    narrow = c < LEAST or m < lanes // 2 or rows * columns <= kh * kw
    # with a symbolic batch only plain loops are left: the weights of kernels have a fixed number of
    # channels
    known = isinstance(w.shape[1], int)
    if (narrow and known) or kh * kw > 49:
        return None
    if tuple(lhs) != (1, 1):
        return None if known else _of_spread(goal, a, x, w, out)
    if any(p < 0 for p, _ in padding):
        return None
    taps = _Taps(goal, _image(x, padding), o.transpose(w, perm=(1, 2, 3, 0)),
                 tuple(a["strides"] or (1, 1)), tuple(a["rhs_dilation"] or (1, 1)), (kh, kw))
    whole = taps.at_once()
    if whole is not None:
        return whole
    if c < LEAST and kh * kw * c <= m:
        return taps.beside()
    return _joined([o.reshape(y, shape=(c, 1, m)) for y in taps.products()], out)


def _joined(parts: list[Any], out: tuple[Any, ...]) -> Any:
    """The gradient from its taps [C, 1, O]: those of each c are adjacent, so that those of all c
    become the weights as one matrix."""
    stacked = o.concat(*parts, axis=1) if len(parts) > 1 else parts[0]
    return o.reshape(stacked, shape=out)


def _of_spread(goal: Goal, a: Mapping[str, Any], x: Tracer, w: Tracer,
               out: tuple[Any, ...]) -> Any:
    """The gradient for an x with zeros between its elements, as transposed convolutions have it:
    each tap is gᵀ·x over the pixels of x. So x and g exchange their roles, and the window is
    read backwards.

    Pixel u of x meets g at u·d + lo − i·s for tap i, with the distance d of the elements of x and
    the strides s; in g with (k − 1)·s − lo rows of zeros above it, taps begin at (k − 1 − i)·s.
    """
    lhs, strides = a["lhs_dilation"], tuple(a["strides"] or (1, 1))
    around = []
    for d, s, k, (lo, _), size, rows in zip(lhs, strides, out[1:3], a["padding"] or ((0, 0),) * 2,
                                            x.shape[1:3], w.shape[2:], strict=True):
        around.append(((k - 1) * s - lo, max(0, (size - 1) * d + lo + 1 - rows)))
    if goal.rules.in_order or tuple(a["rhs_dilation"] or (1, 1)) != (1, 1) or any(
            above < 0 for above, _ in around):
        return None
    if not a["absent"] and not goal.take(x, if_finite(
            w, True, "zeros between elements are not multiplied")):
        return None
    if any(p for pair in around for p in pair) and not goal.take(x, if_finite(
            x, True, "elements are multiplied by zeros around the gradient")):
        return None
    image = padded(o.transpose(w, perm=(1, 2, 3, 0)), around)
    taps = _Taps(goal, image, o.transpose(x, perm=(3, 1, 2, 0)), strides, tuple(lhs), out[1:3])
    return _joined([o.transpose(y, perm=(2, 0, 1)) for y in reversed(taps.products())], out)


def _image(x: Tracer, padding: Any) -> Any:
    """x [C, H, W, N] as images [N, H, W, C] with their padding; elements that are cropped at the
    end are not read."""
    return padded(o.transpose(x, perm=(3, 1, 2, 0)), [(p, max(q, 0)) for p, q in padding])


def _depthwise(goal: Goal, a: Mapping[str, Any], x: Tracer, w: Tracer,
               out: tuple[Any, ...]) -> Any:
    """The gradient [1, KH, KW, C] of filters of one channel each: that of each image by a kernel,
    then their sum. None for sums in order, which only plain loops compute, and for devices."""
    padding, lhs = a["padding"] or ((0, 0),) * 2, a["lhs_dilation"] or (1, 1)
    if goal.rules.in_order or goal.target.devices or product(out[1:3]) > MOST or (
            x.dtype not in (dtypes.float32, *dtypes.HALVES) or any(p < 0 for p, _ in padding)):
        return None
    spread = o.pad(x, lo=(0,) * 4, hi=(0,) * 4, interior=(0, *(d - 1 for d in lhs), 0)) if (
        tuple(lhs) != (1, 1)) else x
    each = o.depthwise_grad(_image(spread, padding), o.transpose(w, perm=(1, 2, 3, 0)),
                            strides=tuple(a["strides"] or (1, 1)),
                            dilation=tuple(a["rhs_dilation"] or (1, 1)))
    y = o.reshape(o.reduce_sum(each, axes=(0,)), shape=out)
    return y if y.dtype is x.dtype else o.cast(y, dtype=x.dtype)


class _Taps:
    """`image` [N, H, W, C], padded, and `g` [N, P, Q, O].

    The pixels that a tap reads are `step` apart, adjacent taps `apart`.
    """

    def __init__(self, goal: Goal, image: Any, g: Any, apart: tuple[int, int],
                 step: tuple[int, int], window: tuple[int, int]) -> None:
        self.goal, self.image, self.g = goal, image, g
        self.apart, self.step, self.window = apart, step, window
        self.n, self.rows, self.columns, self.o = g.shape
        self.pairs = g.dtype is dtypes.bfloat16 and goal.target.bf16
        self.nr = goal.target.lanes if self.o <= goal.target.lanes else goal.target.nr

    def products(self) -> list[Any]:
        """One product [1, C, O] for each tap."""
        at = self.places()
        together = typical_size(self.n * self.rows * self.columns) <= RESIDENT
        exact = self.image.shape[2] == self.columns or self.goal.rules.allows("finite")
        if self.step == (1, 1) and not together and exact:
            return self.shifted(at)
        return self.copied(at, together)

    def at_once(self) -> Any:
        """The gradient [C, KH, KW, O] of all taps by a matrix unit; None if that does not pay."""
        sizes = (self.n, self.rows, self.columns, self.image.shape[3], self.o)
        if not all(isinstance(d, int) for d in sizes):
            return None
        plan = pays(Conv(*sizes, *self.window, *self.step, *self.apart, dtype=self.g.dtype),
                    self.goal.target, self.goal.rules)
        if plan is None:
            return None
        n, c = self.n, self.image.shape[3]
        limit = [(size - 1) * step + (k - 1) * apart + 1 for size, step, k, apart in zip(
            (self.rows, self.columns), self.step, self.window, self.apart, strict=True)]
        read = o.slice(self.image, start=(0,) * 4, limit=(n, *limit, c), strides=(1,) * 4)
        g = o.reshape(self.g, shape=(n * self.rows * self.columns, self.o))
        y = o.conv_grad_parts(g, read, window=self.window,
                              strides=self.step, dilation=self.apart, plan=plan)
        return o.transpose(o.reshape(y, shape=(self.o, *self.window, c)), perm=(3, 1, 2, 0))

    def places(self) -> list[tuple[int, int]]:
        """Where each tap begins in the image."""
        return [(i * self.apart[0], j * self.apart[1]) for i in range(self.window[0])
                for j in range(self.window[1])]

    def shifted(self, at: list[tuple[int, int]]) -> list[Any]:
        """Rows of g at the distances of the image's rows: a tap is then the image from an offset
        on."""
        wide, c = self.image.shape[2], self.image.shape[3]
        gap = wide - self.columns
        pixels = self.rows * wide - gap
        g = o.pad(self.g, lo=(0,) * 4, hi=(0, 0, gap, 0)) if gap else self.g
        g = o.reshape(g, shape=(self.n, self.rows * wide, self.o))
        rows = _from(g, 0, pixels)
        right = rows if gap else self.pack(rows)
        flat = o.reshape(self.image, shape=(self.n, self.image.shape[1] * wide, c))
        product = self.among_zeros if gap else self.product
        return [product(_from(flat, i * wide + j, pixels), right) for i, j in at]

    def copied(self, at: list[tuple[int, int]], together: bool) -> list[Any]:
        """The pixels of each tap, copied so that they are adjacent."""
        c, pixels = self.image.shape[3], self.rows * self.columns
        shape = (1, self.n * pixels) if together else (self.n, pixels)
        right = self.pack(o.reshape(self.g, shape=(*shape, self.o)))
        return [self.product(o.reshape(self.seen(i, j), shape=(*shape, c)), right) for i, j in at]

    def beside(self) -> Any:
        """The gradient [C, KH, KW, O] by one product, of all taps of a pixel side by side: a few
        channels alone are too few rows for a register tile."""
        (kh, kw), c, pixels = self.window, self.image.shape[3], self.rows * self.columns
        parts = [self.seen(i, j) for i, j in self.places()]
        x = o.reshape(o.concat(*parts, axis=3), shape=(self.n, pixels, kh * kw * c))
        g = self.pack(o.reshape(self.g, shape=(self.n, pixels, self.o)))
        y = o.reshape(self.product(x, g), shape=(kh, kw, c, self.o))
        return o.transpose(y, perm=(2, 0, 1, 3))

    def seen(self, i: int, j: int) -> Any:
        """The pixels [N, P, Q, C] of the image that a tap reads."""
        return o.slice(
            self.image, start=(0, i, j, 0),
            limit=(self.n, i + (self.rows - 1) * self.step[0] + 1,
                   j + (self.columns - 1) * self.step[1] + 1, self.image.shape[3]),
            strides=(1, *self.step, 1))

    def pack(self, g: Any) -> Any:
        return packed(g, self.nr, self.pairs)

    def among_zeros(self, x: Any, g: Any) -> Any:
        """The product with rows of g; rows between the image's rows are 0."""
        site = Product(typical_size(self.n), x.shape[2], self.o, typical_size(x.shape[1]),
                       False, True, isinstance(self.n, int), g.dtype, zeros=True)
        return self.summed(self.goal.best(site, o.transpose(x, perm=(0, 2, 1)), g,
                                          transpose=False))

    def product(self, x: Any, right: Any) -> Any:
        across = o.transpose(x, perm=(0, 2, 1))
        return self.summed((o.gemm_bf16 if self.pairs else o.gemm)(across, right, n=self.o))

    @staticmethod
    def summed(y: Any) -> Any:
        """The products of all images as one."""
        return y if y.shape[0] == 1 else o.reduce_sum(y, axes=(0,))


def _from(x: Any, start: int, size: int) -> Any:
    if size == x.shape[1]:
        return x
    return o.slice(x, start=(0, start, 0), limit=(x.shape[0], start + size, x.shape[2]),
                   strides=(1, 1, 1))
