"""torch's own samples of its operators (OpInfo), each as a module over its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

FEW = 4  # samples of an operator: the first, the last, and some between
LARGE = 20_000  # elements: samples beyond are for accelerators


class Sample(torch.nn.Module):
    """`op(*args)` with its tensors as the module's arguments, all else fixed."""

    def __init__(self, op: Any, sample: Any) -> None:
        super().__init__()
        self.op, self.before = op, sample.output_process_fn_grad
        self.leaves, self.spec = tree_flatten((sample.input, sample.args, sample.kwargs))
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]
        self.tensors = tuple(self.leaves[i].detach() for i in self.places)
        self.wanted = tuple(bool(self.leaves[i].requires_grad) for i in self.places)

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self.leaves)
        for i, t in zip(self.places, tensors, strict=True):
            leaves[i] = t
        first, args, kwargs = tree_unflatten(leaves, self.spec)
        return self.before(self.op(first, *args, **kwargs))


def operators(gradient: bool) -> list[Any]:
    """torch's table for float64 on the CPU; with `gradient` those that have one."""
    from torch.testing._internal.common_methods_invocations import op_db
    return [op for op in op_db if torch.float64 in op.supported_dtypes("cpu")
            and (op.supports_autograd or not gradient)]


def title(op: Any) -> str:
    """The name with its variant: `var_mean.unbiased`."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def samples(op: Any, gradient: bool, few: int = FEW) -> Iterator[Sample]:
    """A few of the operator's samples, spread over all of them; equal seeds give equal ones."""
    torch.manual_seed(0)
    rows = [s for s in op.sample_inputs("cpu", torch.float64, requires_grad=gradient)
            if _size(s) <= LARGE]
    picked = sorted({i * (len(rows) - 1) // max(few - 1, 1) for i in range(few)}) if rows else []
    return (Sample(op, rows[i]) for i in picked)


def _size(sample: Any) -> int:
    leaves, _ = tree_flatten((sample.input, sample.args, sample.kwargs))
    return sum(x.numel() for x in leaves if isinstance(x, torch.Tensor))
