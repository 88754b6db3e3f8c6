"""Rows of operators that move, select, join and scatter elements."""

from __future__ import annotations

import math

import numpy as np
from onnx import numpy_helper

from tests.lab.fuzz.growing import Growing, Known
from tests.lab.fuzz.table import need, op


@op("Reshape")
def reshape(g: Growing) -> None:
    """To other sizes with the same product, with −1 and 0 now and then."""
    x = g.take("a")
    n, sizes = math.prod(x.sizes), list(x.sizes)
    if n == 0:
        g.add("Reshape", [x, g.const([0] * len(sizes) if g.coin() else sizes[::-1], np.int64)],
              allowzero=None if 0 not in sizes[::-1] else 1)
        return
    g.rng.shuffle(sizes)
    if len(sizes) > 1 and g.coin():
        sizes = [sizes[0] * sizes[1], *sizes[2:]]
    if g.coin(0.3):
        sizes.insert(g.rng.randint(0, len(sizes)), 1)
    if sizes and g.coin():
        sizes[g.rng.randrange(len(sizes))] = -1
    g.add("Reshape", [x, g.const(sizes, np.int64)])


@op("ReshapeLike")
def reshape_like(g: Growing) -> None:
    """Back to a shape that the graph computes: Flatten, then Reshape by Shape."""
    x = g.take("F", 1)
    shape = g.add("Shape", [x])[0]
    g.add("Reshape", [g.add("Flatten", [x], axis=g.rng.randint(0, len(x.sizes)))[0], shape])


@op("Shape", "Size")
def shape(g: Growing, op: str) -> None:
    """The sizes of a value, perhaps some of them."""
    x = g.take("a")
    g.add(op, [x], start=g.rng.choice((None, 0, 1, -1)) if op == "Shape" else None)


@op("Transpose")
def transpose(g: Growing) -> None:
    """Any order of the axes, or their reverse."""
    x = g.take("a")
    perm = list(range(len(x.sizes)))
    g.rng.shuffle(perm)
    g.add("Transpose", [x], perm=perm if g.coin(0.8) and perm else None)


@op("Squeeze")
def squeeze(g: Growing) -> None:
    """Some axes of size 1, or all of them."""
    x = g.take("a")
    ones = [i for i, n in enumerate(x.sizes) if n == 1]
    g.add("Squeeze", [x, g.const(g.rng.sample(ones, 1), np.int64)] if ones and g.coin() else [x])


@op("Unsqueeze")
def unsqueeze(g: Growing) -> None:
    """One or two new axes."""
    x = g.take("a", 0, 3)
    rank = len(x.sizes) + 1
    g.add("Unsqueeze", [x, g.const([g.rng.randrange(-rank, rank)], np.int64)])


@op("Flatten")
def flatten(g: Growing) -> None:
    """To a matrix."""
    x = g.take("a", 0)
    g.add("Flatten", [x], axis=g.rng.randint(-len(x.sizes), len(x.sizes)))


@op("Expand")
def expand(g: Growing) -> None:
    """Axes of size 1 grow, and new ones appear."""
    x = g.take("a")
    sizes = [n if n != 1 else g.rng.choice((1, 2, 3)) for n in x.sizes]
    sizes = [n if g.coin(0.8) else 1 for n in sizes]
    g.add("Expand", [x, g.const([2, *sizes] if g.coin(0.3) else sizes, np.int64)])


@op("Tile")
def tile(g: Growing) -> None:
    """Repeats along each axis, none included."""
    x = g.take("n", 1)
    g.add("Tile", [x, g.const([g.rng.choice((1, 1, 2, 3)) for _ in x.sizes], np.int64)])


@op("Concat")
def concat(g: Growing) -> None:
    """Two or three values along an axis."""
    x = g.take("a", 1)
    axis, parts = g.axis(x), [x]
    for _ in range(g.rng.choice((1, 1, 2))):
        sizes = list(x.sizes)
        sizes[axis] = g.rng.choice((sizes[axis], 1, 2))
        parts.append(g.like(x, tuple(sizes)))
    g.rng.shuffle(parts)
    g.add("Concat", [*parts], axis=axis)


