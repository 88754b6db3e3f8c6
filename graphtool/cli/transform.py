"""import, eval, opt, grad, vmap: models into graphs, graphs into numbers and into other
graphs.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, outputs, saving, sources, terminal, waiting
from graphtool.compile.options import Choosing, Importing
from graphtool.compile.source import STABLEHLO
from graphtool.errors import UsageError

if TYPE_CHECKING:
    from graphtool.ir.graph import Module

_FORMATS = {"onnx": "ONNX model", "stablehlo": "StableHLO text"}


def import_(source: Annotated[str, typer.Argument(
        metavar="SOURCE", help="MODEL.onnx, MODEL.pt2, MODEL.pt, MODEL.mlir, FILE.py:NAME or "
        "PACKAGE.MODULE:NAME. The last two run Python code. A graph is checked and written "
        "again.")],
            how: Importing, out: options.Out = None,
            check: Annotated[bool, typer.Option(
                "--check/--no-check",
                help="Whether to compare the graph with torch, JAX or onnxruntime.")] = True,
            watch: options.Watch = False) -> int:
    """Import a model as a graph, and compare the two.

    Without -o the graph goes to stdout; where that is a terminal, to a new file beside the model.
    The evaluator runs the graph on two random inputs, and torch, JAX or onnxruntime the model. The
    exit code is 1 if they differ, or if the comparison itself fails."""
    from graphtool.compile.source import read_graph
    from graphtool.importers import Importer, kinds
    from graphtool.importers.hints import dynamic_options
    from graphtool.importers.limits import read_limits
    from graphtool.ir.listing import required
    kind = kinds.what(source, how.capture or "export")
    model = isinstance(kind, Importer)
    if not model and kind not in (kinds.STDIN, kinds.GRAPH, kinds.JSON):
        raise kinds.not_a_model(source, kind)
    waiting.stage(f"reading {source}")
    imported = sources.warned(read_graph(source, how))
    assert imported.module is not None
    module = imported.module
    saving.save(module, out, source)
    if imported.imported and not model:
        terminal.note("not compared: a model from stdin is no file that another runtime can read")
    elif not model:
        terminal.note("checked: all types follow from the ops, and the weights have their hashes")
        return 0
    if ignored := module.meta.get("ignored"):
        terminal.note(f"ignored: {ignored}")
    if rules := required(module):
        terminal.note(f"required of every run: {', '.join(rules)}")
        if sizes := [f"--dynamic {shlex.quote(d)}" for d in dynamic_options(module)
                        if d not in how.dynamic]:
            terminal.note(f"sizes that satisfy this: {' '.join(sizes)}")
    if not check or not model:
        return 0
    from graphtool.verify.imports import check_import
    waiting.stage("comparing the graph with the model, which --no-check leaves out")
    checked = check_import(source, module, how.inputs, read_limits(how.limit), how.capture or "")
    terminal.note(*checked.line.split("\n"))
    return 0 if checked.ok else 1


def eval_(graph: options.Graph, out: options.Out = None, inputs: options.Inputs = None,
          input: options.Input = None, random: options.Random = False, seed: options.Seed = 0,
          dim: options.Dim = None,
          dtype: Annotated[str | None, typer.Option(
              "--dtype", help="Evaluate all floats in this type, for example float64.")] = None,
          dump_values: Annotated[Path | None, typer.Option(
              "--dump-values", help="Write every intermediate value to this .npz file.")] = None,
          capture: options.Capture = None) -> int:
    """Run a graph in the reference evaluator, which uses numpy.

    The outputs are written to an .npz file, or printed in short. The exit code is 1 if the program
    itself states what it expects, and this is not so."""
    from graphtool import dtypes, interp
    from graphtool.io import npz
    wide = dtypes.dtype(dtype) if dtype else None
    if wide is not None and not wide.is_float:
        raise UsageError("GT3023", f"floats cannot be evaluated as {wide}",
                         hint="a float type: float64, float32, float16, bfloat16")
    module = sources.load(graph, sources.captured(capture))
    arrays = module_inputs(module, inputs, input, random, seed, dim)
    values: dict[str, Any] = {}
    results = interp.run(module, arrays, dtype=wide,
                         on_value=values.__setitem__ if dump_values else None)
    if dump_values:
        npz.save(values, dump_values)
    return judged(results, out)


def module_inputs(module: Module, file: Path | None, given: list[str] | None, random: bool,
                  seed: int, dims: list[str] | None) -> dict[str, Any]:
    """The inputs of a graph, by the names that its listing shows."""
    from graphtool.analysis import made_up
    from graphtool.ir.text import value_names
    names = value_names(module.graph)
    sizes = sources.sizes(dims, module.symbols)
    return sources.arrays([names[v] for v in module.graph.inputs], file, given,
                          (lambda: made_up.random_inputs(module, seed, sizes)) if random else None)


def judged(results: dict[str, Any], out: Path | None) -> int:
    """`write_outputs`; 1 if an output says that what the program expects is not so, else 0."""
    from graphtool.ir.requires import unmet
    write_outputs(results, out)
    failed = unmet(results)
    if failed:
        terminal.note(f"not as the program expects: {', '.join(failed)}")
    return 1 if failed else 0


def write_outputs(results: dict[str, Any], out: Path | None) -> None:
    """Write the arrays to a file, with - to stdout as .npz; without a file print one line each."""
    from graphtool.io import npz
    if out is not None and str(out) != "-":
        npz.save(results, out)
        return
    if out is not None:
        import sys
        sys.stdout.buffer.write(npz.dumps(results))
        return
    import numpy as np

    from graphtool import dtypes
    for name, x in results.items():
        with np.printoptions(threshold=12, edgeitems=2, precision=6, linewidth=88):
            body = str(x).split("\n")
        kind = dtypes.of_numpy(x.dtype).name
        terminal.lines([f"{name}: {kind}{list(x.shape)}", *(f"  {row}" for row in body)])


def opt(graph: options.Graph, how: Choosing, out: options.Out = None, passes: options.Passes = None,
        list_: Annotated[bool, typer.Option(
            "--list", help="Print the passes that would run, and run none.")] = False,
        print_after: Annotated[str | None, typer.Option(
            "--print-after", metavar="PASS",
            help="Print the graph after this pass, after all, or after "
            "each pass that changed it (changed).")] = None,
        dump_dir: Annotated[Path | None, typer.Option(
            "--dump-dir", help="Write the graph after each pass to this directory.")] = None,
        time: Annotated[bool, typer.Option("--time", help="Print the time of each pass.")] = False,
        stats: Annotated[bool, typer.Option("--stats",
            help="Print statistics before and after.")] = False,
        check: Annotated[bool, typer.Option(
            "--check", help="Evaluate the graph before and after, and compare.")] = False,
        bisect: Annotated[bool, typer.Option(
            "--bisect", help="Find the first pass, and the rule in it, that changes the "
                             "outputs.")] = False,
        journal: Annotated[Path | None, typer.Option(
            "--journal", metavar="FILE", help="Write each rule that fired, and what else the "
            "passes did, as JSON lines.")] = None,
        atol: options.Atol = None, rtol: options.Rtol = 1e-4, seed: options.Seed = 0,
        dim: options.Dim = None, format: options.Format = None, json: options.Json = False,
        capture: options.Capture = None, watch: options.Watch = False) -> int:
    """Run passes over a graph: the default pipeline, or the passes that --passes names.

    Without -o the graph goes to stdout; where that is a terminal, to a new file beside IN.
    With --check and with --bisect the exit code is 1 if the outputs differ, and --format says in
    which form that is reported."""
    from graphtool.cli.pipeline import Watch
    from graphtool.verify.pipeline import opt_outcome
    form = terminal.chosen_format(format, json)
    json = form == "json"
    if form not in ("text", "json") and not (check or bisect):
        raise UsageError("GT3017", f"--format {form} is for --check and --bisect",
                         hint="--json has the report of the passes")
    module, _, text = sources.read(graph, sources.captured(capture))
    how = sources.noted(how)
    stages = Watch(module, passes, print_after, dump_dir, how.goal, how.rules, journal)
    if list_:
        terminal.lines(stages.names)
        return 0
    sizes = sources.sizes(dim, module.symbols)
    if bisect:
        return stages.bisect(seed, sizes, atol, rtol, form, graph)
    with terminal.aside(out):
        result = stages.run()
    if how.machine is not None:
        result = replace(result, meta={**result.meta, "machine": stages.goal.machine})
    ok = stages.check(result, seed, sizes, atol, rtol) if check else True
    if out is not None or not (json or stats or time or check or print_after):
        saving.save(result, out, graph, "opt", text)
    report = stages.report(result)
    sources.told_left_out(how.proofs, [x for row in report.passes for x in row.left_out])
    with terminal.aside(out):
        if form != "text":
            terminal.tell(report, form, tuple, lambda: opt_outcome(report, graph))
        elif time or stats or check:
            stages.tell(report, time, stats)
    return 0 if ok else 1


def export(graph: options.Graph, out: options.Out = None,
           format: Annotated[str | None, typer.Option("--format",
               help="onnx, or stablehlo for XLA, JAX and IREE. By default the ending of -o "
               "decides; without one onnx.")] = None,
           external_data: options.ExternalData = False,
           flat: Annotated[bool, typer.Option(
               "--flat", help="In StableHLO, write what defines an op in its place, not as a "
               "composite with the op's name.")] = False,
           weights: Annotated[str, typer.Option(
               "--weights", help="In StableHLO: constants, or arguments behind the inputs, whose "
               "contents are written to OUT.safetensors.")] = "constants",
           aliases: Annotated[bool, typer.Option(
               "--aliases/--no-aliases", help="In StableHLO, whether to say which output takes the "
               "memory of a donated input. IREE 3.13 computes a training step wrongly if it is "
               "said.")] = True,
           capture: options.Capture = None) -> None:
    """Write a graph as an ONNX model, or as StableHLO text.

    An op that the format lacks is written as the ops that define it. Neither has conditions on
    sizes, such as H % 32 == 0: those of the graph are named, and left out."""
    if format is None:
        format = "stablehlo" if out is not None and out.suffix.lower() in STABLEHLO else "onnx"
    if format not in ("onnx", "stablehlo"):
        raise UsageError("GT3017", f"unknown format {format!r}",
                         hint="onnx or stablehlo; `graphtool draw` makes pictures")
    if external_data and format != "onnx":
        raise UsageError("GT3017", "--external-data is for ONNX; StableHLO has one file")
    if weights not in ("constants", "arguments"):
        raise UsageError("GT3017", f"unknown --weights {weights!r}", hint="constants or arguments")
    for name, used in (("--flat", flat), ("--no-aliases", not aliases),
                       ("--weights arguments", weights == "arguments")):
        if used and format == "onnx":
            raise UsageError("GT3017", f"{name} is for StableHLO", hint="--format stablehlo")
    outputs.reachable(out)
    module = sources.load(graph, sources.captured(capture))
    saving.told_rules(module, _FORMATS[format])
    path = saving.destination(out, graph, ".onnx" if format == "onnx" else ".mlir")
    if format == "onnx":
        _export_onnx(module, path, external_data)
    else:
        _export_stablehlo(module, path, not flat, aliases, weights == "arguments")
    saving.told(path, out)


def _export_stablehlo(module: Module, out: Path | None, composites: bool, aliases: bool,
                      arguments: bool) -> None:
    from graphtool.exporters.stablehlo import export_stablehlo, stablehlo_of
    if not arguments:
        saving.write(out, stablehlo_of(module, composites=composites, aliases=aliases))
    elif out is None:
        raise UsageError("GT3017", "--weights arguments needs an output file", hint="-o m.mlir")
    else:
        export_stablehlo(module, out, composites=composites, aliases=aliases, arguments=True)


def _export_onnx(module: Module, out: Path | None, external: bool) -> None:
    from graphtool.exporters.onnx import export_onnx, model_of
    if out is not None:
        export_onnx(module, out, external=external)
        return
    if external:
        raise UsageError("GT3017", "--external-data needs an output file", hint="-o m.onnx")
    import sys
    sys.stdout.buffer.write(model_of(module).SerializeToString(deterministic=True))


def vmap(graph: options.Graph, out: options.Out = None,
         in_axes: Annotated[str, typer.Option(
             "--in-axes", help="The axis of examples in each input, as in x=1,table=none. "
             "By default axis 0.")] = "",
         size: Annotated[str, typer.Option(
             "--size", help="The number of examples, or the name of an open dim.")] = "examples",
         capture: options.Capture = None) -> None:
    """Turn a graph for one example into a graph for many.

    Every output gets the axis of examples as its first one."""
    from graphtool.transforms import modules
    axes: dict[str, int | None] = {}
    for item in filter(None, in_axes.split(",")):
        name, _, value = item.rpartition("=")
        if not name or not re.fullmatch(r"-?\d+|none", value):
            raise UsageError("GT3037", f"--in-axes {item!r} is not NAME=AXIS",
                             hint="as in --in-axes x=1,table=none")
        axes[name] = None if value == "none" else int(value)
    if not re.fullmatch(r"\d+|[A-Za-z_]\w*", size):
        raise UsageError("GT3037", f"--size {size!r} is neither a number nor a name")
    given = sources.read(graph, sources.captured(capture))
    result = modules.vmap(given.module, axes, int(size) if size.isdigit() else size)
    saving.save(result, out, graph, "vmap", given.text)
    terminal.note(f"{len(result.graph.nodes)} nodes")
