"""Runs a torch source by torch itself, on numpy arrays: what an import is held against."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils import _pytree as pytree

from graphtool.errors import InputError
from graphtool.importers.torch.driver.live import DTYPES, array
from graphtool.importers.torch.driver.source import load

Array = np.ndarray[Any, Any]


Run = Callable[[Sequence[Array], Mapping[str, Array]], tuple[list[Array], dict[str, Array]]]


def reference(source: str, specs: Sequence[str] = (),
              changed: Mapping[str, int | None] | None = None) -> Run:
    """A function from the inputs' arrays, in order, and old state by torch's name, to the outputs'
    arrays, in order, and the new state of the names in `changed`.

    These are inputs that the model writes to, with their place, and buffers, with None; a buffer
    that is not given has the model's own value, and one that the model lacks is left out.
    Each call runs a fresh copy of the model. Raises InputError GT1116 where torch fails on the
    arrays.
    """
    made = load(source, specs)
    model = made.model if isinstance(made.model, nn.Module) else made.model.module()
    leaves, tree = pytree.tree_flatten((made.args, made.kwargs))

    def run(arrays: Sequence[Array], state: Mapping[str, Array]
            ) -> tuple[list[Array], dict[str, Array]]:
        given = iter(arrays)
        filled = [_tensor(next(given), x) if isinstance(x, torch.Tensor) else x for x in leaves]
        inputs = [x for x in filled if isinstance(x, torch.Tensor)]
        own = copy.deepcopy(model)
        try:
            with torch.no_grad(), redirect_stdout(sys.stderr):  # stdout is for the verb's result
                for name, old in state.items():
                    if (x := _attribute(own, name)) is not None:
                        x.copy_(_tensor(old, x))
                args, kwargs = pytree.tree_unflatten(filled, tree)
                outputs = own(*args, **kwargs)
        except Exception as error:  # whatever the model's code raises
            raise InputError("GT1116", f"torch fails on these inputs: {error}",
                             where=source) from error
        after = {name: _attribute(own, name) if at is None else inputs[at]
                 for name, at in (changed or {}).items()}
        return [array(x) if isinstance(x, torch.Tensor) else np.asarray(x)
                for x in pytree.tree_leaves(outputs) if x is not None], {
                    name: array(x) for name, x in after.items() if x is not None}
    return run


def _attribute(model: nn.Module, name: str) -> torch.Tensor | None:
    """The tensor of a name such as `blocks.0.bn.mean`, if the model has one."""
    found: Any = model
    for word in name.split("."):
        found = getattr(found, word, None)
    return found if isinstance(found, torch.Tensor) and found.dtype in DTYPES else None


def _tensor(x: Array, like: torch.Tensor) -> torch.Tensor:
    """The array as a tensor of the sample's type; numpy's bfloat16 and its kin go through bits."""
    data = np.array(x)
    if data.dtype.isbuiltin == 1:
        return torch.from_numpy(data).to(like.dtype)
    return torch.from_numpy(data.astype(np.float32)).to(like.dtype)
