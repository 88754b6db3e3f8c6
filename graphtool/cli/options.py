"""Options that several verbs share: one name, one meaning, one help text."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer


def finite(value: float | None) -> float | None:
    """A callback for numbers that go into graphs and into steps: infinity would end in NaN."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not finite")
    return value


Graph = Annotated[str, typer.Argument(
    metavar="IN", help="A graph file, a model (.onnx, .pt2, file.py:callable), or - for stdin.")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Where to write; - for stdout.")]
Json = Annotated[bool, typer.Option("--json", help="The report as JSON.")]
Inputs = Annotated[Path | None, typer.Option("--inputs", help="An .npz file of inputs.")]
Input = Annotated[list[str] | None, typer.Option(
    "--input", metavar="NAME=VALUE", help="One input: x=@x.npy or x=1x4xf32=0.5; repeatable.")]
Random = Annotated[bool, typer.Option("--random", help="Make up the inputs that are not given.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The seed of made-up inputs.")]
Dim = Annotated[list[str] | None, typer.Option(
    "--dim", metavar="NAME=SIZE", help="Size of an open dim in made-up inputs; repeatable.")]
Passes = Annotated[str | None, typer.Option(
    "--passes", help="Pass names with commas, arguments in braces: fold{max_bytes=1024},dce.")]
Shapes = Annotated[list[str] | None, typer.Option(
    "--inputs", metavar="NAME:TYPE", help="x:f32[1,3,224,224] for each input of a torch source; "
    "of an ONNX model s:(f32[4],f32[5]) for a sequence, x:none for an optional.")]
Capture = Annotated[str, typer.Option(
    "--capture", help="How torch is captured: export or fx.")]
Dynamic = Annotated[list[str] | None, typer.Option(
    "--dynamic", metavar="NAME=LO..HI", help="Leave a torch dim open: batch=1..64 is dim 0 of "
    "every input, seq@ids.1,mask.1=1..128 the dims named; repeatable.")]
Name = Annotated[str | None, typer.Option("--name", help="The name of the function in C.")]
Wrt = Annotated[str, typer.Option("--wrt", help="params, inputs, or names, with commas.")]
OutDir = Annotated[Path, typer.Option("-o", "--out", help="The build directory.")]
Cc = Annotated[str | None, typer.Option("--cc", help="The C compiler.")]
March = Annotated[str, typer.Option("--march", help="native, x86-64-v2, -v3, -v4, armv8-a …")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="How many threads.")]
Atol = Annotated[float | None, typer.Option(
    "--atol", min=0.0, help="Absolute tolerance; by default 1e-5 of each output's largest.")]
Rtol = Annotated[float, typer.Option("--rtol", min=0.0, help="Relative tolerance.")]
Target = Annotated[str, typer.Option("--target", help="cpu, or a row of the target table.")]
Precision = Annotated[str, typer.Option(
    "--precision", help="strict (the same bits for any number of threads), default, or fast "
    "(bfloat16 products where the CPU has them).")]
Kernels = Annotated[str, typer.Option(
    "--kernels", help="generated, blas (a CBLAS library for large products), or auto (as tuned).")]
Tuning = Annotated[Path | None, typer.Option(
    "--tuning", metavar="FILE", help="What `graphtool tune` measured; the later of two lines "
    "with one key counts.")]
