"""simplify: makes an ONNX model smaller; the result computes the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.compile.options import Importing
from graphtool.compile.source import bounds, is_stdin
from graphtool.errors import GraphtoolError, UsageError

if TYPE_CHECKING:
    from graphtool.front.authored import Operation, Worse
    from graphtool.io.weights import Weight
    from graphtool.ir.graph import Graph, Module
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

    Open dims stay open. Operators that no rule shortens stay as they are; a model that would become
    larger is written as it is. Constants are not counted. Both models are run on random inputs, by
    onnxruntime where it is installed. The exit code is 1 if they differ."""
    from graphtool.exporters.onnx import model_of, node_counts
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
    in_onnx = kinds.what(model) is IMPORTERS["onnx"]
    operations: list[Operation] = []
    before = _imported(Path(model), how, operations) if in_onnx else sources.load(model, how)
    after = simplified(before, operations)
    saving.told_rules(after, "ONNX model")
    given = read_model(Path(model)) if in_onnx else model_of(before)
    counts = [node_counts(given), _written(after, to, external_data, given, Path(model))]
    terminal.table(_counts(*counts))
    if not check or (drawn := any(o.state for o in operations)):
        terminal.note(*["the model draws random numbers: values are not compared"] * (
            check and drawn))
        return 0
    return _compared(model, to, before, how, seed, dim, atol, rtol)


def _imported(path: Path, how: Importing, operations: list[Operation]) -> Module:
    """The module of an ONNX file, whose nodes are added to `operations`."""
    from graphtool.importers.limits import read_limits
    from graphtool.importers.onnx import import_onnx
    from graphtool.importers.onnx.driver.inputs import read_parts
    return import_onnx(path, dynamic=bounds(how.dynamic), made_of=read_parts(how.inputs),
                       limits=read_limits(how.limit, how.strict), operations=operations)


def _compared(model: str, to: Path, before: Module, how: Importing, seed: int,
              dim: Sequence[str] | None, atol: float | None, rtol: float) -> int:
    from graphtool.verify import sides
    from graphtool.verify.check import check, check_lines
    pair = (sides.of_module(before), sides.open_side(str(to))) if is_stdin(model) else (
        sides.open_pair(model, str(to), None, (sources.capture_of(model, how.capture), "")))
    arrays = sides.made_up((model, str(to)), pair, seed, sources.sizes(dim))
    check_ = check(*pair, arrays, atol, rtol, False)
    check_.a, check_.b = Path(model).name, to.name
    terminal.note(*check_lines(check_))
    return 0 if check_.ok else 1


# ---- what is simpler ----------------------------------------------------------------------------

def simplified(module: Module, operations: Sequence[Operation]) -> Module:
    """The module after the passes. An operation of an ONNX model stays as it is if the passes
    leave several nodes of it."""
    from graphtool import passes
    from graphtool.front.authored import as_authored
    module = as_authored(module, operations, _worse(module))
    return passes.run(module, passes.calls(PASSES))


def _worse(module: Module) -> Worse:
    from graphtool import passes
    from graphtool.exporters.onnx import OPSET, operators
    from graphtool.exporters.onnx.authored import modern, stays
    from graphtool.ir.graph import Module
    counts: dict[Any, bool] = {}

    def longer(graph: Graph) -> bool:
        alone = Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), module.symbols)
        try:
            return operators(alone) > 1 and operators(
                passes.run(alone, passes.calls(PASSES), verify=False)) > 1
        except GraphtoolError:  # ONNX lacks one of our ops
            return True

    def worse(operation: Operation, graph: Graph) -> bool:
        if modern(operation.text, operation.opset, OPSET) is None:
            return False
        if stays(operation.text):
            return True
        key = (operation.text, operation.opset, tuple(v.type for v in graph.inputs),
               tuple((n.op.name, n.outputs[0].type) for n in graph.nodes))
        if key not in counts:
            counts[key] = longer(graph)
        return counts[key]
    return worse


def _written(after: Module, to: Path, external: bool, given: Any, source: Path) -> Counter[str]:
    """Writes the simplified model, or the one that was given if it has fewer nodes; returns the
    counts of what was written."""
    from graphtool.exporters.onnx import export_onnx, node_counts, write
    from graphtool.importers.onnx.driver.reader import read_model
    export_onnx(after, to, external=external)
    counts, first = node_counts(read_model(to)), node_counts(given)
    if counts.total() <= first.total():
        return counts
    terminal.note(f"{source.name} stays as it is: simplified it would have {counts.total()} nodes")
    write(given, _taken_out(given, source.parent), to, external=external)
    return first


def _taken_out(model: Any, folder: Path) -> dict[str, Weight]:
    """The model's constants by name, those in other files too; the model has them no more."""
    from graphtool.importers.onnx.driver.reader import array
    from graphtool.io.weights import weight
    weights = {t.name: weight(array(t, folder)) for t in model.graph.initializer}
    del model.graph.initializer[:]
    return weights


def _counts(before: Counter[str], after: Counter[str]) -> Table:
    """The number of nodes of each op that differs, and of all."""
    from graphtool.report.table import Table
    return Table(("op", "before", "after"), [
        *((op, before[op], after[op]) for op in sorted(before | after)
          if before[op] != after[op]), ("all", before.total(), after.total())])
