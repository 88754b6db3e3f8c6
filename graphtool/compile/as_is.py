"""Graphs and programs compiled as they are: for those who have run the passes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphtool.compile.build import build as build_unit
from graphtool.compile.options import Build
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module
from graphtool.loops.program import Program


def build(given: Module | Program, out: Path, *, name: str = "model",
          store: Mapping[str, Weight] | None = None, **options: Any) -> Path:
    """Compile a graph, or a program whose weights are in `store`, into a directory; returns it.

    `options` are those of `Build`. The functions of a training graph go through the passes, since
    no others can have run over them. Raises as `compile.build.build` does.
    """
    how = Build(as_is=True, **options)
    source = Source(given) if isinstance(given, Module) else Source(
        program=given, store=store or {})
    return build_unit(unit_of(source, how, name), out, how).path
