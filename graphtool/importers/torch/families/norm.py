"""Layer, RMS, group, instance and batch norm, as torch's plain ops and as its native_* ops."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from graphtool.importers.torch.kit import Array, Context, aten, o, product


def _last_axes(x: Array, normalized_shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(range(x.ndim - len(normalized_shape), x.ndim))


@aten("layer_norm")
def layer_norm(c: Context, input: Array, normalized_shape: tuple[Any, ...],
               weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5,
               cudnn_enable: bool = True) -> Any:
    """layer_norm over the last axes, those of `normalized_shape`."""
    return o.layer_norm(input, weight, bias, axes=_last_axes(input, normalized_shape), epsilon=eps)


@aten("native_layer_norm")
def native_layer_norm(c: Context, input: Array, normalized_shape: tuple[Any, ...],
                      weight: Array | None, bias: Array | None, eps: float) -> Any:
    """(layer_norm, mean, 1 / √(var + ε))."""
    y = layer_norm(c, input, normalized_shape, weight, bias, eps)
    return y, *_statistics(input, _last_axes(input, normalized_shape), eps)


def _statistics(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Any, Any]:
    """(mean, 1 / √(var + ε)), with size 1 on the axes."""
    return o.reduce_mean(x, axes=axes), o.rsqrt(o.reduce_var(x, axes=axes) + eps)


@aten("rms_norm")
def rms_norm(c: Context, input: Array, normalized_shape: tuple[Any, ...],
             weight: Array | None = None, eps: float | None = None) -> Any:
    """rms_norm over the last axes; ε is the precision of the type that computes unless given."""
    if eps is None:
        eps = float(ml_dtypes.finfo(input.dtype.computes.numpy).eps)
    return o.rms_norm(input, weight, axes=_last_axes(input, normalized_shape), epsilon=eps)


@aten("_fused_rms_norm")
def fused_rms_norm(c: Context, input: Array, normalized_shape: tuple[Any, ...],
                   weight: Array | None, eps: float | None = None) -> Any:
    """(rms_norm, none): the second result is only for torch's own gradient."""
    return rms_norm(c, input, normalized_shape, weight, eps), None


@aten("group_norm")
def group_norm(c: Context, input: Array, num_groups: int, weight: Array | None = None,
               bias: Array | None = None, eps: float = 1e-5, cudnn_enabled: bool = True) -> Any:
    """group_norm with `num_groups` groups of channels (axis 1)."""
    return o.group_norm(input, weight, bias, groups=num_groups, epsilon=eps)


