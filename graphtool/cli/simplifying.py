"""simplify: makes an ONNX model smaller; the result computes the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.compile.options import Importing
from graphtool.compile.source import is_stdin
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.report.table import Table

# what shortens a model for any runtime: nothing that is for a processor or for our kernels
PASSES = "dce,simplify,fold,freeze,simplify,fold,cse,dce"


def simplify(model: Annotated[str, typer.Argument(
        metavar="IN", help="The model, in ONNX or another format that `import` takes; - for "
        "stdin.")],
             to: Annotated[Path, typer.Argument(metavar="OUT.onnx", help="The file to write.")],
             how: Importing,
             check: Annotated[bool, typer.Option(
                 "--check/--no-check", help="Whether to run both models and compare them.")] = True,
             external_data: options.ExternalData = False,
             seed: options.Seed = 0, dim: options.Dim = None, atol: options.Atol = None,
             rtol: options.Rtol = 1e-4) -> int:
    """Simplify an ONNX model: constants are folded, batch norms merged, repeated nodes joined.

    Open dims stay open. Both models are run on random inputs, by onnxruntime where it is installed.
    The exit code is 1 if they differ."""
    from graphtool import passes
    from graphtool.exporters.onnx import export_onnx, model_of
    from graphtool.importers import kinds
    from graphtool.importers.onnx.driver.reader import read_model
    from graphtool.importers.record import IMPORTERS
    if str(to) == "-" or to.suffix != ".onnx":
        raise UsageError("GT3017", f"{to} is no name of an ONNX file",
                         hint="graphtool simplify in.onnx out.onnx")
    if to.exists() and Path(model).exists() and to.samefile(model):
        raise UsageError("GT3017", f"{to} is the model itself, which it is compared with",
                         hint="give OUT another name")
    model = sources.spooled(model)
    before = sources.load(model, how)
    after = passes.run(before, passes.calls(PASSES))
    saving.told_rules(after, "ONNX model")
    export_onnx(after, to, external=external_data)
    given = read_model(Path(model)) if kinds.what(model) is IMPORTERS["onnx"] else model_of(before)
    terminal.table(_counts(*(
        Counter(n.op_type for n in m.graph.node) for m in (given, read_model(to)))))
    if not check:
        return 0
    from graphtool.verify import sides
    from graphtool.verify.check import check as compare
    from graphtool.verify.check import check_lines
    pair = (sides.of_module(before), sides.open_side(str(to))) if is_stdin(model) else (
        sides.open_pair(model, str(to), None, (sources.capture_of(model, how.capture), "")))
    arrays = sides.made_up((model, str(to)), pair, seed, sources.sizes(dim))
    check_ = compare(*pair, arrays, atol, rtol, False)
    check_.a, check_.b = Path(model).name, to.name
    terminal.note(*check_lines(check_))
    return 0 if check_.ok else 1


def _counts(before: Counter[str], after: Counter[str]) -> Table:
    """The number of nodes of each op that differs, and of all."""
    from graphtool.report.table import Table
    return Table(("op", "before", "after"), [
        *((op, before[op], after[op]) for op in sorted(before | after)
          if before[op] != after[op]), ("all", before.total(), after.total())])
