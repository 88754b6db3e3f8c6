"""Layer, RMS, group, instance and batch norm, as torch's plain ops and as its native_* ops."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool import ops as o
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.ir.trace import Tracer


def _last_axes(x: Tracer, normalized_shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(range(x.ndim - len(normalized_shape), x.ndim))


@aten("layer_norm")
def layer_norm(c: Context, input: Tracer, normalized_shape: tuple[Any, ...],
               weight: Tracer | None = None, bias: Tracer | None = None, eps: float = 1e-5,
               cudnn_enable: bool = True) -> Any:
    """layer_norm over the last axes, those of `normalized_shape`."""
    return o.layer_norm(input, weight, bias, axes=_last_axes(input, normalized_shape), epsilon=eps)


@aten("native_layer_norm")
def native_layer_norm(c: Context, input: Tracer, normalized_shape: tuple[Any, ...],
                      weight: Tracer | None, bias: Tracer | None, eps: float) -> Any:
    """(layer_norm, mean, 1 / √(var + ε))."""
    axes = _last_axes(input, normalized_shape)
    y = o.layer_norm(input, weight, bias, axes=axes, epsilon=eps) if c.used(0) else None
    return y, *_statistics(c, input, axes, eps)


def _statistics(c: Context, x: Tracer, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """(mean, 1 / √(var + ε)) in torch's shapes; None for a result that nobody reads."""
    mean = o.reduce_mean(x, axes=axes) if c.used(1) else None
    rstd = o.rsqrt(o.add(o.reduce_var(x, axes=axes), eps)) if c.used(2) else None
    return (None if mean is None or c.outs[1] is None else c.reshape(mean, c.outs[1].shape),
            None if rstd is None or c.outs[2] is None else c.reshape(rstd, c.outs[2].shape))


@aten("rms_norm")
def rms_norm(c: Context, input: Tracer, normalized_shape: tuple[Any, ...],
             weight: Tracer | None = None, eps: float | None = None) -> Any:
    """rms_norm over the last axes; ε is the precision of the type that computes unless given."""
    if eps is None:
        eps = float(ml_dtypes.finfo(input.dtype.computes.numpy).eps)
    return o.rms_norm(input, weight, axes=_last_axes(input, normalized_shape), epsilon=eps)


@aten("_fused_rms_norm")
def fused_rms_norm(c: Context, input: Tracer, normalized_shape: tuple[Any, ...],
                   weight: Tracer | None, eps: float | None = None) -> Any:
    """(rms_norm, none): the second result is only for torch's own gradient."""
    return rms_norm(c, input, normalized_shape, weight, eps), None


