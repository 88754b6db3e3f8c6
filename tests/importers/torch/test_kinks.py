"""Gradients where a function has a kink or a hole: what torch gives there, or 0 for its NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from graphtool import transforms
from graphtool.importers.torch import import_torch
from tests.evaluating import run
from tests.importers.torch.agreement import Function

INF = float("inf")
ORIGIN = [-1.0, -0.5, -0.0, 0.0, 1e-3, 0.5, 2.0]
A, B = [0, 0, 0, 0, 0, 1, 1, -2, 3.0], [0, 2, -1, -0.5, 0.5, 2, 0.5, 1, 4.0]


@pytest.mark.parametrize(("function", "points"), [
    (torch.sinc, [ORIGIN]), (torch.xlogy, [A, B]), (torch.special.xlog1py, [A, B]),
    (torch.nextafter, [A, B]),
    (lambda x: torch.xlogy(x, 2.0), [A]), (lambda y: torch.xlogy(0.0, y), [B]),
    (F.hardtanh, [[*ORIGIN, 1, -1.5]]), (lambda x: F.hardtanh(x, -0.5, 2.0), [ORIGIN]),
    (F.relu6, [[-1, 0, 1, 6, 7.0]]), (lambda x: x.clamp(-0.5, 2.0), [ORIGIN])])
def test_gradients_as_torch(function: Callable[..., Any], points: list[list[float]]) -> None:
    tensors = [torch.tensor(p, dtype=torch.float64) for p in points]
    graph = import_torch(Function(function), tuple(tensors)).graph
    joint = transforms.vjp(graph, list(graph.inputs))
    arrays = [t.numpy() for t in tensors]
    y, *got = run(joint, [*arrays, np.ones_like(arrays[0])])
    out = function(*(t.requires_grad_() for t in tensors))
    np.testing.assert_allclose(y, out.detach().numpy(), rtol=1e-9)
    for a, b in zip(got, torch.autograd.grad(out.sum(), tensors), strict=True):
        np.testing.assert_allclose(a, np.nan_to_num(b.numpy(), nan=0.0, posinf=INF, neginf=-INF),
                                   rtol=1e-9, atol=1e-9)