@aten("native_group_norm")
def native_group_norm(c: Context, input: Array, weight: Array | None, bias: Array | None,
                      N: Any, C: Any, HxW: Any, group: int, eps: float) -> Any:
    """(group_norm, mean, 1 / √(var + ε)), the last two [batch, groups]."""
    grouped = input.reshape((N, group, C // group * HxW))
    statistics = (x.reshape((N, group)) for x in _statistics(grouped, (2,), eps))
    return group_norm(c, input, group, weight, bias, eps), *statistics


@aten("instance_norm")
def instance_norm(c: Context, input: Array, weight: Array | None, bias: Array | None,
                  running_mean: Any, running_var: Any, use_input_stats: bool, momentum: float,
                  eps: float, cudnn_enabled: bool = True) -> Any:
    """instance_norm; batch_norm by running statistics if `use_input_stats` is false."""
    if not use_input_stats:
        return _by_statistics(input, weight, bias, running_mean, running_var, eps)
    return o.instance_norm(input, weight, bias, epsilon=eps)


def _by_statistics(x: Array, weight: Array | None, bias: Array | None, mean: Array,
                   var: Array, eps: float) -> Any:
    """The sums of batch_norm as plain ops: training would not use a batch's statistics here."""
    def placed(v: Array) -> Any:
        return v.reshape((v.shape[0], *(1,) * (x.ndim - 2)))
    factor = o.rsqrt(var + eps)
    factor = factor if weight is None else factor * weight
    y = (x - placed(mean)) * placed(factor)
    return y if bias is None else y + placed(bias)


# ---- batch norm --------------------------------------------------------------------------------

AVERAGE = -1.0  # the momentum of a norm whose statistics are the means over all batches


def _inference(x: Array, weight: Array | None, bias: Array | None, mean: Array, var: Array,
               momentum: float, eps: float) -> Any:
    return o.batch_norm(x, weight, bias, mean, var, epsilon=eps,
                        momentum=None if momentum == AVERAGE else momentum)


@aten("_native_batch_norm_legit_no_training")
def batch_norm_inference(c: Context, input: Array, weight: Array | None, bias: Array | None,
                         running_mean: Array, running_var: Array, momentum: float,
                         eps: float) -> Any:
    """(batch_norm by running statistics, empty, empty)."""
    y = _inference(input, weight, bias, running_mean, running_var, momentum, eps)
    return y, c.zeros(1), c.zeros(2)


@aten("batch_norm")
def batch_norm(c: Context, input: Array, weight: Array | None, bias: Array | None,
               running_mean: Any, running_var: Any, training: bool,
               momentum: float, eps: float, cudnn_enabled: bool = True) -> Any:
    """batch_norm by running statistics; by those of the batch in training."""
    if training or running_mean is None:
        return o.batch_norm_training(input, weight, bias, epsilon=eps)[0]
    return _inference(input, weight, bias, running_mean, running_var, momentum, eps)


@aten("_native_batch_norm_legit_functional")
def batch_norm_functional(c: Context, input: Array, weight: Array | None, bias: Array | None,
                          running_mean: Array, running_var: Array, training: bool,
                          momentum: float, eps: float) -> Any:
    """(y, mean, 1/√(var + ε), new running mean, new running variance)."""
    if not training:
        y = _inference(input, weight, bias, running_mean, running_var, momentum, eps)
        return y, c.zeros(1), c.zeros(2), running_mean, running_var
    y, mean, rstd, var = _by_batch(input, weight, bias, eps)
    count = c.number(product((input.shape[0], *input.shape[2:])), var.dtype)
    unbiased = var * (count / (count - 1.0))
    return (y, mean, rstd, running_mean * (1 - momentum) + mean * momentum,
            running_var * (1 - momentum) + unbiased * momentum)


def _by_batch(x: Array, weight: Array | None, bias: Array | None, eps: float) -> tuple[Any, ...]:
    """(y, mean, 1/√(var + ε), variance) by the statistics of the batch."""
    y, mean, var = o.batch_norm_training(x, weight, bias, epsilon=eps)
    return y, mean, o.rsqrt(var + eps), var


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(c: Context, input: Array, weight: Array | None, bias: Array | None,
                        training: bool, momentum: float, eps: float) -> Any:
    """(batch_norm by the batch's statistics, mean, 1 / √(var + ε))."""
    return _by_batch(input, weight, bias, eps)[:3]


@aten("_native_batch_norm_legit.default")
def batch_norm_legit(c: Context, input: Array, weight: Array | None, bias: Array | None,
                     running_mean: Array, running_var: Array, training: bool, momentum: float,
                     eps: float) -> Any:
    """(y, mean, 1/√(var + ε)), without the new running statistics: export has rewritten their
    update as another call."""
    return batch_norm_functional(c, input, weight, bias, running_mean, running_var, training,
                                 momentum, eps)[:3]


@aten("_batch_norm_with_update_functional")
def batch_norm_with_update(c: Context, input: Array, weight: Array | None,
                           bias: Array | None, running_mean: Array, running_var: Array,
                           momentum: float, eps: float) -> Any:
    """(y, mean, 1/√(var + ε), an unused buffer, new mean, new variance), in training."""
    y, mean, rstd, *moved = batch_norm_functional(c, input, weight, bias, running_mean,
                                                  running_var, True, momentum, eps)
    return y, mean, rstd, c.zeros(3), *moved
