"""The operator audio::snake of torch.library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphtool.extend import load_plugin, ops, torch_op

__version__ = "1.0"
load_plugin(Path(__file__).with_name("snake.py"))  # which has the op


@torch_op("audio::snake")
def snake(c: Any, x: Any, alpha: float = 1.0) -> Any:
    """The parameters of the operator's schema, after the context of the import."""
    return ops.snake(x, alpha=alpha)
