"""demo: the whole tour on the shipped samples, each stage with what it wrote."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphtool.cli import terminal
from graphtool.errors import InputError

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
             "--march", "--target", help="A microcontroller, as cortex-m4: the model is quantised "
             "and run on a board that qemu-system-arm emulates.")] = None) -> int:
    """Take a trained classifier of digits through every stage.

    It prints what each stage wrote, and the accuracy and speed of the result; with --target its
    accuracy, RAM, flash and instructions on an emulated board."""
    from graphtool.compile.as_is import build
    from graphtool.io import npz
    from graphtool.native import runtime
    folder = samples()
    data = npz.load(folder / "digits_test.npz")
    images, labels = data["image"], data["y"]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("GT0330", f"cannot write: {error.strerror}", where=str(out)) from error
    if target is not None:
        from graphtool.cli.demo_board import on_board
        return on_board(out, folder, images, labels, target)
    imported, module = _front(folder / "digits.onnx", out)
    with _stage("build", "C, library, header, weights, manifest", out / "build"):
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


def _front(source: Path, out: Path) -> tuple[Module, Module]:
    """Imported and optimised, both written as graphs."""
    from graphtool import importers, passes
    from graphtool.ir import serial
    from graphtool.target import detect
    with _stage("import", "the model as a graph", out / "digits.graph.json"):
        imported = importers.import_source(str(source))
        serial.save(imported, out / "digits.graph.json")
    with _stage("opt", "the default passes", out / "digits.opt.graph.json"):
        module = passes.run(imported, supply={"target": detect()})
        serial.save(module, out / "digits.opt.graph.json")
    from graphtool.report.stats import stats
    from graphtool.report.table import human
    s = stats(module)
    terminal.lines([f"        {s.nodes} nodes, {s.params + s.constants:,} weights, "
                    f"{human(s.flops)} FLOPs"])
    return imported, module


@contextmanager
def _stage(verb: str, what: str, path: Path) -> Iterator[None]:
    start = time.perf_counter()
    yield
    spent = time.perf_counter() - start
    terminal.lines([f"{verb:<7} {what}: {path} ({_bytes(path)}, {spent:.2f} s)"])
    if path.is_dir():
        terminal.lines([f"        {p.name} ({_bytes(p)})" for p in sorted(path.iterdir())])


def _bytes(path: Path) -> str:
    from graphtool.report.table import human
    inside = path.rglob("*") if path.is_dir() else (path,)
    return human(sum(p.stat().st_size for p in inside if p.is_file()), "B")


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
