"""Layers: products, convolutions, normalisation, as our composites where there are any."""

from __future__ import annotations

from typing import Any

from graphtool.importers.least_sizes import fitting_conv
from graphtool.importers.onnx.kit import Refused, axes_of, axis_of, dtypes, o, onnx_op
from graphtool.ops.indexing import Pairs
from graphtool.symbolic import Dim, ceildiv, floordiv, known, maximum

# ---- products ----------------------------------------------------------------------------------


@onnx_op("MatMul")
def matmul(a: Any, b: Any) -> Any:
    """`matmul` as in NumPy: a vector on the left is a row, one on the right a column, and its axis
    of size 1 is removed from the result."""
    left, right = a.ndim == 1, b.ndim == 1
    if not (left or right):
        return o.matmul(a, b)
    a = a.unsqueeze(0) if left else a
    b = b.unsqueeze() if right else b
    y = o.matmul(a, b)
    lead, (m, n) = tuple(y.shape[:-2]), y.shape[-2:]
    return y.reshape((*lead, *([] if left else [m]), *([] if right else [n])))


@onnx_op("Gemm")
def gemm(a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0,
         transA: int = 0, transB: int = 0, broadcast: int = 0) -> Any:
    """alpha·a·b + beta·c as `matmul` and `add`; as `linear` if b is transposed and nothing is
    scaled."""
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"Gemm takes matrices, got the ranks {a.ndim} and {b.ndim}")
    plain = alpha == 1.0 and beta == 1.0 and a.dtype.is_float
    fits = c is None or (c.ndim == 1 and c.shape == b.shape[:1])
    if plain and transB and not transA and fits:
        return o.linear(a, b) if c is None else o.linear(a, b, c)
    y = o.matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB))
    y = _scaled(y, alpha)
    return y if c is None or beta == 0 else y + _scaled(c, beta)


def _scaled(x: Any, by: float) -> Any:
    return x if by == 1.0 else x * (by if x.dtype.is_float else int(by))


# ---- windows -----------------------------------------------------------------------------------

def window_pads(space: tuple[Dim, ...], spans: tuple[int, ...], strides: tuple[int, ...],
                pads: Any, auto_pad: str) -> Pairs:
    """The padding before and after each spatial axis; `spans` are the dilated window sizes."""
    n = len(space)
    if auto_pad in ("NOTSET", "") or pads is not None:
        pads = pads if pads is not None else (0,) * (2 * n)
        if len(pads) != 2 * n:
            raise ValueError(f"{n} spatial axes need {2 * n} pads, {len(pads)} are given")
        return tuple((pads[i], pads[i + n]) for i in range(n))
    if auto_pad == "VALID":
        return ((0, 0),) * n
    out = []
    for d, k, s in zip(space, spans, strides, strict=True):
        total = maximum((ceildiv(d, s) - 1) * s, d - k) + k - d  # which makes ⌈d / s⌉ windows
        small = floordiv(total, 2)
        out.append((small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small))
    return tuple(out)


def spans_of(window: Any, dilations: Any) -> tuple[int, ...]:
    """The dilated size of each window axis: (k − 1) · dilation + 1.

    Raises ValueError for a window or a dilation below 1."""
    if any(isinstance(v, int) and v < 1 for v in (*window, *dilations)):
        raise ValueError("a window and its dilations must be 1 or more, but are "
                         f"{tuple(window)} and {tuple(dilations)}")
    return tuple((k - 1) * d + 1 for k, d in zip(window, dilations, strict=True))


def bias_added(y: Any, bias: Any) -> Any:
    """y [N, C, …] plus a bias [C]; y itself without a bias."""
    return y if bias is None else y + bias.reshape((1, bias.shape[0], *[1] * (y.ndim - 2)))


