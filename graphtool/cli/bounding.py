"""bound: how far the results of a graph may be from those of real arithmetic."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from graphtool.cli import options, sources, terminal
from graphtool.errors import UsageError

Range = Annotated[list[str] | None, typer.Option(
    "--range", metavar="NAME=LOW:HIGH", help="The numbers that an input may have; by default from "
    "-1 to 1.")]
Samples = Annotated[int, typer.Option(
    "--samples", metavar="COUNT", min=0, help="Also run so many inputs of these ranges in float32 "
    "and in float64, and compare their difference with the bound.")]


def bound(graph: options.Graph, inputs: options.Inputs = None, range_: Range = None,
          samples: Samples = 0, seed: options.Seed = 0, dim: options.Dim = None,
          json: options.Json = False, capture: options.Capture = None) -> int:
    """Bound the error of each output against real arithmetic.

    Inputs are any numbers of their ranges, or those of --inputs exactly. The bound holds for the
    evaluator and for builds with --precision strict; rounding is followed through every op, in any
    order of sums. The exit code is 1 if an error of --samples is larger than its bound."""
    from graphtool.io import npz
    from graphtool.report.table import table
    from graphtool.verify.bounding import COLUMNS
    from graphtool.verify.bounding import bound as bounded
    module = sources.load(graph, sources.captured(capture))
    report = bounded(module, dict(map(_range, range_ or ())),
                     npz.load(inputs) if inputs is not None else {}, samples, seed,
                     sources.sizes(dim, module.symbols))
    if not json:
        terminal.table(table(COLUMNS, report.outputs))
    outside = sum(row.outside for row in report.outputs)
    terminal.report(report, json, [f"{outside} elements outside of their bounds in {samples} runs"]
                    if samples else [])
    return 0 if report.held else 1


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, _, ends = text.rpartition("=")
    numbers = re.fullmatch(r"([-+\d.e]+):([-+\d.e]+)", ends)
    try:
        low, high = map(float, numbers.groups() if numbers else ())
    except ValueError:
        low, high = 1.0, 0.0
    if not name or not low <= high:
        raise UsageError("GT3174", f"--range {text!r} is not NAME=LOW:HIGH",
                         hint="as in --range image=0:1")
    return name, (low, high)
