"""Gradients where a function has a kink or a hole: what torch gives there, or 0 for its NaN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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
    (F.softshrink, [[*ORIGIN, -2.0]]),
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

TIES = [[1.0, 3, 3, 2], [3, 1, 3, 3], [2, 2, 2, 2]]


@pytest.mark.parametrize("function", [
    lambda x: x.amax(1), lambda x: x.amin(1), torch.max, torch.min, lambda x: x.amax((0, 1)),
    lambda x: x.max(1).values, lambda x: x.min(1).values, lambda x: x.max(0, keepdim=True).values,
    lambda x: x.median(1).values, torch.median, lambda x: x.nanmedian(1).values,
    lambda x: x.mode(1).values, lambda x: x.cummax(1).values, lambda x: x.cummin(1).values,
    lambda x: torch.maximum(x, torch.full_like(x, 3)),
    lambda x: torch.fmax(x, torch.full_like(x, 3)), lambda x: torch.fmin(x, torch.full_like(x, 3)),
    lambda x: F.max_pool1d(x[None], 2), lambda x: F.max_pool2d(x[None], 2),
    lambda x: F.adaptive_max_pool1d(x[None], 3), lambda x: F.adaptive_max_pool2d(x[None], (2, 3)),
    lambda x: F.adaptive_max_pool2d(x[None], (2, 3), return_indices=True)[0]])
def test_equal_elements_share_or_give_the_gradient_to_one(function: Callable[..., Any]) -> None:
    x = torch.tensor(TIES, dtype=torch.float64)
    graph = import_torch(Function(function), (x,)).graph
    weights = np.arange(1.0, 1 + int(np.prod(graph.outputs[0].type.shape)))
    cotangent = weights.reshape(graph.outputs[0].type.shape)
    y, got = run(transforms.vjp(graph, [graph.inputs[0]]), [x.numpy(), cotangent])
    out = function(x.requires_grad_())
    want, = torch.autograd.grad(out, x, torch.from_numpy(cotangent))
    np.testing.assert_array_equal(y, out.detach().numpy())
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-12)


# ---- the table of the documentation ------------------------------------------------------------

PAGE = Path(__file__).parents[3] / "docs/explanation/operations.md"
SCOPE = {**vars(torch.special), **vars(torch), **vars(F), "inf": INF, "nan": float("nan")}


def rows() -> list[Any]:
    """(expression, operands, our gradients, torch's gradients) of each row of the page."""
    table = PAGE.read_text().split("| case |")[1].split("\n\n")[0].splitlines()[2:]
    found = []
    for line in table:
        _case, code, at, gives = (c.strip() for c in line.strip("|").split(" | "))
        ours, _, torchs = gives.partition(" (torch: ")
        xs = [np.array(x, np.float64) for x in eval(f"dict({at})", SCOPE).values()]
        want = [[np.array(g, np.float64) for g in eval(f"[{text}]", SCOPE)]
                for text in (ours, torchs.strip(")") or ours)]
        found.append(pytest.param(code.strip("`"), xs, *want, id=code.strip("`")))
    return found


@pytest.mark.parametrize(("expression", "xs", "ours", "torchs"), rows())
def test_the_documented_conventions(expression: str, xs: list[Any], ours: list[Any],
                                    torchs: list[Any]) -> None:
    """Each row of the page, evaluated; an operand that the row gives no gradient for has none."""
    function = eval(f"lambda x, y=None: {expression}", SCOPE)
    tensors = [torch.tensor(x) for x in xs]
    out = function(*(t.requires_grad_() for t in tensors))
    for t, want in zip(torch.autograd.grad(out.sum(), tensors), torchs, strict=True):
        np.testing.assert_allclose(t.numpy(), np.broadcast_to(want, t.shape), rtol=1e-6)
    graph = import_torch(Function(function), tuple(t.detach() for t in tensors)).graph
    _, *got = run(transforms.vjp(graph, list(graph.inputs)), [*xs, np.ones(tuple(out.shape))])
    for g, want in zip(got, ours, strict=True):
        np.testing.assert_allclose(g, np.broadcast_to(want, g.shape), rtol=1e-6)
