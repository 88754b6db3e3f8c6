"""The operator Snake of the ONNX domain com.example.audio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphtool.extend import load_plugin, onnx_op, ops

__version__ = "1.0"
load_plugin(Path(__file__).with_name("snake.py"))  # which has the op


@onnx_op("Snake", domain="com.example.audio")
def snake(x: Any, *, alpha: float = 1.0) -> Any:
    """Inputs are positional, attributes keyword-only, by ONNX's names."""
    return ops.snake(x, alpha=alpha)