@aten("group_norm")
def group_norm(c: Context, input: Tracer, num_groups: int, weight: Tracer | None = None,
               bias: Tracer | None = None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Any:
    """group_norm with `num_groups` groups of channels (axis 1)."""
    return o.group_norm(input, weight, bias, groups=num_groups, epsilon=eps)


@aten("native_group_norm")
def native_group_norm(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                      N: Any, C: Any, HxW: Any, group: int, eps: float) -> Any:
    """(group_norm, mean, 1 / √(var + ε)), the last two [batch, groups]."""
    y = group_norm(c, input, group, weight, bias, eps) if c.used(0) else None
    grouped = c.reshape(input, (N, group, C // group * HxW))
    return y, *_statistics(c, grouped, (2,), eps)


@aten("instance_norm")
def instance_norm(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                  running_mean: Any, running_var: Any,
                  use_input_stats: bool, momentum: float, eps: float,
                  cudnn_enabled: bool = True) -> Any:
    """instance_norm; batch_norm by running statistics if `use_input_stats` is false."""
    if not use_input_stats:
        return _by_statistics(input, weight, bias, running_mean, running_var, eps)
    return o.instance_norm(input, weight, bias, epsilon=eps)


def _by_statistics(x: Tracer, weight: Tracer | None, bias: Tracer | None, mean: Tracer,
                   var: Tracer, eps: float) -> Any:
    """The sums of batch_norm as plain ops: training would not use a batch's statistics here."""
    def placed(v: Tracer) -> Any:
        return o.reshape(v, shape=(v.shape[0], *(1,) * (x.ndim - 2)))
    factor = o.rsqrt(o.add(var, eps))
    factor = factor if weight is None else o.mul(factor, weight)
    y = o.mul(o.sub(x, placed(mean)), placed(factor))
    return y if bias is None else o.add(y, placed(bias))


# ---- batch norm --------------------------------------------------------------------------------

AVERAGE = -1.0  # the momentum of a norm whose statistics are the means over all batches


def _inference(x: Tracer, weight: Tracer | None, bias: Tracer | None, mean: Tracer, var: Tracer,
               momentum: float, eps: float) -> Any:
    return o.batch_norm(x, weight, bias, mean, var, epsilon=eps,
                        momentum=None if momentum == AVERAGE else momentum)


@aten("_native_batch_norm_legit_no_training")
def batch_norm_inference(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                         running_mean: Tracer, running_var: Tracer, momentum: float,
                         eps: float) -> Any:
    """(batch_norm by running statistics, empty, empty)."""
    y = _inference(input, weight, bias, running_mean, running_var, momentum, eps)
    return y, *(None if t is None else c.full(t.shape, 0, t.dtype) for t in c.outs[1:])  # empty


@aten("batch_norm")
def batch_norm(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
               running_mean: Any, running_var: Any, training: bool,
               momentum: float, eps: float, cudnn_enabled: bool = True) -> Any:
    """batch_norm by running statistics; by those of the batch in training."""
    if training or running_mean is None:
        return o.batch_norm_training(input, weight, bias, epsilon=eps)[0]
    return _inference(input, weight, bias, running_mean, running_var, momentum, eps)


@aten("_native_batch_norm_legit_functional")
def batch_norm_functional(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                          running_mean: Tracer, running_var: Tracer, training: bool,
                          momentum: float, eps: float) -> Any:
    """(y, mean, 1/√(var + ε), new running mean, new running variance)."""
    if not training:
        y = _inference(input, weight, bias, running_mean, running_var, momentum, eps)
        empty = (None if t is None else c.full(t.shape, 0, t.dtype) for t in c.outs[1:3])
        return y, *empty, running_mean, running_var
    y, mean, var = o.batch_norm_training(input, weight, bias, epsilon=eps)
    rstd = o.rsqrt(o.add(var, eps)) if c.used(2) else None
    new_mean = _moved(running_mean, mean, momentum) if c.used(3) else None
    new_var = None
    if c.used(4):  # the running variance is the unbiased one
        count = c.number(_count(input), var.dtype)
        new_var = _moved(running_var, o.mul(var, _ratio(count)), momentum)
    return y, mean, rstd, new_mean, new_var


def _count(x: Tracer) -> Any:
    total: Any = x.shape[0]
    for d in x.shape[2:]:
        total = total * d
    return total


def _ratio(count: Any) -> Any:
    return count / (count - 1.0) if isinstance(count, float) else o.div(count, o.sub(count, 1.0))


def _moved(old: Tracer, new: Any, momentum: float) -> Any:
    return o.add(o.mul(old, 1 - momentum), o.mul(new, momentum))


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                        training: bool, momentum: float, eps: float) -> Any:
    """(batch_norm by the batch's statistics, mean, 1 / √(var + ε))."""
    y, mean, var = o.batch_norm_training(input, weight, bias, epsilon=eps)
    return y, mean, o.rsqrt(o.add(var, eps)) if c.used(2) else None


@aten("_native_batch_norm_legit.default")
def batch_norm_legit(c: Context, input: Tracer, weight: Tracer | None, bias: Tracer | None,
                     running_mean: Tracer, running_var: Tracer, training: bool, momentum: float,
                     eps: float) -> Any:
    """(y, mean, 1/√(var + ε)), without the new running statistics: export has rewritten their
    update as another call."""
    return batch_norm_functional(c, input, weight, bias, running_mean, running_var, training,
                                 momentum, eps)[:3]


@aten("_batch_norm_with_update_functional")
def batch_norm_with_update(c: Context, input: Tracer, weight: Tracer | None,
                           bias: Tracer | None, running_mean: Tracer, running_var: Tracer,
                           momentum: float, eps: float) -> Any:
    """(y, mean, 1/√(var + ε), an unused buffer, new mean, new variance), in training."""
    y, mean, var = o.batch_norm_training(input, weight, bias, epsilon=eps)
    blank = c.outs[3] if c.used(3) else None
    count = c.number(_count(input), var.dtype)
    return (y, mean, o.rsqrt(o.add(var, eps)),
            None if blank is None else c.full(blank.shape, 0, blank.dtype),
            _moved(running_mean, mean, momentum),
            _moved(running_var, o.mul(var, _ratio(count)), momentum))
