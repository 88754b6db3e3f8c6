"""Graphs for people and for other tools: Graphviz dot, mermaid and SVG pictures, and ONNX."""

from __future__ import annotations

from collections.abc import Callable

from graphtool.exporters import picture, svg
from graphtool.exporters.picture import Picture

FORMATS: dict[str, Callable[[Picture], str]] = {
    "dot": picture.dot,
    "mermaid": picture.mermaid,
    "svg": svg.svg,
}
