"""Runs a torch source by torch itself, on numpy arrays: what an import is held against."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from graphtool.errors import InputError
from graphtool.importers.torch.driver.live import array
from graphtool.importers.torch.driver.source import load

Array = np.ndarray[Any, Any]


def reference(source: str, specs: Sequence[str] = ()) -> Callable[[Sequence[Array]], list[Array]]:
    """A function from the inputs' arrays, in order, to the outputs', in order.

    Each call runs a fresh copy of the model, so that its state is that of the import.
    Raises InputError GT1116 where torch fails on the arrays.
    """
    made = load(source, specs)
    model = made.model if isinstance(made.model, nn.Module) else made.model.module()
    leaves, tree = pytree.tree_flatten((made.args, made.kwargs))

    def run(arrays: Sequence[Array]) -> list[Array]:
        given = iter(arrays)
        filled = [_tensor(next(given), x) if isinstance(x, torch.Tensor) else x for x in leaves]
        try:
            with torch.no_grad(), redirect_stdout(sys.stderr):  # stdout is for the verb's result
                args, kwargs = pytree.tree_unflatten(filled, tree)
                outputs = copy.deepcopy(model)(*args, **kwargs)
        except Exception as error:  # whatever the model's code raises
            raise InputError("GT1116", f"torch fails on these inputs: {error}",
                             where=source) from error
        return [array(x) if isinstance(x, torch.Tensor) else np.asarray(x)
                for x in pytree.tree_leaves(outputs) if x is not None]
    return run


def _tensor(x: Array, like: torch.Tensor) -> torch.Tensor:
    """The array as a tensor of the sample's type; numpy's bfloat16 and its kin go through bits."""
    data = np.array(x)
    if data.dtype.isbuiltin == 1:
        return torch.from_numpy(data).to(like.dtype)
    return torch.from_numpy(data.astype(np.float32)).to(like.dtype)
