"""demo: the whole tour on the shipped samples, each stage with what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import terminal
from graphtool.errors import InputError, UsageError

if TYPE_CHECKING:
    from graphtool.ir.graph import Module


def samples() -> Path:
    """The samples that come with the package (in a checkout, links to those in samples/)."""
    folder = Path(__file__).parent.parent / "samples"
    if not (folder / "digits.onnx").exists():
        raise InputError("GT3051", "the samples are not installed", where=str(folder))
    return folder


def demo(out: Annotated[Path, typer.Option(
        "-o", "--out", help="The directory for the files of each stage.")] = Path("graphtool-demo"),
         seconds: Annotated[float, typer.Option(
             "--seconds", min=0.0, help="How many seconds to time each runtime.")] = 1.0,
         target: Annotated[str | None, typer.Option(
             "--march", "--target", help="wasm32: a page in which you draw digits and train on "
             "them. A microcontroller, as cortex-m4: the model is quantised, and run on a board "
             "that qemu-system-arm emulates.")] = None,
         serve: Annotated[bool, typer.Option(
             "--serve", help="Make the page for wasm32, and serve it on this machine until "
             "Ctrl-C.")] = False) -> int:
    """Take a trained classifier of digits through every stage.

    It prints what each stage wrote, and the accuracy and speed of the result; for a
    microcontroller its accuracy, RAM, flash and instructions on an emulated board, and with --serve
    the address of a page that classifies and trains in the browser."""
    from graphtool.compile.as_is import build
    from graphtool.io import npz
    from graphtool.native import runtime
    folder = samples()
    if serve:
        target = _served(target)
    data = npz.load(folder / "digits_test.npz")
    images, labels = data["image"], data["y"]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("GT0330", f"cannot write: {error.strerror}", where=str(out)) from error
    if target == "wasm32":
        from graphtool.cli.demo_web import in_page
        return in_page(out, folder, serve)
    if target is not None:
        from graphtool.cli.demo_board import on_board
        return on_board(out, folder, images, labels, target)
    imported, module = _front(folder / "digits.onnx", out)
    with terminal.stage("build", "C, library, header, weights, manifest", out / "build"):
        built = build(module, out / "build", name="digits")
    from graphtool import interp
    model = runtime.load(built)
    name = model.inputs[0].name
    scores = {
        "evaluator": _accuracy(lambda x: interp.run(imported, {name: x}), images, labels),
        "compiled C": _accuracy(lambda x: dict(model.run({name: x})), images, labels)}
    if rival := _onnxruntime(folder / "digits.onnx"):
        scores["onnxruntime"] = _accuracy(rival, images, labels)
    terminal.lines(["", f"accuracy on {len(labels)} test images of handwritten digits"])
    for who, right in scores.items():
        terminal.lines([f"  {who:<12} {right} right ({100 * right / len(labels):.2f} %)"])
    _race(model, name, images, folder / "digits.onnx", seconds)
    return 0 if len(set(scores.values())) == 1 else 1


def _served(target: str | None) -> str:
    """The target of a page. Raises UsageError GT2117 for one that has none."""
    if target not in (None, "wasm32"):
        raise UsageError("GT2117", f"the demo for {target} has no page to serve",
                         hint="leave --target out: the page is for wasm32")
    return "wasm32"


def _front(source: Path, out: Path) -> tuple[Module, Module]:
    """Imported and optimised, both written as graphs."""
    from graphtool import importers, passes
    from graphtool.ir import serial
    from graphtool.target import detect
    with terminal.stage("import", "the model as a graph", out / "digits.graph.json"):
        imported = importers.import_source(str(source))
        serial.save(imported, out / "digits.graph.json")
    with terminal.stage("opt", "the default passes", out / "digits.opt.graph.json"):
        module = passes.run(imported, supply={"target": detect()})
        serial.save(module, out / "digits.opt.graph.json")
    from graphtool.report.stats import stats
    from graphtool.report.table import human
    s = stats(module)
    terminal.lines([f"        {s.nodes} nodes, {s.params + s.constants:,} weights, "
                    f"{human(s.flops)} FLOPs"])
    return imported, module


def _accuracy(run: Callable[[Any], dict[str, Any]], images: Any, labels: Any) -> int:
    (logits,) = run(images).values()
    return int((logits.argmax(axis=1) == labels).sum())


def _onnxruntime(model: Path) -> Callable[[Any], dict[str, Any]] | None:
    from importlib.util import find_spec

    from graphtool.verify.sides import of_onnx
    if not find_spec("onnxruntime"):
        return None
    side = of_onnx(model)
    return lambda x: side.run({side.inputs[0]: x})


def _race(model: Any, name: str, images: Any, source: Path, seconds: float) -> None:
    from importlib.util import find_spec

    from graphtool.report.bench import bench, bench_lines
    from graphtool.verify.session import onnx_session
    one = images[:1]
    out = model.run({name: one})
    contestants: dict[str, Callable[[], object]] = {
        "graphtool": lambda: model.run({name: one}, out=out)}
    if find_spec("onnxruntime"):
        session = onnx_session(source, model.threads)
        ours = session.get_inputs()[0].name
        contestants["onnxruntime"] = lambda: session.run(None, {ours: one})
    terminal.lines(["", "one image at a time"])
    terminal.lines(f"  {line}" for line in bench_lines(bench(contestants, model.threads, seconds)))