@op("Split")
def split(g: Growing) -> None:
    """Into given sizes or a number of parts."""
    x = g.take("a", 1)
    axis = g.axis(x)
    n = x.sizes[axis]
    if g.coin():
        first = g.rng.randint(0, n)
        g.add("Split", [x, g.const([first, n - first], np.int64)], 2, axis=axis)
    else:
        need(n > 1)
        g.add("Split", [x], 2, axis=axis, num_outputs=2)


@op("Slice")
def slices(g: Growing) -> None:
    """Starts and ends inside and outside, steps of both signs."""
    x = g.take("a", 1)
    axes = g.rng.sample(range(len(x.sizes)), g.rng.randint(1, len(x.sizes)))
    some = [g.rng.choice((0, 1, 2, -1, -2, -9, 9, 2**31 - 1)) for _ in range(2 * len(axes))]
    steps = [g.rng.choice((1, 1, 1, 2, -1, -2)) for _ in axes]
    g.add("Slice", [x, *(g.const(v, np.int64) for v in (
        some[:len(axes)], some[len(axes):], axes, steps))])


@op("Pad")
def pad(g: Growing) -> None:
    """Each mode, with crops in the constant one."""
    x = g.take("n", 1)
    mode = g.rng.choice(("constant", "constant", "reflect", "edge", "wrap"))
    if mode != "constant":
        need(min(x.sizes) > 1)
    most = [2 if mode == "constant" else min(1, n - 1) for n in x.sizes] * 2
    pads = [g.rng.randint(0, m) for m in most]
    if mode == "constant" and g.coin(0.2) and min(x.sizes) > 1:
        pads[0] = -1
    value = [g.const(g.rng.choice((0, 1, 2)), x.dtype)] if mode == "constant" and g.coin() else []
    g.add("Pad", [x, g.const(pads, np.int64), *value], mode=mode)


def indices(g: Growing, shape: tuple[int, ...], most: int) -> Known:
    """Indices in range, negative ones included; a constant or an input."""
    need(most > 0)
    rng = np.random.default_rng(g.rng.getrandbits(32))
    found = rng.integers(-most if g.coin() else 0, most, shape)
    return (g.const if g.coin() else g.given)(found, np.int64)


@op("Gather")
def gather(g: Growing) -> None:
    """Slices along an axis."""
    x = g.take("a", 1)
    axis = g.axis(x)
    g.add("Gather", [x, indices(g, g.shape(0, 2), x.sizes[axis])], axis=axis)


@op("GatherElements")
def gather_elements(g: Growing) -> None:
    """Elements along an axis."""
    x = g.take("a", 1)
    axis = g.axis(x)
    g.add("GatherElements", [x, indices(g, x.sizes, x.sizes[axis])], axis=axis)


@op("GatherND")
def gather_nd(g: Growing) -> None:
    """Tuples of indices."""
    x = g.take("a", 1, least=1)
    k = g.rng.randint(1, len(x.sizes))
    g.add("GatherND", [x, indices(g, (*g.shape(0, 2), k), min(x.sizes[:k]))])


@op("ScatterElements")
def scatter_elements(g: Growing) -> None:
    """Each reduction; without one an index occurs once."""
    x = g.take("D", 1, least=1)
    axis, how = g.axis(x), g.rng.choice(("none", "add", "mul", "max", "min"))
    if how == "none":
        order = np.random.default_rng(g.rng.getrandbits(32)).permuted(
            np.broadcast_to(np.arange(x.sizes[axis]).reshape(
                [-1 if i == axis % len(x.sizes) else 1 for i in range(len(x.sizes))]), x.sizes),
            axis=axis)
        at = g.const(order, np.int64)
    else:
        at = indices(g, x.sizes, x.sizes[axis])
    g.add("ScatterElements", [x, at, g.like(x)], axis=axis, reduction=how)


@op("ScatterND")
def scatter_nd(g: Growing) -> None:
    """Rows at distinct places, or added."""
    x = g.take("D", 1, least=1)
    how, n = g.rng.choice(("none", "add", "mul", "max", "min")), x.sizes[0]
    at = g.const([[i] for i in g.rng.sample(range(n), g.rng.randint(1, n))], np.int64)
    g.add("ScatterND", [x, at, g.like(x, (at.sizes[0], *x.sizes[1:]))], reduction=how)