@onnx_op("Conv")
def conv(x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET", dilations: Any = None,
         group: int = 1, kernel_shape: Any = None, pads: Any = None, strides: Any = None) -> Any:
    """`conv` of x [N, C, …] with w [M, C / group, …], then `add` of the bias."""
    n = x.ndim - 2
    check_window(w, kernel_shape)
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    padding = window_pads(x.shape[2:], spans_of(w.shape[2:], dilations), strides, pads, auto_pad)
    return bias_added(fitting_conv(x, w, strides=strides, padding=padding, rhs_dilation=dilations,
                                   groups=group), b)


def check_window(w: Any, kernel_shape: Any) -> None:
    """Check that kernel_shape, if it is given, is that of the weights; an open size is required to
    be. Raises ValueError."""
    have = tuple(w.shape[2:])
    wanted = have if kernel_shape is None else tuple(kernel_shape)
    if len(have) != len(wanted) or any(known(a, "==", b) is False
                                       for a, b in zip(have, wanted, strict=True)):
        raise ValueError(f"kernel_shape is {wanted}, the weights have the shape {tuple(w.shape)}")
    for a, b in zip(have, wanted, strict=True):
        w.builder.require(a, b)


@onnx_op("ConvTranspose")
def conv_transpose(x: Any, w: Any, b: Any = None, *, auto_pad: str = "NOTSET",
                   dilations: Any = None, group: int = 1, kernel_shape: Any = None,
                   output_padding: Any = None, output_shape: Any = None, pads: Any = None,
                   strides: Any = None) -> Any:
    """`conv` of x spread by the strides (`lhs_dilation`) with reversed and transposed weights; what
    is between and around its elements is `absent`."""
    n = x.ndim - 2
    check_window(w, kernel_shape)
    strides, dilations = strides or (1,) * n, dilations or (1,) * n
    extra = output_padding or (0,) * n
    spans = spans_of(w.shape[2:], dilations)
    padding = _transposed_pads(x.shape[2:], spans, strides, extra, pads, auto_pad, output_shape)
    y = fitting_conv(x, _swapped(w, group), padding=tuple(
        (k - 1 - lo, k - 1 - hi + e) for k, (lo, hi), e in zip(spans, padding, extra, strict=True)),
        lhs_dilation=strides, rhs_dilation=dilations, groups=group, absent=True)
    return bias_added(y, b)


def _swapped(w: Any, group: int) -> Any:
    """Weights [in, out/group, …] as [out, in/group, …], reversed along the window axes."""
    i, m, window = w.shape[0], w.shape[1], tuple(w.shape[2:])
    if group > 1:
        apart = w.reshape((group, floordiv(i, group), m, *window))
        w = apart.transpose((0, 2, 1, *range(3, 3 + len(window)))).reshape((group * m,
                floordiv(i, group), *window))
    else:
        w = w.transpose((1, 0, *range(2, 2 + len(window))))
    axes = tuple(a for a, d in enumerate(window, 2) if d != 1)
    return o.reverse(w, axes=axes) if axes else w


def _transposed_pads(space: Any, spans: Any, strides: Any, extra: Any, pads: Any, auto_pad: str,
                     output_shape: Any) -> Pairs:
    n = len(space)
    if output_shape is None and auto_pad in ("NOTSET", "", "VALID"):
        return window_pads(space, spans, strides, pads, "NOTSET")
    wanted = [d * s for d, s in zip(space, strides, strict=True)] if output_shape is None \
        else output_shape[-n:]
    out = []
    for d, k, s, e, want in zip(space, spans, strides, extra, wanted, strict=True):
        total = (d - 1) * s + e + k - want
        total = maximum(total, 0) if output_shape is None else total
        small = floordiv(total, 2)
        out.append((small, total - small) if auto_pad == "SAME_UPPER" else (total - small, small))
    return tuple(out)


# ---- normalisation -----------------------------------------------------------------------------

