"""Options that several verbs share: one name, one meaning, one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from graphtool.cli.records import flag
from graphtool.compile.options import Build, Choosing, Importing, Lowering

Graph = Annotated[str, typer.Argument(
    metavar="IN", help="A graph (.graph.json or .gt), a model to import (.onnx, .pt2, .mlir, "
        "file.py:callable), or - "
    "for a graph or an ONNX model from stdin (DIR/- if a graph's weights are in DIR).")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="The file to write; - for stdout.")]
def _watch(context: typer.Context, wanted: bool) -> None:
    """Start the loop in place of the verb; the root of the context has the command line."""
    if wanted:
        from graphtool.cli.watching import loop
        raise typer.Exit(loop(context.find_root().obj))


Watch = Annotated[bool, typer.Option(
    "--watch", callback=_watch, is_eager=True,
    help="Run again whenever a file that is read has changed, until Ctrl-C.")]
Json = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
Format = Annotated[str | None, typer.Option(
    "--format", help="text; markdown for a comment; github for annotations in a workflow; sarif or "
    "junit for programs that collect results; json.")]
ExternalData = Annotated[bool, typer.Option(
    "--external-data", help="Write the weights of an ONNX model to OUT.data, beside it.")]
Inputs = Annotated[Path | None, typer.Option("--inputs",
    help="An .npz or .safetensors file with an array for each input.")]
Input = Annotated[list[str] | None, typer.Option(
    "--input", metavar="NAME=VALUE", help="One input, from a file (x=@x.npy) or filled with one "
    "value (x=1x4xf32=0.5). May be repeated.")]
Random = Annotated[bool, typer.Option("--random",
    help="Make random values for inputs that are not given.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed of random inputs.")]
Dim = Annotated[list[str] | None, typer.Option(
    "--dim", metavar="NAME=SIZE", help="The size of an open dim in random inputs. May be "
    "repeated.")]
Passes = Annotated[str | None, flag(Lowering, "passes")]
Shapes = Annotated[list[str] | None, flag(Importing, "inputs")]
Capture = Annotated[str | None, flag(Importing, "capture")]
Dynamic = Annotated[list[str] | None, flag(Importing, "dynamic")]
Limit = Annotated[list[str] | None, flag(Importing, "limit")]
Name = Annotated[str | None, flag(Lowering, "name")]
Wrt = Annotated[str, typer.Option("--wrt", help="What to differentiate by, separated by commas: "
    "params (those with requires_grad), inputs, names, or patterns as in 'head.*,!*.bias'.")]
OutDir = Annotated[Path, typer.Option("-o", "--out", help="The build directory to write.")]
Cc = Annotated[str | None, flag(Build, "cc")]
March = Annotated[str, flag(Choosing, "target")]
Machine = Annotated[str | None, flag(Choosing, "machine")]
Entry = Annotated[str | None, typer.Option(
    "--entry", metavar="NAME", help="Which entry point, of a build that has several.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="The number of threads.")]
Atol = Annotated[float | None, typer.Option(
    "--atol", min=0.0, help="Absolute tolerance. By default 1e-5 times the largest value of each "
        "output.")]
Rtol = Annotated[float, typer.Option("--rtol", min=0.0, help="Relative tolerance.")]
Precision = Annotated[str, flag(Choosing, "precision")]
Assume = Annotated[str, flag(Choosing, "assume")]
Kernels = Annotated[str, flag(Choosing, "kernels")]
Tuning = Annotated[Path | None, flag(Choosing, "tuning")]