@op("OneHot")
def one_hot(g: Growing) -> None:
    """Indices in range."""
    n = g.rng.randint(2, 5)
    g.add("OneHot", [indices(g, g.shape(0, 3), n), g.const(n, np.int64),
                     g.const([0, 1], np.float32)], axis=g.rng.choice((-1, 0)))


@op("Range")
def ranged(g: Growing) -> None:
    """Constants as bounds."""
    kind = g.rng.choice((np.int64, np.int32, np.float32))
    g.add("Range", [g.const(v, kind) for v in (g.rng.randint(-3, 3), g.rng.randint(3, 9),
                                               g.rng.randint(1, 3))])


@op("ConstantOfShape")
def filled(g: Growing) -> None:
    """A number in every place."""
    value = g.array(g.rng.choice(("float32", "int64", "bool")), (1,))
    g.add("ConstantOfShape", [g.const(g.shape(), np.int64)], value=numpy_helper.from_array(value))


@op("EyeLike")
def eye(g: Growing) -> None:
    """Ones on a diagonal."""
    g.add("EyeLike", [g.take("D", 2, 2)], k=g.rng.choice((0, 1, -1)))


@op("Trilu")
def trilu(g: Growing) -> None:
    """The upper or lower triangle."""
    k = [g.const(g.rng.choice((-1, 0, 1, 2)), np.int64)] if g.coin() else []
    g.add("Trilu", [g.take("n", 2), *k], upper=g.rng.choice((0, 1)))


@op("ReverseSequence")
def reverse(g: Growing) -> None:
    """The first so many of each row."""
    x = g.take("n", 2, least=1)
    n = [g.rng.randint(1, x.sizes[0]) for _ in range(x.sizes[1])]
    g.add("ReverseSequence", [x, g.const(n, np.int64)])


@op("DepthToSpace")
def depth_to_space(g: Growing) -> None:
    """Blocks of channels to pixels."""
    g.add("DepthToSpace", [g.take("D", shape=(g.rng.choice((1, 2)), 8, 2, 3))], blocksize=2,
          mode=g.rng.choice(("DCR", "CRD")))


@op("SpaceToDepth")
def space_to_depth(g: Growing) -> None:
    """Pixels to blocks of channels."""
    g.add("SpaceToDepth", [g.take("D", shape=(g.rng.choice((1, 2)), 3, 4, 2))], blocksize=2)


@op("CenterCropPad")
def crop_pad(g: Growing) -> None:
    """To given sizes around the middle."""
    x = g.take("F", 1, 3, least=1)
    g.add("CenterCropPad", [x, g.const([g.rng.randint(1, 6) for _ in x.sizes], np.int64)])


@op("Compress")
def compress(g: Growing) -> None:
    """What a condition keeps."""
    x = g.take("n", 1, least=1)
    axis = g.axis(x)
    g.add("Compress", [x, g.fresh("b", (x.sizes[axis],))], axis=axis)


@op("NonZero")
def non_zero(g: Growing) -> None:
    """Where it is not 0."""
    g.add("NonZero", [g.take("n", 1)])


@op("Unique")
def unique(g: Growing) -> None:
    """The distinct elements, with where they were."""
    g.add("Unique", [g.take("l", 1, least=1)], g.rng.choice((1, 4)), sorted=g.rng.choice((0, 1)))


@op("TopK")
def topk(g: Growing) -> None:
    """The largest or smallest along an axis."""
    x = g.take("D", 1, least=1)
    axis = g.axis(x)
    g.add("TopK", [x, g.const([g.rng.randint(1, x.sizes[axis])], np.int64)], 2, axis=axis,
          largest=g.rng.choice((0, 1)))


@op("CumSum")
def cumsum(g: Growing) -> None:
    """Sums so far."""
    x = g.take("n", 1)
    g.add("CumSum", [x, g.const(g.axis(x), np.int64)], exclusive=g.rng.choice((0, 1)),
          reverse=g.rng.choice((0, 1)))
