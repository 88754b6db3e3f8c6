"""What several functions take: arrays, paths, and the words that an option may have."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from graphtool.assume import Assumption
from graphtool.compile.options import Choosing, Kernels, Pathlike, Precision
from graphtool.kernels.choice.rules import Rules
from graphtool.target import Target

__all__ = ["Array", "Assumption", "Capture", "Kernels", "Pathlike", "Precision", "goal", "rules"]

Array = np.ndarray[Any, Any]
Capture = Literal["export", "fx"]


def rules(precision: Precision, kernels: Kernels, tuning: Pathlike | None,
          assume: Assumption = "finite") -> Rules:
    """Which kernels may be chosen. Raises UsageError GT0633, GT0634, GT0635, InputError GT0332."""
    return Choosing(precision=precision, kernels=kernels, tuning=tuning, assume=assume).rules


def goal(name: str, machine: str | None = None) -> Target:
    """The target called `name`, with the figures of a machine; `cpu` is this machine. Raises
    UsageError GT2101, GT2103, InputError GT2104."""
    return Choosing(target=name, machine=machine).goal
