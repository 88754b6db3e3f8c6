"""`ai.onnx.preview.training`: one step of Momentum, Adagrad and Adam on any number of tensors."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.onnx.driver.registry import onnx_op

DOMAIN = "ai.onnx.preview.training"


def _columns(xs: tuple[Any, ...], each: int) -> list[tuple[Any, ...]]:
    """The operands regrouped by tensor. ONNX lists all tensors, then all gradients, then all
    states."""
    n = len(xs) // each
    return [tuple(xs[k * n + i] for k in range(each)) for i in range(n)]


def _rows(results: list[tuple[Any, ...]]) -> list[Any]:
    return [x for row in zip(*results, strict=True) for x in row]


def _first_step(t: Any, first: Any, later: Any, like: Any) -> Any:
    """`first` at step 0, else `later`, as a constant with the dtype of `like`."""
    return o.select(t > 0, like.number(later), like.number(first))


@onnx_op("Momentum", domain=DOMAIN)
def momentum(rate: Any, t: Any, *xs: Any, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> Any:
    """The new tensors, then the new velocities, by elementwise ops."""
    out = []
    for x, g, v in _columns(xs, 3):
        g = x * norm_coefficient + g
        adjusted = _first_step(t, 1.0, beta, x)
        new = v * alpha + g * adjusted
        step = g + new * alpha if mode == "nesterov" else new
        out.append((x - step * rate.cast(x.dtype), new))
    return _rows(out)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(rate: Any, t: Any, *xs: Any, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0) -> Any:
    """The new tensors, then the new sums of squared gradients, by elementwise ops."""
    out = []
    for x, g, h in _columns(xs, 3):
        r = rate.cast(x.dtype) / (t.cast(x.dtype) * decay_factor + 1.0)
        g = x * norm_coefficient + g
        new = h + g * g
        out.append((x - g * r / (o.sqrt(new) + epsilon), new))
    return _rows(out)


@onnx_op("Adam", domain=DOMAIN)
def adam(rate: Any, t: Any, *xs: Any, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 0.0, norm_coefficient: float = 0.0,
         norm_coefficient_post: float = 0.0) -> Any:
    """The new tensors, then both new moments, by elementwise ops."""
    out = []
    for x, g, v, h in _columns(xs, 4):
        g = x * norm_coefficient + g
        v = v * alpha + g * (1 - alpha)
        h = h * beta + g * g * (1 - beta)
        steps = t.cast(dtypes.float32)
        late = o.sqrt(1.0 - steps.number(beta) ** steps) / (1.0 - steps.number(alpha) ** steps)
        factor = o.select(t > 0, late, 1.0).cast(x.dtype)
        r = rate.cast(x.dtype) * factor
        new = x - v * r / (o.sqrt(h) + epsilon)
        out.append((new * (1 - norm_coefficient_post), v, h))
    return _rows(out)
