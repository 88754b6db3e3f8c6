"""Batch norms whose running statistics are plain averages (`momentum=None`), while captured.

torch reads the number of batches as a Python number, which export cannot trace; here it stays
a tensor. In inference torch hands on 0 for the momentum, which is another one; here it is AVERAGE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from graphtool.importers.torch.families.norm import AVERAGE

_forward = _BatchNorm.forward


@contextmanager
def averaging() -> Iterator[None]:
    """Within the block, such a norm updates its statistics by 1 / (number of batches), a tensor;
    or says AVERAGE for its momentum."""
    _BatchNorm.forward = _averaged
    try:
        yield
    finally:
        _BatchNorm.forward = _forward


def _averaged(norm: _BatchNorm, input: torch.Tensor) -> torch.Tensor:
    if norm.momentum is not None or norm.running_mean is None:
        found: torch.Tensor = _forward(norm, input)
        return found
    if not norm.training:
        norm._check_input_dim(input)
        return F.batch_norm(input, norm.running_mean, norm.running_var, norm.weight, norm.bias,
                            False, AVERAGE, norm.eps)
    norm._check_input_dim(input)
    norm.num_batches_tracked.add_(1)
    # with the momentum 1 the statistics of the batch, as those of any other norm
    mean, var = torch.zeros_like(norm.running_mean), torch.zeros_like(norm.running_var)
    y = F.batch_norm(input, mean, var, norm.weight, norm.bias, True, 1.0, norm.eps)
    with torch.no_grad():
        share = 1.0 / norm.num_batches_tracked.to(mean.dtype)
        norm.running_mean.copy_(norm.running_mean + (mean - norm.running_mean) * share)
        norm.running_var.copy_(norm.running_var + (var - norm.running_var) * share)
    return y
