"""Options that several verbs share: one name, one meaning, one help text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Graph = Annotated[str, typer.Argument(
    metavar="IN", help="A graph (.graph.json or .gt), a model to import (.onnx, .pt2, .mlir, "
        "file.py:callable), or - "
    "for stdin (DIR/- if its weights are in DIR).")]
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
Passes = Annotated[str | None, typer.Option(
    "--passes", help="The passes to run, separated by commas, with arguments in braces: "
    "fold{max_bytes=1024},dce.")]
Shapes = Annotated[list[str] | None, typer.Option(
    "--inputs", metavar="NAME:TYPE", help="The name and type of an input of a torch model, as in "
    "x:f32[1,3,224,224]. For an ONNX model: s:(f32[4],f32[5]) gives the types in a sequence, "
        "x:none "
    "leaves an optional input out. May be repeated.")]
Capture = Annotated[str | None, typer.Option(
    "--capture", help="How to capture Python code: export (torch.export, the default) or fx "
    "(torch.fx) of a torch model, jax (jax.export) of a function of JAX.")]
Dynamic = Annotated[list[str] | None, typer.Option(
    "--dynamic", metavar="NAME=LO..HI", help="Leave a dim of a torch model open: batch=1..64 opens "
    "dim 0 of every input, seq@ids.1,mask.1=1..128 the dims that it names. Also for named dims of "
    "an ONNX model: 'H=32..1024 step 32', W=H (equal sizes), N=1. May be repeated.")]
Limit = Annotated[list[str] | None, typer.Option(
    "--limit", metavar="NAME=NUMBER", help="What the import of an ONNX model and its check may "
    "take: nodes, bytes of one array, seconds. May be repeated.")]
Strict = Annotated[bool | None, typer.Option(
    "--strict/--lenient", help="Refuse an ONNX model for every violation of the specification, or "
    "take every violation that can be given a meaning. By default those with one meaning are taken "
    "with a warning.")]
Name = Annotated[str | None, typer.Option("--name", help="The name of the function in C.")]
Wrt = Annotated[str, typer.Option("--wrt", help="What to differentiate by, separated by commas: "
    "params (those with requires_grad), inputs, names, or patterns as in 'head.*,!*.bias'.")]
OutDir = Annotated[Path, typer.Option("-o", "--out", help="The build directory to write.")]
Cc = Annotated[str | None, typer.Option("--cc", help="The C compiler; by default $CC, then cc, "
    "gcc, clang, then zig.")]
March = Annotated[str, typer.Option("--march", help="The CPU to compile for: native (this "
    "machine), or a row of "
    "the table of targets, such as x86-64-v3 or armv8-a.")]
Machine = Annotated[str | None, typer.Option(
    "--machine", metavar="ROW", help="Choose kernels by the figures of another machine: a row that "
    "`graphtool machine --list` prints, generic, or a .json file that `graphtool machine -o` "
    "wrote. By default those of the processor at hand, where it is known.")]
Entry = Annotated[str | None, typer.Option(
    "--entry", metavar="NAME", help="Which entry point, of a build that has several.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="The number of threads.")]
Atol = Annotated[float | None, typer.Option(
    "--atol", min=0.0, help="Absolute tolerance. By default 1e-5 times the largest value of each "
        "output.")]
Rtol = Annotated[float, typer.Option("--rtol", min=0.0, help="Relative tolerance.")]
Target = Annotated[str, typer.Option("--target",
    help="cpu (this machine), or a row of the table of targets.")]
Precision = Annotated[str, typer.Option(
    "--precision", help="strict: the same bits on any machine, with any compiler and number of "
    "threads. default. fast: products in bfloat16 where the CPU has them.")]
Assume = Annotated[str, typer.Option(
    "--assume", help="finite: a kernel may spread or move a NaN or an infinity, as Winograd's do. "
    "nothing: they stay where the model makes them; so it always is in strict. normal: as finite, "
    "and subnormal numbers, below 1.2e-38 in float32, count as 0.")]
Kernels = Annotated[str, typer.Option(
    "--kernels", help="generated: graphtool's own. blas: a CBLAS library for large products. auto: "
    "whichever `tune` found faster.")]
Tuning = Annotated[Path | None, typer.Option(
    "--tuning", metavar="FILE", help="A file that `graphtool tune` has written. If two lines "
    "have the same key, the later one counts.")]
