"""Optimizers as pure functions of (param, gradient, state), traced with the ops; equal to torch's.

The keywords of a row are its hyper-parameters; `slots` lists the state that it keeps for each
parameter. The learning rate is an operand. Schedules, groups and clipping are not done here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool import dtypes
from graphtool import ops as o

State = dict[str, Any]
Update = tuple[Any, State]


@dataclass(frozen=True)
class Optimizer:
    """`update(p, g, state, t, lr, **hyper) -> (p, state)`; t counts the steps from 1, in float64.

    `slots` names the state that the hyper-parameters need, each with its initial value.
    """

    update: Callable[..., Update]
    slots: Callable[..., Mapping[str, float]]
    lr: float


def sgd(p: Any, g: Any, state: State, t: Any, lr: Any, *, momentum: float = 0.0,
        dampening: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0) -> Update:
    """p − lr·g; with momentum, the buffer b = μ·b + (1 − dampening)·g replaces g."""
    g = _decayed(p, g, weight_decay)
    if not momentum:
        return p - g * lr, {}
    b = state["momentum_buffer"]
    moved = b * momentum + (g if not dampening else g * (1 - dampening))
    if dampening:  # the first gradient is not dampened
        moved = o.select(o.eq(t, 1.0), g, moved)
    step = g + moved * momentum if nesterov else moved
    return p - step * lr, {"momentum_buffer": moved}


def momentum(p: Any, g: Any, state: State, t: Any, lr: Any, *, momentum: float = 0.9,
             dampening: float = 0.0, weight_decay: float = 0.0) -> Update:
    """sgd with a momentum of 0.9."""
    return sgd(p, g, state, t, lr, momentum=momentum, dampening=dampening,
               weight_decay=weight_decay)


def nesterov(p: Any, g: Any, state: State, t: Any, lr: Any, *, momentum: float = 0.9,
             weight_decay: float = 0.0) -> Update:
    """sgd with Nesterov's momentum: the step uses g + μ·b, which looks one step ahead."""
    return sgd(p, g, state, t, lr, momentum=momentum, nesterov=True, weight_decay=weight_decay)


def adam(p: Any, g: Any, state: State, t: Any, lr: Any, *, beta1: float = 0.9,
         beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0,
         amsgrad: bool = False) -> Update:
    """Kingma and Ba 2015: p − lr·m̂ / (√v̂ + ε), with the decay added to the gradient."""
    return _adam(p, _decayed(p, g, weight_decay), state, t, lr, beta1, beta2, epsilon, amsgrad)


def adamw(p: Any, g: Any, state: State, t: Any, lr: Any, *, beta1: float = 0.9,
          beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.01,
          amsgrad: bool = False) -> Update:
    """Loshchilov and Hutter 2019: adam on p·(1 − lr·decay)."""
    return _adam(_shrunk(p, lr, weight_decay), g, state, t, lr, beta1, beta2, epsilon, amsgrad)


def _adam(p: Any, g: Any, state: State, t: Any, lr: Any, beta1: float, beta2: float,
          epsilon: float, amsgrad: bool) -> Update:
    m = state["exp_avg"] + (g - state["exp_avg"]) * (1 - beta1)
    v = state["exp_avg_sq"] * beta2 + g * g * (1 - beta2)
    out = {"exp_avg": m, "exp_avg_sq": v}
    if amsgrad:
        v = out["max_exp_avg_sq"] = o.max(state["max_exp_avg_sq"], v)
    first = 1.0 - o.pow(beta1, t)
    root = o.sqrt(1.0 - o.pow(beta2, t))
    step = o.cast(o.cast(lr, dtype=t.dtype) / first, dtype=p.dtype)
    return p - m * step / (o.sqrt(v) / o.cast(root, dtype=p.dtype) + epsilon), out


def adagrad(p: Any, g: Any, state: State, t: Any, lr: Any, *, lr_decay: float = 0.0,
            initial: float = 0.0, epsilon: float = 1e-10, weight_decay: float = 0.0) -> Update:
    """Duchi et al. 2011: p − lr/(1 + (t − 1)·lr_decay)·g / (√Σg² + ε); Σ starts at `initial`."""
    g = _decayed(p, g, weight_decay)
    total = state["sum"] + g * g
    if lr_decay:
        lr = lr / o.cast((t - 1.0) * lr_decay + 1.0, dtype=p.dtype)
    return p - g * lr / (o.sqrt(total) + epsilon), {"sum": total}


