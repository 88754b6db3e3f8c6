"""torch's own sample inputs (OpInfo) as batches: one module that runs many samples of one op.

A batch is exported, imported and built at once, so that the cost of each is paid once.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
LARGEST = 20_000  # elements of one sample's operands


@dataclass(frozen=True)
class Sample:
    """One call: `leaves` are its operands and arguments, the tensors among them its inputs."""

    leaves: tuple[Any, ...]
    tree: Any
    dtype: str = ""

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [x for x in self.leaves if isinstance(x, torch.Tensor)]

    def call(self, op: Any, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """The tensors among the results, complex ones by their parts, given other tensors for the
        sample's own."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, torch.Tensor) else x for x in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y
                for y in pytree.tree_leaves(op(*args, **kwargs)) if isinstance(y, torch.Tensor)]


class Batch(nn.Module):
    """Calls an op on every sample in turn; takes all their tensors, returns a list for each."""

    def __init__(self, op: Any, samples: Sequence[Sample]) -> None:
        super().__init__()
        self.op, self.samples = op, list(samples)

    @property
    def inputs(self) -> tuple[torch.Tensor, ...]:
        return tuple(t for s in self.samples for t in s.tensors)

    def forward(self, *tensors: torch.Tensor) -> list[list[Any]]:
        given, results = iter(tensors), []
        for s in self.samples:
            results.append(s.call(self.op, [next(given) for _ in s.tensors]))
        return results


def infos() -> dict[str, Any]:
    """Every op of torch's database that says what it takes, under its name and variant's name."""
    return {f"{i.name}.{i.variant_test_name}" if i.variant_test_name else i.name: i for i in op_db}


def samples(info: Any, dtype: torch.dtype, limit: int) -> list[Sample]:
    """At most `limit` samples, spread over all; none where the op does not take the type."""
    if dtype not in info.dtypes:
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [s for s in _all(info, dtype)
                 if sum(t.numel() for t in s.tensors) <= LARGEST]
    step = max(len(found) / limit, 1)
    return [found[int(k * step)] for k in range(min(limit, len(found)))]


def _all(info: Any, dtype: torch.dtype) -> Iterator[Sample]:
    for s in info.sample_inputs("cpu", dtype, requires_grad=False):
        leaves, tree = pytree.tree_flatten(((s.input, *s.args), s.kwargs))
        yield Sample(tuple(leaves), tree, str(dtype).removeprefix("torch."))