@onnx_op("BatchNormalization", since=7)
def batch_norm(x: Any, scale: Any, bias: Any, mean: Any, var: Any, *, epsilon: float = 1e-5,
               momentum: float = 0.9, spatial: int = 1, training_mode: int = 0,
               ctx: Any) -> Any:
    """`batch_norm` with the given mean and variance.

    In training mode it uses the batch's own statistics; outputs 1 and 2 are the new running mean
    and variance.
    """
    if not spatial:
        raise Refused("BatchNormalization is supported only with spatial=1, one mean and "
                      "variance for each channel")
    row = x.dtype
    if training_mode:
        return _batch_norm_training(x, scale, bias, mean, var, epsilon, momentum)
    parts = tuple(v.cast(row) for v in (scale, bias, mean, var))
    # what a batch counts: ONNX says what stays, in the digits of float32
    share = round(1 - momentum, 7)
    if x.ndim == 1:  # a batch of numbers, in one channel
        y = o.batch_norm(x.reshape((x.shape[0], 1)), *parts, epsilon=epsilon, momentum=share)
        return y.reshape(tuple(x.shape))
    return o.batch_norm(x, *parts, epsilon=epsilon, momentum=share)


def _batch_norm_training(x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float,
                         momentum: float) -> Any:
    """x normalised by the batch's own statistics, and the new running statistics.

    The variance is the biased one.
    """
    over = (0, *range(2, x.ndim))
    wide = x.cast(mean.dtype)
    flat = (x.shape[1],)
    m = o.reduce_mean(wide, axes=over).reshape(flat)
    v = o.reduce_var(wide, axes=over).reshape(flat)
    y = o.batch_norm(x, *(p.cast(x.dtype) for p in (scale, bias, m, v)), epsilon=epsilon)
    return [y, mean * momentum + m * (1 - momentum), var * momentum + v * (1 - momentum)]


@onnx_op("MeanVarianceNormalization", since=9)
def mean_variance_norm(x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    """(x − mean) / (deviation + 1e-9); the variance is that of the differences, which keeps its
    digits where the mean is large."""
    over = axes_of(axes, x.ndim)
    away = x - o.reduce_mean(x, axes=over)
    spread = o.sqrt(o.reduce_mean(away * away, axes=over))
    return away / (spread + 1e-09)


@onnx_op("LayerNormalization")
def layer_norm(x: Any, scale: Any = None, bias: Any = None, *, axis: int = -1,
               epsilon: float = 1e-5, stash_type: int = 1, ctx: Any) -> Any:
    """`layer_norm` over the axes from `axis` on; outputs 1 and 2 are the mean and 1 / deviation."""
    axes = tuple(range(axis_of(axis, x.ndim), x.ndim))
    y = o.layer_norm(x, scale, bias, axes=axes, epsilon=epsilon)
    if not (ctx.wanted(1) or ctx.wanted(2)):
        return y
    wide = x.cast(dtypes.float32) if stash_type == 1 and x.dtype.bits < 32 else x
    var = o.reduce_var(wide, axes=axes)
    return [y, o.reduce_mean(wide, axes=axes), o.rsqrt(var + epsilon)][:ctx.outputs]


@onnx_op("RMSNormalization")
def rms_norm(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5,
             stash_type: int = 1) -> Any:
    """`rms_norm` over the axes from `axis` on."""
    return o.rms_norm(x, scale, axes=tuple(range(axis_of(axis, x.ndim), x.ndim)), epsilon=epsilon)


@onnx_op("InstanceNormalization")
def instance_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    """`instance_norm` with scale and bias [C]."""
    return o.instance_norm(x, scale, bias, epsilon=epsilon)


@onnx_op("GroupNormalization", since=18)
def group_norm_18(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5,
                  num_groups: int) -> Any:
    """`group_norm`, with scale and bias [groups] repeated for each channel."""
    each = floordiv(x.shape[1], num_groups)

    def spread(p: Any) -> Any:
        wide = o.broadcast(p.reshape((num_groups, 1)), shape=(num_groups, each))
        return wide.reshape((x.shape[1],))
    return o.group_norm(x, spread(scale), spread(bias), groups=num_groups, epsilon=epsilon)


@onnx_op("GroupNormalization", since=21)
def group_norm(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5, num_groups: int,
               stash_type: int = 1) -> Any:
    """`group_norm` with scale and bias [C]."""
    return o.group_norm(x, scale, bias, groups=num_groups, epsilon=epsilon)
