"""A pure function of tensors as a module: what has no parameters of its own is captured alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import nn


class Function(nn.Module):  # type: ignore[misc]
    """A module whose `forward` is a function; it has no weights: they are arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        object.__setattr__(self, "forward", function)


def takes_tensors(made: Callable[..., Any]) -> bool:
    """Whether a callable is such a function. One that can be called without arguments makes a
    model instead."""
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)
