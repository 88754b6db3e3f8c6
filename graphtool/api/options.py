"""What several functions take: arrays, paths, and the words that an option may have."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphtool.ir.facets import Assumption
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.kernels.choice.tuning import load as load_tuning
from graphtool.target import Target, detect, named, on_machine

Array = np.ndarray[Any, Any]
Pathlike = str | PathLike[str]
Precision = Literal["strict", "default", "fast"]
Kernels = Literal["generated", "blas", "auto"]
WeightsIn = Literal["file", "embed", "c"]
Capture = Literal["export", "fx"]


def rules(precision: Precision, kernels: Kernels, tuning: Pathlike | None,
          assume: Assumption = "finite") -> Rules:
    """Which kernels may be chosen. Raises UsageError GT0633, GT0634, GT0635, InputError GT0332."""
    known = load_tuning(Path(tuning)) if tuning is not None else None
    return rules_of(precision, kernels, known, assume)


def goal(name: str, machine: str | None = None) -> Target:
    """The target called `name`, with the figures of a machine; `cpu` is this machine. Raises
    UsageError GT2101, GT2103, InputError GT2104."""
    found = detect() if name == "cpu" else named(name)
    return found if machine is None else on_machine(found, machine)
