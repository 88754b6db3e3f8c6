"""The quantise and dequantise calls that pt2e leaves in a graph (`quantized_decomposed.*`)."""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.kit import Array, Context, aten, axis_of, dtypes, o

_SPACE = "quantized_decomposed"


def _along(c: Context, v: Array, x: Array, axis: int) -> Array:
    """[channels] reshaped to broadcast against x along the channel axis."""
    at = axis_of(axis, x.ndim)
    return v.reshape([d if i == at else 1 for i, d in enumerate(x.shape)])


def _quantized(c: Context, x: Array, scale: Any, zero: Any, low: int, high: int) -> Any:
    """clamp(round(x·(1/scale)) + zero, low, high), in the dtype of the result."""
    inverse = 1.0 / scale if isinstance(scale, float) else 1.0 / c.cast(scale, x.dtype)
    steps = o.round(x * inverse) + c.cast(zero, x.dtype)
    return c.cast(o.clamp(steps, float(low), float(high)), c.out.dtype)


def _dequantized(c: Context, x: Array, scale: Any, zero: Any) -> Any:
    """(x − zero)·scale, in the dtype of the result."""
    wide = c.cast(x, c.out.dtype)
    moved = wide if zero is None else wide - c.cast(zero, wide.dtype)
    return moved * c.cast(scale, wide.dtype)


@aten("quantize_per_tensor", namespace=_SPACE)
def quantize_per_tensor(c: Context, input: Array, scale: Any, zero_point: Any, quant_min: int,
                        quant_max: int, dtype: Any) -> Any:
    """clamp(round(x / scale) + zero, quant_min, quant_max), cast to the integer dtype."""
    return _quantized(c, input, _scalar(c, scale), _scalar(c, zero_point), quant_min, quant_max)


@aten("dequantize_per_tensor", namespace=_SPACE)
def dequantize_per_tensor(c: Context, input: Array, scale: Any, zero_point: Any, quant_min: int,
                          quant_max: int, dtype: Any, *, out_dtype: Any = None) -> Any:
    """(x − zero)·scale, in the float dtype of the result."""
    return _dequantized(c, input, _scalar(c, scale), _scalar(c, zero_point))


def _scalar(c: Context, x: Any) -> Any:
    """Rank 0: scales that torch computes are tensors of one element."""
    return x.reshape(()) if isinstance(x, Array) else x


@aten("quantize_per_channel", namespace=_SPACE)
def quantize_per_channel(c: Context, input: Array, scales: Array, zero_points: Array, axis: int,
                         quant_min: int, quant_max: int, dtype: Any) -> Any:
    """quantize_per_tensor with a scale and a zero point for each channel."""
    return _quantized(c, input, _along(c, scales, input, axis),
                      _along(c, zero_points, input, axis), quant_min, quant_max)


@aten("dequantize_per_channel", namespace=_SPACE)
def dequantize_per_channel(c: Context, input: Array, scales: Array, zero_points: Array | None,
                           axis: int, quant_min: int, quant_max: int, dtype: Any, *,
                           out_dtype: Any = None) -> Any:
    """(x − zero)·scale, with a scale and a zero point for each channel."""
    zero = None if zero_points is None else _along(c, zero_points, input, axis)
    return _dequantized(c, input, _along(c, scales, input, axis), zero)


# ---- training with quantisation in mind --------------------------------------------------------

def _faked(c: Context, x: Array, scale: Any, zero: Any, low: int, high: int) -> tuple[Any, Any]:
    """(x quantised to low..high and back to float, bool mask of the elements that were not
    clamped).

    The gradient passes straight through the rounding, to x alone, where x was not clamped.
    """
    scale, zero = (o.stop_gradient(c.cast(v, x.dtype)) if isinstance(v, Array) else v
                   for v in (scale, zero))
    real = x * (1.0 / scale)  # clamped, so that the next line has no ∞ − ∞
    real = o.clamp(real, low - 1.0 - zero, high + 1.0 - zero)
    steps = real + o.stop_gradient(o.round(real) - real) + zero
    inside = (steps >= float(low)) & (steps <= float(high))
    return (o.clamp(steps, float(low), float(high)) - zero) * scale, inside


@aten("fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_tensor_affine")
def fake_quantize(c: Context, self: Array, scale: Any, zero_point: Any, quant_min: int,
                  quant_max: int) -> Any:
    """(x quantised and back, bool mask of the elements that were not clamped)."""
    return _faked(c, self, _scalar(c, scale), _scalar(c, zero_point), quant_min, quant_max)


@aten("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_by_tensors(c: Context, self: Array, scale: Array, zero_point: Array,
                             fake_quant_enabled: Array, quant_min: int, quant_max: int) -> Any:
    """fake_quantize where `enabled` is not 0, else (x, true)."""
    return _if(c, fake_quant_enabled, self, _faked(c, self, _scalar(c, scale), _scalar(
        c, zero_point), quant_min, quant_max))


