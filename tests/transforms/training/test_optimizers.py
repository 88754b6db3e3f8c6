"""Every optimizer against torch's, step by step, in float64 and float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from graphtool import dtypes
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from graphtool.transforms.training.optimizers import OPTIMIZERS, clipped

SHAPE = (3, 4)
CASES: list[tuple[str, dict[str, Any], type[torch.optim.Optimizer], dict[str, Any]]] = [
    ("sgd", {}, torch.optim.SGD, {}),
    ("sgd", {"weight_decay": 0.1}, torch.optim.SGD, {"weight_decay": 0.1}),
    ("momentum", {}, torch.optim.SGD, {"momentum": 0.9}),
    ("sgd", {"momentum": 0.8, "dampening": 0.3}, torch.optim.SGD,
     {"momentum": 0.8, "dampening": 0.3}),
    ("nesterov", {"weight_decay": 0.1}, torch.optim.SGD,
     {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("adam", {}, torch.optim.Adam, {}),
    ("adam", {"beta1": 0.8, "beta2": 0.95, "weight_decay": 0.1, "amsgrad": True},
     torch.optim.Adam, {"betas": (0.8, 0.95), "weight_decay": 0.1, "amsgrad": True}),
    ("adamw", {"weight_decay": 0.2}, torch.optim.AdamW, {"weight_decay": 0.2}),
    ("adagrad", {"lr_decay": 0.1, "initial": 0.5}, torch.optim.Adagrad,
     {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("rmsprop", {}, torch.optim.RMSprop, {}),
    ("rmsprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1}, torch.optim.RMSprop,
     {"momentum": 0.9, "centered": True, "weight_decay": 0.1}),
]


def run(name: str, hyper: dict[str, Any], dtype: dtypes.DType, grads: np.ndarray[Any, Any],
        p: np.ndarray[Any, Any], lr: float) -> list[np.ndarray[Any, Any]]:
    """The parameter after each gradient."""
    row = OPTIMIZERS[name]
    slots = row.slots(**hyper)
    t = TensorType(dtype, p.shape)
    scalar = TensorType(dtype, ())

    def step(p: Any, g: Any, t: Any, lr: Any, *held: Any) -> Any:
        new, state = row.update(p, g, dict(zip(slots, held, strict=True)), t, lr, **hyper)
        return new, *(state[s] for s in slots)
    graph = trace(step, [t, t, TensorType(dtypes.float64, ()), scalar, *(t for _ in slots)])
    state = [np.full(p.shape, start, dtype.numpy) for start in slots.values()]
    out = []
    for i, g in enumerate(grads):
        p, *state = evaluate_graph(graph, [p, g, np.float64(i + 1), np.array(lr, dtype.numpy),
                                           *state], Setting())
        out.append(p)
    return out


@pytest.mark.parametrize(("name", "hyper", "oracle", "given"), CASES,
                         ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)])
@pytest.mark.parametrize("dtype", [dtypes.float64, dtypes.float32], ids=lambda d: d.short)
def test_as_torch(name: str, hyper: dict[str, Any], oracle: Any, given: dict[str, Any],
                  dtype: dtypes.DType) -> None:
    rng = np.random.default_rng(0)
    p = rng.standard_normal(SHAPE).astype(dtype.numpy)
    grads = rng.standard_normal((8, *SHAPE)).astype(dtype.numpy)
    want = torch.nn.Parameter(torch.from_numpy(p.copy()))
    optimizer = oracle([want], lr=0.05, **given)
    rtol = 1e-12 if dtype is dtypes.float64 else 2e-6
    for found, g in zip(run(name, hyper, dtype, grads, p, 0.05), grads, strict=True):
        want.grad = torch.from_numpy(g)
        optimizer.step()
        np.testing.assert_allclose(found, want.detach().numpy(), rtol=rtol, atol=rtol)


def test_lion_by_its_formula() -> None:
    rng = np.random.default_rng(0)
    p, m = rng.standard_normal(SHAPE), np.zeros(SHAPE)
    grads = rng.standard_normal((5, *SHAPE))
    for found, g in zip(run("lion", {"weight_decay": 0.1}, dtypes.float64, grads, p, 0.05), grads,
                        strict=True):
        p = p * (1 - 0.05 * 0.1) - 0.05 * np.sign(0.9 * m + 0.1 * g)
        m = 0.99 * m + 0.01 * g
        np.testing.assert_allclose(found, p, rtol=1e-12)


@pytest.mark.parametrize(("value", "norm"), [(0.5, None), (None, 1.0), (0.5, 0.7), (None, 100.0)])
def test_clipping_as_torch(value: float | None, norm: float | None) -> None:
    grads = [np.random.default_rng(i).standard_normal(SHAPE) for i in range(3)]
    t = TensorType(dtypes.float64, SHAPE)
    graph = trace(lambda *gs: tuple(clipped(gs, value, norm)), [t, t, t])
    params = [torch.nn.Parameter(torch.zeros(SHAPE, dtype=torch.float64)) for _ in grads]
    for p, g in zip(params, grads, strict=True):
        p.grad = torch.from_numpy(g.copy())
    if value is not None:
        torch.nn.utils.clip_grad_value_(params, value)
    if norm is not None:
        torch.nn.utils.clip_grad_norm_(params, norm)
    for found, p in zip(evaluate_graph(graph, grads, Setting()), params, strict=True):
        assert p.grad is not None
        np.testing.assert_allclose(found, p.grad.numpy(), rtol=1e-12)
