"""demo --target: the classifier of digits in bytes, on a board that is emulated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphtool.cli import terminal

if TYPE_CHECKING:
    from graphtool.compile.unit import LibraryUnit
    from graphtool.ir.graph import Module

READ = 64  # the first images, by which the ranges of activations are chosen; no labels are read


def on_board(out: Path, folder: Path, images: Any, labels: Any, target: str) -> int:
    """Quantise the model, write its C, and run it on the board on each image.

    It prints RAM, flash, accuracy and instructions. The result is 0 if each byte of the board is
    the evaluator's."""
    import numpy as np

    from graphtool import interp, passes
    from graphtool.compile.options import Build
    from graphtool.compile.source import Source
    from graphtool.compile.unit import unit_of
    from graphtool.native import board
    from graphtool.report.size import MemoryLimits, lines, measured
    board.check(target)
    how = Build(target=target)
    model = _quantised(folder / "digits.onnx", images, out)
    examples = _bytes(model, images)
    unit = unit_of(Source(model), how, "digits")
    sources = _written(unit, how, out / "c", examples)
    got, count = board.outputs(board.run(out / "c", sources, target), target)
    ready, (name,) = passes.run(model, supply={"target": how.goal}), model.inputs
    want = [next(iter(interp.run(ready, {name: x[None]}).values()))[0] for x in examples]
    bits = sum(y == w.tobytes() for y, w in zip(got, want, strict=True))
    right = sum(int(np.frombuffer(y, w.dtype).argmax() == label)
                for y, w, label in zip(got, want, labels, strict=True))
    total = len(labels)
    terminal.lines(["", *lines(measured(unit, how, {}, MemoryLimits())), "",
                    f"on {board.EMULATED[target]}, emulated by {board.EMULATOR}",
                    f"  {right} of {total} images right ({100 * right / total:.2f} %)",
                    f"  {bits} of {total} outputs are the evaluator's, bit for bit",
                    f"  {count // total} instructions an image"])
    return 0 if bits == total else 1


def _quantised(source: Path, images: Any, out: Path) -> Module:
    """The model for one image at a time in integers of 8 bits, its input and output too."""
    from graphtool import importers
    from graphtool.ir import serial
    from graphtool.passes.quantise.calibrate import from_arrays
    from graphtool.transforms.quantising import Quantisation, quantised
    module = importers.import_source(str(source), dynamic={"batch": (1, 1)})
    (name,) = module.inputs
    small = quantised(module, Quantisation(("static",), stored=True, io="int8"),
                      from_arrays({name: images[:READ]}, module, READ))
    serial.save(small, out / "digits.graph.json")
    terminal.lines([f"quantise the model in integers of 8 bits: {out / 'digits.graph.json'}"])
    return small


def _bytes(model: Module, images: Any) -> Any:
    """The images as the bytes of the model's input."""
    from graphtool.io.grids import as_bytes
    (name,), (kind,) = model.inputs, model.inputs.values()
    scale, zero = model.meta["grids"]["inputs"][name]
    return as_bytes(images, scale, zero, kind.dtype.numpy)


def _written(unit: LibraryUnit, how: Any, folder: Path, examples: Any) -> Sequence[str]:
    """Write the C of the model, and a program that runs it on the examples; the files to
    compile."""
    from graphtool.compile.build import emit
    from graphtool.native import board
    emit(unit, folder, how)
    program = board.program("digits", [x.tobytes() for x in examples])
    (folder / "board.c").write_bytes(program.encode())
    terminal.lines([f"emit     the C of the model, and board.c, which runs it: {folder}"])
    return sorted(p.name for p in folder.glob("*.c") if p.name != "digits_example.c")
