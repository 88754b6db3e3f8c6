"""Compares a function over our ops with one over torch's: outputs and gradients, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from graphtool import transforms
from graphtool.dtypes import of_numpy
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import trace
from tests.closeness import assert_close
from tests.evaluating import run


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def agree(ours: Callable[..., Any], theirs: Callable[..., Any], arrays: Sequence[Any],
          tol: float = 1e-10, grads: bool = True) -> None:
    graph = trace(ours, [TensorType(of_numpy(x.dtype), x.shape) for x in arrays])
    tensors = [torch.from_numpy(np.array(x)).requires_grad_(grads and x.dtype == np.float64)
               for x in arrays]
    want = theirs(*tensors)
    want = tuple(want) if isinstance(want, (tuple, list)) else (want,)
    for a, b in zip(run(graph, arrays), want, strict=True):
        assert_close(a, b.detach().numpy(), arrays, tolerance=tol)
    if grads:
        _gradients_agree(graph, arrays, tensors, want, tol)


def _gradients_agree(graph: Any, arrays: Sequence[Any], tensors: list[Any],
                     want: tuple[Any, ...], tol: float) -> None:
    floats = [i for i, v in enumerate(graph.outputs) if v.type.dtype.is_float]
    cotangents = [normal(*graph.outputs[i].type.shape, seed=7) for i in floats]
    wrt = [i for i, t in enumerate(tensors) if t.requires_grad]
    joint = transforms.vjp(graph, [graph.inputs[i] for i in wrt])
    got = run(joint, [*arrays, *cotangents])[len(graph.outputs):]
    expected = torch.autograd.grad([want[i] for i in floats], [tensors[i] for i in wrt],
                                   [torch.from_numpy(np.array(c)) for c in cotangents],
                                   allow_unused=True)
    for a, b, t in zip(got, expected, [tensors[i] for i in wrt], strict=True):
        b = torch.zeros_like(t) if b is None else b
        assert_close(a, b.numpy(), [*arrays, *cotangents], tolerance=tol)
