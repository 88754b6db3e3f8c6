"""The operator Snake of the ONNX domain com.example.audio: how it is read, and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphtool.extend import Node, load_plugin, onnx_form, onnx_op, ops

__version__ = "1.0"
DOMAIN = "com.example.audio"
load_plugin(Path(__file__).with_name("snake.py"))  # which has the op


@onnx_op("Snake", domain=DOMAIN)
def snake(x: Any, *, alpha: float = 1.0) -> Any:
    """Inputs are positional, attributes keyword-only, by ONNX's names."""
    return ops.snake(x, alpha=alpha)


@onnx_form("snake")
def snake_form(w: Any, node: Node, x: Any) -> Any:
    """`w` writes a node, and gives the name of its result."""
    return w("Snake", x, domain=DOMAIN, alpha=node.attrs["alpha"])
