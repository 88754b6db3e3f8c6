"""Imports a small torch function or module, and compares its evaluation with torch eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from graphtool import interp
from graphtool.importers.torch import import_torch
from graphtool.ir.graph import Module
from graphtool.ir.verify import verify_module
from tests.closeness import assert_close


class Function(nn.Module):
    """A plain function of tensors as a module."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *xs: torch.Tensor) -> Any:
        return self.fn(*xs)


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> torch.Tensor:
    x = torch.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape))
    return (x * 3).to(dtype) if not dtype.is_floating_point else x.to(dtype)


def evaluated(module: Module, args: tuple[torch.Tensor, ...]) -> list[np.ndarray[Any, Any]]:
    names = [v.hint for v in module.graph.inputs]
    return list(interp.run(module, {n: x.numpy() for n, x in zip(names, args, strict=True)}
                           ).values())


def agree(model: Callable[..., Any], *args: torch.Tensor, tol: float = 1e-9,
          **settings: Any) -> Module:
    """Asserts equal shapes, element types and values; returns the imported module."""
    model = model if isinstance(model, nn.Module) else Function(model)
    imported = import_torch(model, args, **settings)
    verify_module(imported)
    with torch.no_grad():
        wanted = [t for t in pytree.tree_leaves(model(*(a.clone() for a in args)))
                  if isinstance(t, torch.Tensor)]
    for got, want in zip(evaluated(imported, args), wanted, strict=True):
        assert (got.shape, str(got.dtype)) == (tuple(want.shape), str(want.dtype)[6:])
        assert_close(got, want.numpy(), [a.numpy() for a in args], tolerance=tol)
    return imported
