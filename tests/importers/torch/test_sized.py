"""Sizes that data decide, against eager, in the evaluator and in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import build
from graphtool.native import runtime
from tests.importers.torch.agreement import agree, normal


def _part(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k] * 2, torch.zeros(k) + 1, x.narrow(0, 0, k).sum() / k


def _put(x: Any) -> Any:
    y = x.clone()
    y[x > 0] = torch.tanh(x[x > 0])
    return y


def _number(x: Any, n: Any) -> Any:
    """A number below 0, which is no size."""
    k = n.item()
    return x * k + (k + 3), x * (k // 2), x * (k % 3), x - max(k, -2) * abs(k)


N = torch.tensor(3)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "nonzero": (lambda x: ((x > 0).nonzero(), (x > 1).nonzero().sum()), (normal(4, 3),)),
    "mask": (lambda x: x[x > 0].sin().sum(), (normal(4, 3),)),
    "mask_of_rows": (lambda x, m: x[m > 0] @ x.t(), (normal(4, 3), normal(4))),
    "masked_select": (lambda x, m: torch.masked_select(x, m > 0), (normal(4, 3), normal(3))),
    "item": (_part, (normal(5, 2), N)),
    "item_as_number": (lambda x, n: x * n.item() + n.item(), (normal(3), torch.tensor(0.5))),
    "negative": (_number, (normal(3), torch.tensor(-7))),
    "put": (_put, (normal(5),)),
    "unique": (lambda x: torch.unique(x, return_inverse=True, return_counts=True),
               (torch.tensor([3, 1, 3, 2, 1]),)),
    "consecutive": (lambda x: torch.unique_consecutive(x, return_counts=True),
                    (torch.tensor([3, 3, 1, 1, 1, 3]),)),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_in_eager(name: str, tmp_path: Path) -> None:
    fn, xs = CASES[name]
    module = agree(fn, *xs)
    model = runtime.load(build(module, tmp_path / "b"), 1)
    wanted = torch.utils._pytree.tree_leaves(fn(*xs))
    got = model.run(dict(zip([s.name for s in model.inputs], (x.numpy() for x in xs),
                             strict=True)))
    for a, b in zip(got.values(), wanted, strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-9, atol=1e-9)