def rmsprop(p: Any, g: Any, state: State, t: Any, lr: Any, *, alpha: float = 0.99,
            epsilon: float = 1e-8, momentum: float = 0.0, centered: bool = False,
            weight_decay: float = 0.0) -> Update:
    """Tieleman and Hinton 2012: p − lr·g / (√mean(g²) + ε); centered subtracts mean(g)²."""
    g = _decayed(p, g, weight_decay)
    v = state["square_avg"] * alpha + g * g * (1 - alpha)
    out = {"square_avg": v}
    spread = v
    if centered:
        mean = out["grad_avg"] = state["grad_avg"] + (g - state["grad_avg"]) * (1 - alpha)
        spread = v - mean * mean
    step = g / (o.sqrt(spread) + epsilon)
    if momentum:
        step = out["momentum_buffer"] = state["momentum_buffer"] * momentum + step
    return p - step * lr, out


def lion(p: Any, g: Any, state: State, t: Any, lr: Any, *, beta1: float = 0.9,
         beta2: float = 0.99, weight_decay: float = 0.0) -> Update:
    """Chen et al. 2023: p·(1 − lr·decay) − lr·sign(β₁·m + (1 − β₁)·g); then m is updated with
    β₂."""
    m = state["exp_avg"]
    step = o.sign(m * beta1 + g * (1 - beta1))
    moved = m * beta2 + g * (1 - beta2)
    return _shrunk(p, lr, weight_decay) - step * lr, {"exp_avg": moved}


def _decayed(p: Any, g: Any, decay: float) -> Any:
    """The gradient plus that of decay/2·p²."""
    return g + p * decay if decay else g


def _shrunk(p: Any, lr: Any, decay: float) -> Any:
    """Decoupled weight decay: it does not depend on the gradient's scale."""
    return p * (1.0 - lr * decay) if decay else p


def _momentum_slot(*, momentum: float = 0.0, **_: Any) -> dict[str, float]:
    return {"momentum_buffer": 0.0} if momentum else {}


def _adam_slots(*, amsgrad: bool = False, **_: Any) -> dict[str, float]:
    return {"exp_avg": 0.0, "exp_avg_sq": 0.0} | ({"max_exp_avg_sq": 0.0} if amsgrad else {})


def _rmsprop_slots(*, momentum: float = 0.0, centered: bool = False, **_: Any) -> dict[str, float]:
    return {"square_avg": 0.0} | ({"grad_avg": 0.0} if centered else {}) | _momentum_slot(
        momentum=momentum)


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer(sgd, _momentum_slot, 1e-2),
    "momentum": Optimizer(momentum, lambda momentum=0.9, **_: _momentum_slot(momentum=momentum),
                          1e-2),
    "nesterov": Optimizer(nesterov, lambda momentum=0.9, **_: _momentum_slot(momentum=momentum),
                          1e-2),
    "adam": Optimizer(adam, _adam_slots, 1e-3),
    "adamw": Optimizer(adamw, _adam_slots, 1e-3),
    "adagrad": Optimizer(adagrad, lambda initial=0.0, **_: {"sum": initial}, 1e-2),
    "rmsprop": Optimizer(rmsprop, _rmsprop_slots, 1e-2),
    "lion": Optimizer(lion, lambda **_: {"exp_avg": 0.0}, 1e-4),
}


def clipped(grads: Sequence[Any], value: float | None = None,
            norm: float | None = None) -> list[Any]:
    """The gradients limited to ±value each, then scaled down to a global norm, as torch does."""
    out = list(grads)
    if value is not None:
        out = [o.clamp(g, -value, value) for g in out]
    if norm is not None:
        total = global_norm(out)
        factor = o.min(o.cast(1.0 * norm / (total + 1e-6), dtype=total.dtype), 1.0)
        out = [g * o.cast(factor, dtype=g.dtype) for g in out]
    return out


def global_norm(grads: Sequence[Any]) -> Any:
    """√Σg² over all elements of all gradients, in at least float32: squares of 16-bit floats
    overflow early."""
    return o.sqrt(_sum_of_squares([g if g.dtype.bits > 16 else o.cast(g, dtype=dtypes.float32)
                                   for g in grads]))


def _sum_of_squares(xs: Sequence[Any]) -> Any:
    total = None
    for x in xs:
        square = o.reshape(o.reduce_sum(x * x, axes=tuple(range(x.ndim))), shape=())
        total = square if total is None else total + o.cast(square, dtype=total.dtype)
    return total
