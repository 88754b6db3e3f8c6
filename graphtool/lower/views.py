"""Views of the results of movement ops (reshape, transpose, slice, broadcast), if strides can
express them.

Such a result is not copied.
"""

from __future__ import annotations

from itertools import pairwise

from graphtool.loops.view import View, dense_strides
from graphtool.ops.indexing import reshape_blocks
from graphtool.symbolic import Dim, bounds, product, typical_size

SIDE = 16  # from this extent on, rows and columns are exchanged in square blocks
LEAST = 1 << 12  # from this number of elements on, that is worth a separate kernel


def transpose_view(v: View, perm: tuple[int, ...]) -> View:
    """The view with its axes in the order `perm`."""
    return View(v.buffer, v.dtype, tuple(v.shape[p] for p in perm),
                tuple(v.strides[p] for p in perm), v.offset)


def slice_view(v: View, start: tuple[Dim, ...], shape: tuple[Dim, ...],
               steps: tuple[int, ...]) -> View:
    """The view of `shape` elements from `start`, with a step along each axis."""
    return View(v.buffer, v.dtype, shape,
                tuple(s * k for s, k in zip(v.strides, steps, strict=True)), v.index(start))


def broadcast_view(v: View, shape: tuple[Dim, ...]) -> View:
    """The view as `shape`; the stride is 0 along new axes and along axes of size 1 that grow."""
    skip = len(shape) - len(v.shape)
    strides = tuple(0 if i < skip or v.shape[i - skip] != shape[i] else v.strides[i - skip]
                    for i in range(len(shape)))
    return View(v.buffer, v.dtype, shape, strides, v.offset)


def reshape_view(v: View, shape: tuple[Dim, ...]) -> View | None:
    """The same elements in row-major order under another shape; None if strides cannot express
    it."""
    if any(d == 0 for d in shape):
        return View(v.buffer, v.dtype, shape, dense_strides(shape), v.offset)
    if v.contiguous:
        return View(v.buffer, v.dtype, shape, dense_strides(shape), v.offset)
    strides: list[Dim] = []
    for xs, ys in reshape_blocks(v.shape, shape):
        run = [(d, s) for d, s in zip(v.shape[xs], v.strides[xs], strict=True) if d != 1]
        for (_, s0), (d1, s1) in pairwise(run):
            if s0 != d1 * s1:
                return None
        step: Dim = run[-1][1] if run else 1
        block: list[Dim] = []
        for d in reversed(shape[ys]):
            block.append(step)
            step = step * d
        strides += reversed(block)
    if product(v.shape) != product(shape):
        return None
    return View(v.buffer, v.dtype, shape, tuple(strides), v.offset)


def scattered(v: View) -> bool:
    """Whether rows stored in the view would be written one number at a time, far apart, though
    enough of the rows are adjacent to be moved in square blocks instead."""
    if v.strides[-1:] in ((1,), (0,)) or not (long(v.shape[-1:], SIDE) and long(v.shape, LEAST)):
        return False
    run: Dim = 1  # the elements that the other axes cover without a gap
    for d, s in sorted(zip(v.shape[:-1], v.strides[:-1], strict=True),
                       key=lambda axis: typical_size(axis[1])):
        run = run * d if s == run else run
    return long((run,), SIDE)


def long(dims: tuple[Dim, ...], least: int) -> bool:
    """Whether the number of elements can be `least` or more."""
    most = bounds(product(dims))[1]
    return most is None or most >= least
