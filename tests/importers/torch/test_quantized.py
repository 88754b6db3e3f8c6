"""Graphs as pt2e leaves them, against eager, in the evaluator and in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (declares the ops)

from graphtool import build
from graphtool.native import runtime
from tests.importers.torch.agreement import agree, normal

Q = torch.ops.quantized_decomposed
X, W = normal(3, 4, dtype=torch.float32), normal(5, 4, dtype=torch.float32)
SCALES, ZEROS = torch.rand(5) * 0.1 + 0.01, torch.zeros(5, dtype=torch.int64)


def _static(x: Any) -> Any:
    q = Q.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
    return q, Q.dequantize_per_tensor(q, 0.05, 3, -128, 127, torch.int8)


def _dynamic(x: Any) -> Any:
    s, z = Q.choose_qparams.tensor(x, -128, 127, 1e-7, torch.int8)
    q = Q.quantize_per_tensor.tensor(x, s, z, -128, 127, torch.int8)
    return Q.dequantize_per_tensor.tensor(q, s, z, -128, 127, torch.int8)


def _linear(x: Any, w: Any) -> Any:
    q = Q.quantize_per_channel(w, SCALES, ZEROS, 0, -127, 127, torch.int8)
    return torch.nn.functional.linear(
        _static(x)[1], Q.dequantize_per_channel(q, SCALES, ZEROS, 0, -127, 127, torch.int8))


def _rows(x: Any, w: Any) -> Any:
    """What torchao makes of a linear layer whose activations are quantised by rows."""
    scale = x.abs().amax(1, keepdim=True) / 127
    q = torch.round(x / scale).clamp(-127, 127).to(torch.int8)
    p = torch.round(w * 20).clamp(-127, 127).to(torch.int8)
    return torch._int_mm(q, p.t()).to(torch.float32) * scale * 0.05


WIDE, BACK = normal(24, 32, dtype=torch.float32), normal(40, 32, dtype=torch.float32)


@pytest.mark.parametrize(("fn", "xs"), [
    (_static, (X,)), (_dynamic, (X,)), (_linear, (X, W)), (_rows, (WIDE, BACK))],
    ids=["static", "dynamic", "per channel", "rows"])
def test_it_is_as_in_eager(fn: Callable[..., Any], xs: tuple[Any, ...], tmp_path: Path) -> None:
    module = agree(fn, *xs, tol=1e-5)
    model = runtime.load(build(module, tmp_path / "b"), 1)
    got = model.run(dict(zip([s.name for s in model.inputs], (x.numpy() for x in xs),
                             strict=True)))
    for a, b in zip(got.values(), torch.utils._pytree.tree_leaves(fn(*xs)), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-5)
