"""What torch._check promises of numbers in tensors holds in the evaluator and in C, or is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import build, import_model, interp
from graphtool.errors import InputError
from graphtool.native import runtime
from tests.importers.torch.agreement import normal


def _first(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k] * 2


def _row(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= 0)
    torch._check(k < x.shape[0])
    return x[k] * 2


def _between(x: Any, n: Any) -> Any:
    a, b = n[0].item(), n[1].item()
    torch._check(a >= 0)
    torch._check(b >= a)
    torch._check(b <= x.shape[0])
    return x[a:b].sum()


def _pairs(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= 8)
    torch._check(k % 2 == 0)
    return torch.zeros(k).reshape(-1, 2) + x.sum()


def _signed(x: Any, n: Any) -> Any:
    k = n.item()
    torch._check(k >= -8)
    torch._check(k <= 8)
    return x * k


def _found(x: Any, n: Any) -> Any:
    y = x[x[:, 0] > n]
    torch._check(y.shape[0] <= 2)
    return y * 2


X = normal(5, 2)
FEW = float(X[:, 0].sort(descending=True).values[2])
CASES: dict[str, tuple[Callable[..., Any], list[Any], list[Any]]] = {  # kept, broken
    "size": (_first, [3, 0, 5], [6, -1]), "row": (_row, [2, 4], [5, -1]),
    "two": (_between, [[1, 3], [2, 2]], [[3, 1], [2, 7], [-1, 2]]),
    "even": (_pairs, [4, 8], [3, 10]), "below 0": (_signed, [-8, 8], [9, -9]),
    "found": (_found, [FEW, 1e9], [-1e9])}


@pytest.mark.parametrize("dynamic", [None, {"rows@x.0": (3, 50)}], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_promises(name: str, dynamic: Any, tmp_path: Path) -> None:
    fn, good, bad = CASES[name]

    class Net(torch.nn.Module):
        def forward(self, x: Any, n: Any) -> Any:
            return fn(x, n)
    module = import_model(Net(), (X, torch.tensor(good[0])), dynamic=dynamic)
    model = runtime.load(build(module, tmp_path / "b"), 1)
    kind = torch.tensor(good[0]).dtype
    for value in good:
        n = torch.tensor(value, dtype=kind)
        given = {"x": X.numpy(), "n": n.numpy()}
        for got in (interp.run(module, given), model.run(given)):
            np.testing.assert_allclose(next(iter(got.values())), fn(X, n).numpy(), rtol=1e-6)
    for value in bad:
        given = {"x": X.numpy(), "n": torch.tensor(value, dtype=kind).numpy()}
        with pytest.raises(InputError, match=r"GT05[01]5"):
            interp.run(module, given)
        with pytest.raises(InputError, match=r"GT2221.*\n.*torch\._check promised"):
            model.run(given)