def _if(c: Context, enabled: Array, x: Array, faked: tuple[Any, Any]) -> tuple[Any, Any]:
    on = o.ne(enabled.reshape(()), 0)
    return o.select(on, faked[0], x), o.select(on, faked[1], True)


@aten("fake_quantize_per_channel_affine_cachemask", "fake_quantize_per_channel_affine")
def fake_quantize_channels(c: Context, self: Array, scale: Array, zero_point: Array, axis: int,
                           quant_min: int, quant_max: int) -> Any:
    """fake_quantize with a scale and a zero point for each channel."""
    return _faked(c, self, _along(c, scale, self, axis), _along(c, zero_point, self, axis),
                  quant_min, quant_max)


@aten("fake_quantize_per_tensor_affine_cachemask_backward",
      "fake_quantize_per_channel_affine_cachemask_backward")
def fake_quantize_back(c: Context, grad: Array, mask: Array) -> Any:
    """select(mask, g, 0): clamped elements get no gradient."""
    return o.select(mask, grad, 0.0)


@aten("_fused_moving_avg_obs_fq_helper_functional")
def observed(c: Context, self: Array, observer_on: Array, fake_quant_on: Array,
             running_min: Array, running_max: Array, scale: Array, zero_point: Array,
             averaging_const: float, quant_min: int, quant_max: int, ch_axis: int,
             per_row_fake_quant: bool = False, symmetric_quant: bool = False) -> Any:
    """Moves the running bounds towards those of x, takes the scale and zero point from them, and
    returns (fake-quantised x, mask, low, high, scale, zero point)."""
    on = o.ne(observer_on.reshape(()), 0)
    keep = axis_of(ch_axis, self.ndim)
    axes = tuple(i for i in range(self.ndim) if not per_row_fake_quant or i != keep)
    bounds = []
    for old, op in ((running_min, o.reduce_min), (running_max, o.reduce_max)):
        extremes = op(self, axes=axes).reshape(old.shape)
        moved = o.select(o.is_inf(old), extremes, old + (extremes - old) * float(averaging_const))
        bounds.append(o.select(on, moved, old))
    low, high = bounds
    step, zero = _numbers(c, low, high, quant_min, quant_max, symmetric_quant)
    scale = o.select(on, c.cast(step, scale.dtype), scale)
    zero = o.select(on, c.cast(zero, zero_point.dtype), zero_point)
    each, offset = (_along(c, v, self, keep) if per_row_fake_quant else v.reshape(())
                    for v in (scale, zero))
    y, mask = _if(c, fake_quant_on, self, _faked(c, self, each, offset, quant_min, quant_max))
    return y, mask, low, high, scale, zero


_LEAST_SCALE = 6.1e-5  # below which torch widens the bounds instead


def _numbers(c: Context, low: Array, high: Array, first: int, last: int,
             symmetric: bool) -> tuple[Any, Any]:
    """(scale, zero point) so that the integers first..last cover low..high and 0."""
    low, high = (x.cast(dtypes.float64) for x in (low, high))
    both = (low < 0.0) & (high > 0.0)
    if symmetric:
        half = (last - first) // 2
        most = o.max(abs(low / -float(half + 1)), abs(high / float(half)))
        low = o.select(both, most * -float(half + 1), low)
        high = o.select(both, most * float(half), high)
    low, high = o.min(low, 0.0), o.max(high, 0.0)
    scale = (high - low) / float(last - first)
    scale = o.select(o.eq(scale, 0.0), 0.1, scale)
    wider = o.select(scale < _LEAST_SCALE, _LEAST_SCALE / scale, 1.0)
    low, high, scale = low * wider, high * wider, scale * wider
    start, end = low / scale, high / scale
    nearer = float(abs(first)) - abs(start) < float(abs(last)) - abs(end)
    zero = o.select(nearer, float(first) - start, float(last) - end)
    if symmetric:
        zero = o.select(both, (first + last) / 2, zero)
    return scale, o.clamp(o.round(zero), float(first), float(last))


@aten("choose_qparams.tensor", namespace=_SPACE)
def choose_qparams(c: Context, input: Array, quant_min: int, quant_max: int, eps: float,
                   dtype: Any) -> Any:
    """(f64[1] scale, i64[1] zero point) so that quant_min..quant_max covers the data and 0."""
    axes = tuple(range(input.ndim))
    low = o.min(o.reduce_min(input, axes=axes), 0.0)
    high = o.max(o.reduce_max(input, axes=axes), 0.0)
    scale = o.max((high - low) / float(quant_max - quant_min), float(eps))
    zero = o.clamp(float(quant_min) - o.round(low / scale), float(quant_min), float(quant_max))
    return tuple(c.cast(x, t).reshape((1,)) for x, t in ((scale, dtypes.float64),
                                                         (zero, dtypes.int64)))


@aten("_int_mm")
def int_mm(c: Context, self: Array, mat2: Array) -> Any:
    """matmul of int8 operands cast to int32; torchao's dynamic quantisation uses it."""
    return o.matmul(*(x.cast(dtypes.int32) for x in (self, mat2)))
