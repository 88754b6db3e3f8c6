"""compare-captures: what torch.fx, torch.export and ONNX each make of one model."""

from __future__ import annotations

from typing import Annotated

import typer

from graphtool.cli import options, terminal
from graphtool.errors import UsageError


def compare_captures(
        source: Annotated[str, typer.Argument(
            metavar="SOURCE", help="FILE.py:NAME or PACKAGE.MODULE:NAME. The Python code is run.")],
        inputs: Annotated[list[str] | None, typer.Option(
            "--inputs", metavar="SPEC", help="The name and type of an input, as in "
                "x:f32[1,3,224,224]. May "
            "be repeated.")
        ] = None, rtol: options.Rtol = 1e-4, format: options.Format = None,
        json: options.Json = False) -> int:
    """Capture a torch model by fx, export and ONNX, and compare the three graphs.

    Each graph is evaluated and compared with torch. The exit code is 1 if one differs, and 4 if the
    model could not be captured at all."""
    from graphtool.errors import GraphtoolError
    from graphtool.importers import Importer, what
    from graphtool.importers.torch import need_torch
    from graphtool.report.captures import captures_lines, captures_outcome, compare
    form = terminal.chosen_format(format, json)
    kind = what(source)
    if not isinstance(kind, Importer) or "fx" not in kind.captures:
        raise UsageError("GT3099", f"cannot capture {source!r}: it is {kind.title}",
                         hint=f"name what is in it: {source}:NAME, an nn.Module" if source.endswith(
                             ".py") else "compare-captures takes Python source that makes an "
                         "nn.Module: FILE.py:NAME")
    need_torch()
    from graphtool.importers.torch.driver.reference import captures, reference
    specs = inputs or ()
    captured, arrays = captures(source, specs)
    graphs = {way: c.graph for way, c in captured.items()}
    ops = {way: c.own for way, c in captured.items()}
    result = compare(source, graphs, ops, arrays, reference(source, specs)(arrays, {})[0], rtol)
    terminal.tell(result, form, lambda: captures_lines(result),
                 lambda: captures_outcome(result, rtol))
    if all(isinstance(x, GraphtoolError) for x in graphs.values()):
        return 4
    return 0 if result.agree else 1
