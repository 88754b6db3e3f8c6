"""Graphs for people and for other tools: Graphviz dot, mermaid and SVG pictures, and ONNX."""

from __future__ import annotations

from collections.abc import Callable

from graphtool.exporters import dot, mermaid, svg
from graphtool.exporters.picture import Picture

FORMATS: dict[str, Callable[[Picture], str]] = {
    "dot": dot.dot,
    "mermaid": mermaid.mermaid,
    "svg": svg.svg,
}
