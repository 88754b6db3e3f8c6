"""Batch norms whose running statistics are plain averages (`momentum=None`), while captured.

torch reads the number of batches as a Python number, which export cannot trace; here it stays
a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm

_forward = _BatchNorm.forward


@contextmanager
def averaging() -> Iterator[None]:
    """Within the block, such a norm updates its statistics by 1 / (number of batches), a tensor."""
    _BatchNorm.forward = _averaged
    try:
        yield
    finally:
        _BatchNorm.forward = _forward


def _averaged(norm: _BatchNorm, input: torch.Tensor) -> torch.Tensor:
    if norm.momentum is not None or not norm.training or norm.running_mean is None:
        found: torch.Tensor = _forward(norm, input)
        return found
    norm._check_input_dim(input)
    norm.num_batches_tracked.add_(1)
    with torch.no_grad():
        var, mean = torch.var_mean(input, [0, *range(2, input.dim())], correction=1)
        share = 1.0 / norm.num_batches_tracked.to(mean.dtype)
        norm.running_mean.copy_(norm.running_mean + (mean - norm.running_mean) * share)
        norm.running_var.copy_(norm.running_var + (var - norm.running_var) * share)
    return F.batch_norm(input, None, None, norm.weight, norm.bias, True, 0.0, norm.eps)
