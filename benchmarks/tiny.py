"""The networks of MLPerf Tiny on microcontrollers, in int8 and in float32: exact bytes of RAM,
flash and stack, and instructions on emulated boards, whose outputs are compared with the
evaluator's bits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import graphtool
from benchmarks import tiny_emx, work
from benchmarks.models import tiny
from graphtool import interp, passes
from graphtool.compile.build import emit
from graphtool.compile.options import Build, Objective, Precision
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.errors import CompilerError
from graphtool.ir.graph import Module
from graphtool.native import board
from graphtool.ops.costs import nbytes
from graphtool.report.size import MemoryLimits, measured
from graphtool.transforms.quantising import Quantisation

Row = dict[str, Any]
COLUMNS = ("network", "target", "arena", "RAM", "flash", "of it weights", "stack",
           "instructions", "a multiply-add", "bits")
PEER = "cortex-m4"  # the target on which emx-onnx-cgen is measured too, and float32


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--targets", default="cortex-m4,cortex-m0plus,cortex-m55", metavar="NAMES",
                        help=f"separated by commas, of {', '.join(board.EMULATED)}")
    parser.add_argument("--networks", default=",".join(tiny.MODELS), metavar="NAMES",
                        help="separated by commas")


def main(options: argparse.Namespace) -> int:
    """Measure each network for each target; the table goes to results/tiny.md."""
    rows = []
    for name in options.networks.split(","):
        module, examples = quantised(name)
        for target in options.targets.split(","):
            rows += of_target(name, module, examples, target)
            if target == PEER:
                rows += of_floats(name, target)
    text = report(rows, options.command_line)
    work.results("tiny.md").write_text(text)
    print(f"\n{text}")
    return sum(r["bits"] == "differ" for r in rows)


def quantised(name: str) -> tuple[Module, Any]:
    """The network in int8, its input and output too, and examples of its input."""
    model, examples = tiny.made(name)
    module = graphtool.import_model(model, (examples[:1],))
    (key,) = module.inputs
    how = Quantisation(("static",), stored=True, io="int8")
    return graphtool.quantise(module, how, {key: examples.numpy()}), examples[:1].numpy()


def of_target(name: str, module: Module, examples: Any, target: str) -> list[Row]:
    """The rows of a target: ours, on the Cortex-M4 the peer's if it is installed, ours with rows
    that are streamed if that needs less, and that of a step over new frames."""
    x, want = exact(module, examples, target)
    rows = [row(name, module, [x], want, target)]
    if target == PEER and tiny_emx.here(target):
        peer = tiny_emx.row(work.root() / "tiny" / f"{name}_emx", module, x, want.tobytes(),
                            target)
        each = peer["instructions"] / rows[0]["multiply-adds"]
        rows.append({"network": name.upper(), **peer, "a multiply-add": f"{each:.2f}"})
    streamed = row(name, module, [x], want, target, "ram")
    if streamed["arena"] < rows[0]["arena"]:
        rows.append({**streamed, "network": f"{name.upper()}, streamed"})
    if name in tiny.STEPS:
        axis = tiny.STEPS[name]
        step = passes.run(module, f"step{{axis={axis}}}")
        frames = next(iter(step.inputs.values())).shape[axis]
        xs = np.split(x, x.shape[axis] // frames, axis)
        rows.append({**row(name, step, xs, want, target), "network": f"{name.upper()}, a step"})
    return told(rows)


def of_floats(name: str, target: str) -> list[Row]:
    """The row of the network in float32; the board may be too small to run it."""
    model, examples = tiny.made(name)
    module = graphtool.import_model(model, (examples[:1],))
    (key,) = module.inputs
    ready = graphtool.optimize(module, target=target, precision="strict")
    (want,) = interp.run(ready, {key: examples[:1].numpy()}).values()
    try:
        found = row(name, module, [examples[:1].numpy()], want, target, precision="strict")
    except CompilerError as error:
        if "overflowed" not in error.where:
            raise
        found = row(name, module, [], want, target, precision="strict") | {"bits": "too large"}
    return told([{**found, "network": f"{name.upper()}, float32"}])


def told(rows: list[Row]) -> list[Row]:
    """The rows, which are printed."""
    for r in rows:
        print(line([r[c] for c in COLUMNS]), flush=True)
    return rows


def row(name: str, module: Module, xs: Sequence[Any], want: Any, target: str,
        objective: Objective = "usual", precision: Precision = "default") -> Row:
    """What the network takes on a target; where a board can be emulated here, the instructions of
    a run, and whether the output is `want` after a run on each of the inputs."""
    how = Build(target=target, objective=objective, precision=precision)
    unit = unit_of(Source(module), how, name)
    report = measured(unit, how, {}, MemoryLimits())
    count, got = on_board(name, module, xs, target, how)
    return {"network": name.upper(), "target": target, "arena": report.arena, "RAM": report.ram,
            "flash": report.flash, "of it weights": report.weights, "stack": report.stack,
            "instructions": count or "", "multiply-adds": report.operations / 2,
            "a multiply-add": f"{count / (report.operations / 2):.2f}" if count else "",
            "bits": "" if got is None else apart(got, want)}


def apart(got: bytes, want: Any) -> str:
    """Whether the bytes are those of an array; floats may differ by how they are summed."""
    if got == want.tobytes():
        return "equal"
    if want.dtype != np.float32:
        return "differ"
    return f"{np.abs(np.frombuffer(got, want.dtype) - want.ravel()).max() / np.abs(want).max():.0e}"


def on_board(name: str, module: Module, xs: Sequence[Any], target: str, how: Build
             ) -> tuple[int, bytes | None]:
    """Instructions of a run on an emulated board, and the bytes of the last one."""
    if board.missing(target) or not xs:
        return 0, None
    folder = work.root() / "tiny" / f"{name}_{target}_{how.objective}_{how.precision}"
    unit = unit_of(Source(module), how, name)
    emit(unit, folder, how)
    states = [n for t in list(module.inputs.values())[1:] if isinstance(n := nbytes(t), int)]
    (folder / "board.c").write_text(board.program(name, [x.tobytes() for x in xs], states))
    sources = sorted(p.name for p in folder.glob("*.c") if p.name != f"{name}_example.c")
    got, count = board.outputs(board.run(folder, sources, target), target)
    return count // len(xs), got[-1]


def exact(module: Module, examples: Any, target: str) -> tuple[Any, Any]:
    """The examples in bytes, and the evaluator's output for them."""
    (key,) = module.inputs
    scale, zero = module.meta["grids"]["inputs"][key]
    x = np.clip(np.rint(examples / scale) + zero, -128, 127).astype(np.int8)
    (want,) = interp.run(graphtool.optimize(module, target=target), {key: x}).values()
    return x, want


def line(cells: list[Any]) -> str:
    return "| " + " | ".join(f"{c:,}" if isinstance(c, int) else str(c) for c in cells) + " |"


def report(rows: list[Row], command: str) -> str:
    """Markdown: the table, and what its columns are."""
    return "\n".join([
        "# MLPerf Tiny on microcontrollers", "",
        f"{datetime.now(UTC):%Y-%m-%d}. Bytes are exact: of the C library and the compiler's "
        "runtime nothing is counted. RAM is the arena, input, output and static data. Instructions "
        "are counted by qemu (`-icount shift=0`), they are not cycles; `bits`: the output of the "
        "board beside the evaluator's, for float32 (`--precision strict`) the largest difference "
        "over the largest number. gcc -O2; seeded weights. Rows of emx-onnx-cgen "
        "are its C of the same networks: its arena is what malloc gives at the same time. SWW is a "
        "network of our own, as a streaming wake word is: `a step` computes what two new frames of "
        f"60 change, and its RAM has the state. Command: `{command}`.", "",
        line(list(COLUMNS)), "|" + "---|" * 2 + "---:|" * 7 + "---|",
        *(line([r[c] for c in COLUMNS]) for r in rows), ""])
