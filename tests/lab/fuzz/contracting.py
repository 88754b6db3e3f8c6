"""Rows of reductions, products, convolutions, pools, norms and recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.lab.fuzz.growing import Growing
from tests.lab.fuzz.shapes import indices
from tests.lab.fuzz.table import kinds, need, op

REDUCE = {**kinds("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL2 ReduceSumSquare",
                  "n"), **kinds("ReduceL1 ReduceLogSum ReduceLogSumExp", "D")}


@op(*REDUCE)
def reduced(g: Growing, op: str) -> None:
    """Over some axes, all, or none."""
    x = g.take(REDUCE[op])
    need(0 not in x.sizes or op in ("ReduceSum", "ReduceProd", "ReduceSumSquare"))
    rank = len(x.sizes)
    axes = [a - (rank if g.coin() else 0) for a in g.rng.sample(range(rank), g.rng.randint(
        0, rank))]
    more = [g.const(axes, np.int64)] if g.coin(0.8) else []
    g.add(op, [x, *more], keepdims=g.rng.choice((0, 1)),
          noop_with_empty_axes=g.rng.choice((None, 1)))


@op("ArgMax", "ArgMin")
def arg(g: Growing, op: str) -> None:
    """The place of the extreme."""
    x = g.take("n", 1, least=1)
    g.add(op, [x], axis=g.axis(x), keepdims=g.rng.choice((0, 1)),
          select_last_index=g.rng.choice((0, 1)))


@op("Softmax", "LogSoftmax", "Hardmax")
def softmax(g: Growing, op: str) -> None:
    """Along an axis."""
    x = g.take("F" if op == "Hardmax" else "D", 1, least=1)
    g.add(op, [x], axis=g.axis(x))


@op("LpNormalization")
def lp_norm(g: Growing) -> None:
    """Norms of one or two."""
    x = g.take("D", 1, least=1)
    g.add("LpNormalization", [x], axis=g.axis(x), p=g.rng.choice((1, 2)))


@op("MatMul")
def matmul(g: Growing) -> None:
    """Vectors, matrices, and batches that broadcast."""
    x = g.take("D", 1)
    k, n = x.sizes[-1], g.rng.choice((1, 2, 5, 16))
    batch = x.sizes[:-2] if g.coin() else ()
    g.add("MatMul", [x, g.like(x, g.rng.choice([(k, n), (k,), (*batch, k, n)]))])


@op("Gemm")
def gemm(g: Growing) -> None:
    """Either operand transposed, a bias that broadcasts."""
    x, ta, tb = g.take("D", 2, 2), g.coin(), g.coin()
    m, k = x.sizes[::-1] if ta else x.sizes
    n = g.rng.choice((1, 3, 8, 17))
    bias = [g.like(x, g.rng.choice([(n,), (m, n), (m, 1), (1,), ()]))] if g.coin() else []
    g.add("Gemm", [x, g.like(x, (n, k) if tb else (k, n)), *bias], transA=int(ta), transB=int(tb),
          alpha=g.rng.choice((None, 0.5)), beta=g.rng.choice((None, 2.0)))


@op("Einsum")
def einsum(g: Growing) -> None:
    """Products, traces, sums and orders of axes."""
    x = g.take("D", 2, 2)
    i, j = x.sizes
    match g.rng.randrange(4):
        case 0:
            g.add("Einsum", [x, g.like(x, (j, 3))], equation="ij,jk->ik")
        case 1:
            g.add("Einsum", [x], equation=g.rng.choice(("ij->ji", "ij->i", "ij->", "ij->j")))
        case 2:
            g.add("Einsum", [x, g.like(x, (i, j))], equation=g.rng.choice(("ij,ij->ij", "ij,ij->j",
                                                                           "ij,kj->ik")))
        case _:
            g.add("Einsum", [x, g.like(x, (2, i, 3))], equation="ij,bik->bjk")


def image(g: Growing, kind: str = "F", channels: int | None = None, dims: int | None = None) -> Any:
    """A value of a batch of images of one to three dimensions."""
    n = dims or g.rng.choice((1, 2, 2, 2, 3))
    found = [v for v in g.pool if v.dtype.name == "float32" and v.shape and len(v.shape) == n + 2
             and min(v.shape) > 0 and channels in (None, v.shape[1])
             and int(np.prod(v.shape)) < 2000]
    if found and g.coin(0.6):
        return g.rng.choice(found)
    sizes = [g.rng.randint(3, 9 if n < 3 else 4) for _ in range(n)]
    return g.fresh(kind, (g.rng.choice((1, 2, 3)), channels or g.rng.choice((1, 2, 3, 4, 8)),
                          *sizes))


def windows(g: Growing, x: Any) -> dict[str, Any]:
    """Strides, pads and perhaps dilations of a window that fits."""
    sizes = x.sizes[2:]
    kernel = [g.rng.randint(1, min(3, n)) for n in sizes]
    pads = [g.rng.randint(0, max(k - 1, 0)) for k in kernel]
    out: dict[str, Any] = {"kernel_shape": kernel, "strides": [g.rng.choice((1, 1, 2))
                                                               for _ in sizes]}
    if g.coin(0.2):
        out["auto_pad"] = g.rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    elif g.coin(0.7):
        out["pads"] = [*pads, *[g.rng.randint(0, p) for p in pads]]
    if g.coin(0.2) and all((k - 1) * 2 < n for k, n in zip(kernel, sizes, strict=True)):
        out["dilations"] = [2] * len(kernel)
    return out


@op("Conv")
def conv(g: Growing) -> None:
    """One to three dimensions, groups, strides, dilations."""
    x = image(g)
    c = x.sizes[1]
    group = g.rng.choice([d for d in range(1, c + 1) if c % d == 0])
    out, how = group * g.rng.choice((1, 2, 4, 8)), windows(g, x)
    w = g.like(x, (out, c // group, *how["kernel_shape"]))
    g.add("Conv", [x, w, *([g.like(x, (out,))] if g.coin() else [])], group=group, **how)


@op("ConvTranspose")
def conv_transpose(g: Growing) -> None:
    """As Conv, backwards."""
    x = image(g)
    c, how = x.sizes[1], windows(g, x)
    group = g.rng.choice([d for d in range(1, c + 1) if c % d == 0])
    how.pop("auto_pad", None)
    w = g.like(x, (c, g.rng.choice((1, 2, 3)), *how["kernel_shape"]))
    g.add("ConvTranspose", [x, w], group=group, **how)


@op("MaxPool", "AveragePool", "LpPool")
def pool(g: Growing, op: str) -> None:
    """Windows, with ceil_mode and padding counted or not."""
    x = image(g)
    how = windows(g, x)
    if op == "AveragePool":
        how["count_include_pad"] = g.rng.choice((0, 1))
    g.add(op, [x], ceil_mode=g.rng.choice((None, None, 1)) if "auto_pad" not in how else None,
          **how)


@op("GlobalAveragePool", "GlobalMaxPool")
def whole_pool(g: Growing, op: str) -> None:
    """One number an image and channel."""
    g.add(op, [image(g)])


@op("LRN")
def lrn(g: Growing) -> None:
    """Over neighbouring channels."""
    g.add("LRN", [image(g, dims=2)], size=g.rng.choice((1, 3, 5)), alpha=g.rng.choice((None, 0.1)))


@op("BatchNormalization")
def batch_norm(g: Growing) -> None:
    """Inference, with positive variances."""
    x = image(g)
    n = (x.sizes[1],)
    var = np.nan_to_num(np.abs(g.array("float32", n))).clip(0.1, 4)
    g.add("BatchNormalization", [x, *(g.like(x, n) for _ in range(3)), g.const(var, np.float32)])


@op("InstanceNormalization")
def instance_norm(g: Growing) -> None:
    """Over each image and channel."""
    x = image(g)
    g.add("InstanceNormalization", [x, g.like(x, x.sizes[1:2]), g.like(x, x.sizes[1:2])])


@op("GroupNormalization")
def group_norm(g: Growing) -> None:
    """Over groups of channels."""
    x = image(g)
    c = x.sizes[1]
    group = g.rng.choice([d for d in range(1, c + 1) if c % d == 0])
    g.add("GroupNormalization", [x, g.like(x, (c,)), g.like(x, (c,))], num_groups=group)


@op("LayerNormalization", "RMSNormalization")
def layer_norm(g: Growing, op: str) -> None:
    """Over the last axes."""
    x = g.take("F", 1, least=1)
    axis = g.axis(x)
    more = [g.like(x, x.sizes[axis % len(x.sizes):])] if g.coin() else []
    more = [] if op == "RMSNormalization" else more
    g.add(op, [x, g.like(x, x.sizes[axis % len(x.sizes):]), *more], axis=axis)


@op("MeanVarianceNormalization")
def mvn(g: Growing) -> None:
    """Over batch and space."""
    g.add("MeanVarianceNormalization", [image(g, dims=2)])


@op("Resize")
def resize(g: Growing) -> None:
    """Modes, coordinates and roundings; by sizes or scales."""
    x = image(g, dims=g.rng.choice((1, 2)))
    mode = g.rng.choice(("nearest", "linear", "cubic" if len(x.sizes) == 4 else "linear"))
    how: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": g.rng.choice(
        ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"))}
    if mode == "nearest":
        how["nearest_mode"] = g.rng.choice(("floor", "ceil", "round_prefer_floor",
                                            "round_prefer_ceil"))
    if g.coin():
        sizes = [*x.sizes[:2], *(g.rng.randint(1, 2 * n) for n in x.sizes[2:])]
        g.add("Resize", [x, None, None, g.const(sizes, np.int64)], **how)
    else:
        scales = [1, 1, *(g.rng.choice((0.5, 1, 1.5, 2)) for _ in x.sizes[2:])]
        g.add("Resize", [x, None, g.const(scales, np.float32)], **how)


@op("GridSample")
def grid_sample(g: Growing) -> None:
    """Samples inside and a little outside."""
    x = image(g, dims=2)
    grid = np.random.default_rng(g.rng.getrandbits(32)).uniform(-1.2, 1.2, (x.sizes[0], 3, 4, 2))
    g.add("GridSample", [x, g.given(grid, np.float32)], align_corners=g.rng.choice((0, 1)),
          mode=g.rng.choice(("linear", "nearest", "cubic")),
          padding_mode=g.rng.choice(("zeros", "border", "reflection")))


@op("AffineGrid")
def affine_grid(g: Growing) -> None:
    """The grid of a batch of maps."""
    g.add("AffineGrid", [g.take("F", shape=(2, 2, 3)), g.const([2, 3, 4, 5], np.int64)],
          align_corners=g.rng.choice((0, 1)))


@op("Det")
def det(g: Growing) -> None:
    """Determinants of small matrices."""
    n = g.rng.choice((1, 2, 3))
    g.add("Det", [g.take("F", shape=(2, n, n))])


@op("MatMulInteger")
def matmul_integer(g: Growing) -> None:
    """Bytes, with zero points."""
    x = g.take("uint8", 2, 2)
    zero = [g.const(3, np.uint8)] if g.coin() else []
    g.add("MatMulInteger", [x, g.fresh(g.rng.choice(("int8", "uint8")), (x.sizes[1], 5)), *zero])


@op("ConvInteger")
def conv_integer(g: Growing) -> None:
    """Bytes, with a zero point."""
    x = g.take("uint8", shape=(1, 2, 5, 6))
    g.add("ConvInteger", [x, g.fresh("uint8", (3, 2, 2, 3)), g.const(2, np.uint8)],
          pads=[0, 1, 0, 1])


@op("QLinearMatMul")
def qlinear(g: Growing) -> None:
    """Bytes in and out, with scales."""
    x = g.take("uint8", 2, 2)
    scale, zero = g.const(0.05, np.float32), g.const(3, np.uint8)
    g.add("QLinearMatMul", [x, scale, zero, g.fresh("uint8", (x.sizes[1], 4)), scale, zero,
                            g.const(0.3, np.float32), zero])


@op("RNN", "LSTM", "GRU")
def recurrent(g: Growing, op: str) -> None:
    """One or two directions, with and without biases."""
    steps, batch, n, h = g.rng.randint(1, 4), g.rng.choice((1, 3)), 3, g.rng.choice((2, 5))
    x = g.take("F", shape=(steps, batch, n))
    both = g.rng.choice(("forward", "reverse", "bidirectional"))
    d, k = 2 if both == "bidirectional" else 1, {"RNN": 1, "LSTM": 4, "GRU": 3}[op]
    bias = [g.like(x, (d, 2 * k * h))] if g.coin() else []
    g.add(op, [x, g.like(x, (d, k * h, n)), g.like(x, (d, k * h, h)), *bias],
          3 if op == "LSTM" and g.coin() else 2, hidden_size=h, direction=both,
          linear_before_reset=g.rng.choice((0, 1)) if op == "GRU" else None)


@op("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
def loss(g: Growing, op: str) -> None:
    """Losses of classes in range."""
    x = g.take("F", shape=(4, 5))
    labels = g.const(np.abs(g.array("int32", (4,)).astype(np.int64)) % 5, np.int64)
    weights = [g.const(np.linspace(0.5, 2, 5), np.float32)] if g.coin() else []
    g.add(op, [x, labels, *weights], reduction=g.rng.choice(("none", "sum", "mean")))


@op("HannWindow", "HammingWindow", "BlackmanWindow")
def window(g: Growing, op: str) -> None:
    """Of a constant length. Nothing reads it: its ends are 0 up to the sign of a rounding."""
    made = g.add(op, [g.const(g.rng.randint(2, 9), np.int64)], periodic=g.rng.choice((0, 1)))
    made[0].shape = None


@op("DFT")
def dft(g: Growing) -> None:
    """Of real signals, whole or one-sided, or of complex ones."""
    real = g.coin()
    x = g.take("F", shape=(2, g.rng.choice((4, 5, 8)), 1 if real else 2))
    g.add("DFT", [x, None, g.const(1, np.int64)], onesided=int(real and g.coin()))


@op("Embedding")
def embedding(g: Growing) -> None:
    """Rows of a table, added and normalised, as models do."""
    table = g.const(g.array("float32", (11, 8)))
    x = g.add("Gather", [table, indices(g, (2, 3), 11)])[0]
    g.add("LayerNormalization", [x, g.take("F", shape=(8,)), g.take("F", shape=(8,))])
