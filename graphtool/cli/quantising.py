"""quantise: a graph with weights and activations in few bits, where that pays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import options, saving, sources, terminal
from graphtool.errors import UsageError, one_of

if TYPE_CHECKING:
    from graphtool.passes.quantise.weights import Form

_MICRO = {"us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}

Calibrate = Annotated[Path | None, typer.Option(
    "--calibrate", metavar="FILE", help="Examples: an .npz file with an array for each input, "
    "examples along its first axis; or a directory of such files.")]
Samples = Annotated[int, typer.Option(
    "--samples", min=1, help="The number of examples to read.")]
Forms = Annotated[str | None, typer.Option(
    "--form", help="static: int8, ranges of activations from examples. dynamic: int8, ranges at "
    "run time. int8, int4, int2: weights of products only, in blocks. bfloat16, float16: products "
    "of such numbers. Several with commas: a goal chooses among them, else the first that a layer "
    "can have. By default static with --calibrate, else dynamic.")]
Range = Annotated[str, typer.Option(
    "--range", help="How the range of an activation is chosen: minmax, percentile, entropy or "
    "mse.")]
Percentile = Annotated[float, typer.Option(
    "--percentile", min=50.0, max=100.0, help="The percentage that --range percentile covers.")]
Symmetric = Annotated[bool, typer.Option(
    "--symmetric", help="Activations without zero points.")]
Block = Annotated[int, typer.Option(
    "--block", min=1, help="The number of inputs that share a scale, in int8, int4 and int2.")]
Rounding = Annotated[str, typer.Option(
    "--rounding", help="Of the weights of products: nearest; gptq, which compensates errors; awq, "
    "which scales weights by the size of their activations.")]
Smooth = Annotated[float, typer.Option(
    "--smooth", min=0.0, max=1.0, help="Move this share of the range of activations into weights, "
    "0.5 for example; 0 for none.")]
Correct = Annotated[bool, typer.Option(
    "--correct-bias", help="Add to biases what the means of the layers' results lose.")]
Norms = Annotated[bool, typer.Option(
    "--correct-norms", help="Give the results of batch norms the mean and the variance again that "
    "each channel has in the float model.")]
Io_ = Annotated[str, typer.Option(
    "--io", help="The type of the inputs and outputs that the model has in float32: float, int8 or "
    "uint8. The header of the C has the scale and the zero point of each.")]
Only = Annotated[list[str] | None, typer.Option(
    "--only", metavar="PATTERN", help="Quantise only layers with such names. May be repeated.")]
Skip = Annotated[list[str] | None, typer.Option(
    "--skip", metavar="PATTERN", help="Leave layers with such names as they are. May be "
    "repeated.")]
Error = Annotated[float | None, typer.Option(
    "--error", min=0.0, help="The largest relative error of the "
    "outputs, as 0.01: layers that cost too much of it stay as they are.")]
Size = Annotated[str | None, typer.Option(
    "--size", help="The most bytes of constants, as 4MiB: no more layers than that needs.")]
Time = Annotated[str | None, typer.Option(
    "--time", help="The most time in kernels, as 5ms: no more layers than that needs.")]
Measure = Annotated[bool, typer.Option(
    "--measure", help="Build and time the layers on this machine, instead of the cost model.")]
Each = Annotated[bool, typer.Option(
    "--each/--no-each", help="Whether to compute the error of each layer alone.")]


def quantise(graph: options.Graph, out: options.Out = None, calibrate: Calibrate = None,
             samples: Samples = 128, form: Forms = None, range: Range = "minmax",
             percentile: Percentile = 99.99, symmetric: Symmetric = False, block: Block = 32,
             rounding: Rounding = "nearest", smooth: Smooth = 0.0, correct_bias: Correct = False,
             correct_norms: Norms = False, io: Io_ = "float",
             only: Only = None, skip: Skip = None, error: Error = None, size: Size = None,
             time: Time = None, measure: Measure = False, each: Each = True,
             target: options.March = "native", seed: options.Seed = 0, dim: options.Dim = None,
             json: options.Json = False,
             capture: options.Capture = None) -> int:
    """Quantise a graph: weights, and with examples activations, in 8 bits or fewer.

    The report says of each layer its form, bytes, time, and the error of the outputs if it alone is
    quantised. The exit code is 1 if --error, --size and --time cannot all be kept."""
    from graphtool.analysis import made_up
    from graphtool.passes.quantise.calibrate import batches, of_one_number
    from graphtool.passes.quantise.grids import METHODS
    from graphtool.passes.quantise.ports import PORT_TYPES
    from graphtool.report import mix, quantised
    from graphtool.report.table import table
    from graphtool.transforms.quantising import ROUNDINGS, Quantisation, prepared
    module, _, text = sources.read(graph, sources.captured(capture))
    goals = mix.Goals(error, _bytes(size), _micros(time))
    machine = sources.goal(target)
    settings = Quantisation(
        _forms(form, calibrate is not None), _word("--range", range, METHODS), percentile,
        symmetric, block, _word("--rounding", rounding, ROUNDINGS), smooth, correct_bias,
        tuple(only or ()), tuple(skip or ()), correct_norms,
        machine.freestanding and calibrate is not None, _word("--io", io, PORT_TYPES))
    dims = sources.sizes(dim, module.symbols)
    data = batches(calibrate, module, samples) if calibrate else []
    for name, number in of_one_number(data).items():
        terminal.note(f"all examples of {name} are {number:g}: ranges from them fit no other input")
    ready = prepared(module, settings, data)
    tried = data or [made_up.random_inputs(module, seed, dims)]
    result, report = mix.mixed(ready, goals, machine, tried, measure, each, dims)
    saving.save(result, out, graph, "quantised", text)
    with terminal.aside(out if out is not None else Path("-")):
        if not json:
            terminal.table(table(quantised.LAYERS, report.layers))
        terminal.report(report, json, quantised.lines(report))
    if not data:
        terminal.note("the error is that on random inputs; --calibrate gives real ones")
    if not report.met:
        asked = [f"--{name} {text}" for name, text in (
            ("error", error), ("size", size), ("time", time)) if text is not None]
        terminal.note(f"not within what was asked for: {', '.join(asked)}; other --form of layers "
                      "may do, as --form int4,int8,static")
    return 0 if report.met else 1


def _forms(text: str | None, examples: bool) -> tuple[Form, ...]:
    from graphtool.passes.quantise.weights import FORMS
    if text is None:
        return ("static",) if examples else ("dynamic",)
    names = [n.strip() for n in text.split(",") if n.strip()]
    return tuple(FORMS[_word("--form", n, FORMS)] for n in names or [""])


def _word(option: str, text: str, known: Any) -> Any:
    """The text if it is a known word. Raises UsageError GT3120."""
    if text not in known:
        raise UsageError("GT3120", f"{option}: unknown {text!r}", hint=one_of(text, known))
    return text


def _bytes(text: str | None) -> int | None:
    from graphtool.passes.arguments import UNITS
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.lower())
    unit = UNITS.get(match[2].removesuffix("b") if match and match[2] in ("kb", "mb", "gb", "b")
                     else match[2]) if match else None
    if match is None or unit is None:
        raise UsageError("GT3120", f"--size {text!r} is not a size", hint="as in 4MiB or 500k")
    return int(float(match[1]) * unit)


def _micros(text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(us|µs|ms|s)", text)
    if match is None:
        raise UsageError("GT3120", f"--time {text!r} is not a time", hint="as in 5ms or 80us")
    return float(match[1]) * _MICRO[match[2]]
