"""One graph in several languages: what `show --as` prints besides torch.fx's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from graphtool import passes
from graphtool.analysis.composites import notes
from graphtool.emit.c import emit
from graphtool.exporters.functional import functional
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.ir.graph import Module
from graphtool.ir.listing import ListingStyle, listing
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.report.artifacts import kernel_lines
from graphtool.target import detect

NAME = "model"  # of the C functions


def _listing(module: Module) -> Iterator[str]:
    return listing(module, ListingStyle(notes=notes(module.graph)))


def _stablehlo(module: Module) -> Iterator[str]:
    return iter(stablehlo_of(module, elide=True).splitlines())


def _lowered(module: Module) -> Program:
    """The program that `build` compiles: without fusion groups, the passes run first."""
    return lower(module if module.graph.groups else passes.run(module), detect(), name=NAME)


def _loops(module: Module) -> Iterator[str]:
    return islice(kernel_lines(_lowered(module)), 1, None)  # without the blank line between two


def _c(module: Module) -> Iterator[str]:
    """The files of this graph, without the headers that all share."""
    for file, text in emit(_lowered(module)).items():
        if file.startswith(NAME) and file.endswith(".c"):
            yield f"/* ---- {file} ---- */"
            yield from text.splitlines()


TEXTS: dict[str, Callable[[Module], Iterator[str]]] = {
    "listing": _listing,  # one typed value on a line
    "functional": functional,
    "stablehlo": _stablehlo,
    "loops": _loops,
    "c": _c,
}
