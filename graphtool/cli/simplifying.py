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
    leave several nodes of it.

    Some operations are one node that the passes take apart, as they do a batch norm, to merge it
    with its neighbours: such ones stay if the model is smaller so.
    """
    from graphtool import passes
    from graphtool.exporters.onnx import operators
    from graphtool.front.authored import as_authored
    counts = _Counts(module)

    def passed(worse: Worse) -> Module:
        return passes.run(as_authored(module, operations, worse), passes.calls(PASSES))
    first = passed(counts.longer)
    if not counts.merging:
        return first
    return min(first, passed(counts.longer_alone), key=operators)


class _Counts:
    """How many ONNX nodes the nodes of an operation are; each kind is counted once. `merging`: some
    operation is one node before the passes, and several after them."""

    def __init__(self, module: Module) -> None:
        self.symbols, self.merging = module.symbols, False
        self.known: dict[Any, tuple[bool, bool]] = {}

    def longer(self, operation: Operation, graph: Graph) -> bool:
        """Whether it is several nodes before and after the passes."""
        return all(self.of(operation, graph))

    def longer_alone(self, operation: Operation, graph: Graph) -> bool:
        """Whether it is several nodes after the passes."""
        return self.of(operation, graph)[1]

    def of(self, operation: Operation, graph: Graph) -> tuple[bool, bool]:
        """Whether it is several nodes before the passes, and after them."""
        from graphtool.exporters.onnx import OPSET
        from graphtool.exporters.onnx.authored import modern, stays
        if modern(operation.text, operation.opset, OPSET) is None:
            return False, False
        if stays(operation.text):
            return True, True
        key = (operation.text, operation.opset, tuple(v.type for v in graph.inputs),
               tuple((n.op.name, n.outputs[0].type) for n in graph.nodes))
        if key not in self.known:
            self.known[key] = several = self._counted(graph)
            self.merging |= several == (False, True)
        return self.known[key]

    def _counted(self, graph: Graph) -> tuple[bool, bool]:
        from graphtool import passes
        from graphtool.exporters.onnx import operators
        from graphtool.ir.graph import Module
        alone = Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), self.symbols)
        try:
            after = passes.run(alone, passes.calls(PASSES), verify=False)
            return operators(alone) > 1, operators(after) > 1
        except GraphtoolError:  # ONNX lacks one of our ops
            return True, True


def _written(after: Module, to: Path, external: bool, given: Any, source: Path) -> Counter[str]:
    """Writes the simplified model, or the one that was given if that has fewer nodes, or a sequence
    as an input or output; returns the counts of what was written."""
    from graphtool.exporters.onnx import export_onnx, inputs, node_counts, write
    from graphtool.importers.onnx.driver.reader import read_model
    export_onnx(after, to, external=external)
    counts, first = node_counts(made := read_model(to)), node_counts(given)
    same = all([v.name for v in a] == [v.name for v in b] for a, b in (
        (given.graph.output, made.graph.output), (inputs(given), inputs(made))))
    if same and counts.total() <= first.total():
        return counts
    terminal.note(f"{source.name} stays as it is: simplified it would have " + (
        f"{counts.total()} nodes" if same else "other inputs or outputs"))
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
