"""Options that several verbs share, with one name, one meaning and one help text; and records of
options as typer takes them, a parameter for each field.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphtool.compile.option import Option, options_of
from graphtool.compile.options import Build, Choosing, Importing, LoweringOptions

Verb = Callable[..., object]
Graph = Annotated[str, typer.Argument(
    metavar="IN", help="A graph (.graph.json or .gt), a model to import (as `import` takes it), or "
    "- for a graph or an ONNX model from stdin (DIR/- if a graph's weights are in DIR).")]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="The file to write; - for stdout.")]
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
Wrt = Annotated[str, typer.Option("--wrt", help="What to differentiate by, separated by commas: "
    "params (those with requires_grad), inputs, names, or patterns as in 'head.*,!*.bias'.")]
OutDir = Annotated[Path, typer.Option("-o", "--out", help="The build directory to write.")]
Entry = Annotated[str | None, typer.Option(
    "--entry", metavar="NAME", help="Which entry point, of a build that has several.")]
Threads = Annotated[int | None, typer.Option("--threads", min=1, help="The number of threads.")]
Atol = Annotated[float | None, typer.Option(
    "--atol", min=0.0, help="Absolute tolerance. By default 1e-5 times the largest value of each "
        "output.")]
Rtol = Annotated[float, typer.Option("--rtol", min=0.0, help="Relative tolerance.")]


def flag(record: type, name: str) -> Any:
    """The option of one field of a record, for a verb that takes no other of them."""
    return _option(next(o for n, _, o in options_of(record) if n == name))


def flat(verb: Verb) -> Verb:
    """The verb with a parameter for each option of its records, in their place."""
    signature = inspect.signature(verb, eval_str=True)
    records: dict[str, Any] = {n: p.annotation for n, p in signature.parameters.items()
               if is_dataclass(p.annotation)}
    if not records:
        return verb

    def call(**values: Any) -> object:
        built = {name: record(**{
            field: tuple(value or ()) if option.several else value
            for field, _, option in options_of(record) for value in [values.pop(field)]})
            for name, record in records.items()}
        return verb(**values, **built)
    parameters = [q for name, p in signature.parameters.items()
                  for q in (_parameters(records[name]) if name in records else
                            [p.replace(kind=p.KEYWORD_ONLY)])]
    vars(call).update(__signature__=signature.replace(parameters=parameters),
                      __annotations__={p.name: p.annotation for p in parameters})
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def _parameters(record: Any) -> list[inspect.Parameter]:
    return [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY,
                              default=None if option.several else default,
                              annotation=Annotated[_type(default, option), _option(option)])
            for name, default, option in options_of(record)]


def _type(default: Any, option: Option) -> Any:
    if option.several:
        return list[option.kind] | None  # type: ignore[name-defined]
    return option.kind | None if default is None else option.kind


def _option(option: Option) -> Any:
    return typer.Option(*option.names, help=option.help, metavar=option.metavar, min=option.least)


def _watch(context: typer.Context, wanted: bool) -> None:
    """Start the loop in place of the verb; the root of the context has the command line."""
    if wanted:
        from graphtool.cli.watching import loop
        raise typer.Exit(loop(context.find_root().obj))


Watch = Annotated[bool, typer.Option(
    "--watch", callback=_watch, is_eager=True,
    help="Run again whenever a file that is read has changed, until Ctrl-C.")]
Passes = Annotated[str | None, flag(LoweringOptions, "passes")]
Shapes = Annotated[list[str] | None, flag(Importing, "inputs")]
Capture = Annotated[str | None, flag(Importing, "capture")]
Dynamic = Annotated[list[str] | None, flag(Importing, "dynamic")]
Limit = Annotated[list[str] | None, flag(Importing, "limit")]
Name = Annotated[str | None, flag(LoweringOptions, "name")]
Cc = Annotated[str | None, flag(Build, "cc")]
March = Annotated[str, flag(Choosing, "target")]
Machine = Annotated[str | None, flag(Choosing, "machine")]
Precision = Annotated[str, flag(Choosing, "precision")]
Assume = Annotated[str, flag(Choosing, "assume")]
Kernels = Annotated[str, flag(Choosing, "kernels")]
Tuning = Annotated[Path | None, flag(Choosing, "tuning")]
