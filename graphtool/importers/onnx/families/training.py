"""`ai.onnx.preview.training`: one step of Momentum, Adagrad and Adam on any number of tensors."""

from __future__ import annotations

from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.importers.onnx.driver.values import cast, number

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
    return o.select(o.gt(t, 0), number(later, like), number(first, like))


@onnx_op("Momentum", domain=DOMAIN)
def momentum(rate: Any, t: Any, *xs: Any, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> Any:
    """The new tensors, then the new velocities, by elementwise ops."""
    out = []
    for x, g, v in _columns(xs, 3):
        g = o.add(o.mul(x, norm_coefficient), g)
        adjusted = _first_step(t, 1.0, beta, x)
        new = o.add(o.mul(v, alpha), o.mul(g, adjusted))
        step = o.add(g, o.mul(new, alpha)) if mode == "nesterov" else new
        out.append((o.sub(x, o.mul(step, cast(rate, x.dtype))), new))
    return _rows(out)


@onnx_op("Adagrad", domain=DOMAIN)
def adagrad(rate: Any, t: Any, *xs: Any, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0) -> Any:
    """The new tensors, then the new sums of squared gradients, by elementwise ops."""
    out = []
    for x, g, h in _columns(xs, 3):
        r = o.div(cast(rate, x.dtype), o.add(o.mul(cast(t, x.dtype), decay_factor), 1.0))
        g = o.add(o.mul(x, norm_coefficient), g)
        new = o.add(h, o.mul(g, g))
        out.append((o.sub(x, o.div(o.mul(g, r), o.add(o.sqrt(new), epsilon))), new))
    return _rows(out)


@onnx_op("Adam", domain=DOMAIN)
def adam(rate: Any, t: Any, *xs: Any, alpha: float = 0.9, beta: float = 0.999,
         epsilon: float = 0.0, norm_coefficient: float = 0.0,
         norm_coefficient_post: float = 0.0) -> Any:
    """The new tensors, then both new moments, by elementwise ops."""
    out = []
    for x, g, v, h in _columns(xs, 4):
        g = o.add(o.mul(x, norm_coefficient), g)
        v = o.add(o.mul(v, alpha), o.mul(g, 1 - alpha))
        h = o.add(o.mul(h, beta), o.mul(o.mul(g, g), 1 - beta))
        steps = cast(t, dtypes.float32)
        late = o.div(o.sqrt(o.sub(1.0, o.pow(number(beta, steps), steps))),
                     o.sub(1.0, o.pow(number(alpha, steps), steps)))
        factor = cast(o.select(o.gt(t, 0), late, 1.0), x.dtype)
        r = o.mul(cast(rate, x.dtype), factor)
        new = o.sub(x, o.div(o.mul(v, r), o.add(o.sqrt(h), epsilon)))
        out.append((o.mul(new, 1 - norm_coefficient_post), v, h))
    return _rows(out)
