"""The networks of MLPerf Tiny in int8 on microcontrollers: exact bytes of RAM, flash and stack, and
instructions on emulated boards, whose outputs are compared with the evaluator's bits."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

import numpy as np

import graphtool
from benchmarks import tiny_emx, work
from benchmarks.models import tiny
from graphtool import interp
from graphtool.compile.build import emit
from graphtool.compile.options import Build, Objective
from graphtool.compile.source import Source
from graphtool.compile.unit import unit_of
from graphtool.ir.graph import Module
from graphtool.native import board
from graphtool.report.size import MemoryLimits, measured
from graphtool.transforms.quantising import Quantisation

Row = dict[str, Any]
COLUMNS = ("network", "target", "arena", "RAM", "flash", "of it weights", "stack",
           "instructions", "a multiply-add", "bits")
PEER = "cortex-m4"  # the target on which emx-onnx-cgen is measured too


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
    """The rows of a target: ours, on the Cortex-M4 the peer's if it is installed, and ours with
    rows that are streamed if that needs less."""
    rows = [row(name, module, examples, target)]
    if target == PEER and tiny_emx.here(target):
        x, want = exact(module, examples, target)
        peer = tiny_emx.row(work.root() / "tiny" / f"{name}_emx", module, x, want, target)
        each = peer["instructions"] / rows[0]["multiply-adds"]
        rows.append({"network": name.upper(), **peer, "a multiply-add": f"{each:.2f}"})
    streamed = row(name, module, examples, target, "ram")
    if streamed["arena"] < rows[0]["arena"]:
        each = streamed["instructions"] / rows[0]["multiply-adds"] if streamed["bits"] else 0
        rows.append({**streamed, "network": f"{name.upper()}, streamed",
                     "a multiply-add": f"{each:.2f}"})
    for r in rows:
        print(line([r[c] for c in COLUMNS]), flush=True)
    return rows


def row(name: str, module: Module, examples: Any, target: str, objective: Objective = "usual"
        ) -> Row:
    """What the network takes on a target; instructions where a board can be emulated here."""
    how = Build(target=target, objective=objective)
    unit = unit_of(Source(module), how, name)
    report = measured(unit, how, {}, MemoryLimits())
    count, same = on_board(name, module, examples, target, how)
    return {"network": name.upper(), "target": target, "arena": report.arena, "RAM": report.ram,
            "flash": report.flash, "of it weights": report.weights, "stack": report.stack,
            "instructions": count or "", "multiply-adds": report.operations / 2,
            "a multiply-add": f"{count / (report.operations / 2):.2f}" if count else "",
            "bits": {None: "", True: "equal", False: "differ"}[same]}


def on_board(name: str, module: Module, examples: Any, target: str, how: Build
             ) -> tuple[int, bool | None]:
    """Instructions of a run on an emulated board, and whether its bytes are the evaluator's."""
    if board.missing(target):
        return 0, None
    folder = work.root() / "tiny" / f"{name}_{target}"
    unit = unit_of(Source(module), how, name)
    emit(unit, folder, how)
    x, want = exact(module, examples, target)
    (folder / "board.c").write_text(board.program(name, [x.tobytes()]))
    sources = sorted(p.name for p in folder.glob("*.c") if p.name != f"{name}_example.c")
    (got,), count = board.outputs(board.run(folder, sources, target), target)
    return count, got == want


def exact(module: Module, examples: Any, target: str) -> tuple[Any, bytes]:
    """The examples in bytes, and the evaluator's output for them."""
    (key,) = module.inputs
    scale, zero = module.meta["grids"]["inputs"][key]
    x = np.clip(np.rint(examples / scale) + zero, -128, 127).astype(np.int8)
    (want,) = interp.run(graphtool.optimize(module, target=target), {key: x}).values()
    return x, want.tobytes()


def line(cells: list[Any]) -> str:
    return "| " + " | ".join(f"{c:,}" if isinstance(c, int) else str(c) for c in cells) + " |"


def report(rows: list[Row], command: str) -> str:
    """Markdown: the table, and what its columns are."""
    return "\n".join([
        "# MLPerf Tiny in int8 on microcontrollers", "",
        f"{datetime.now(UTC):%Y-%m-%d}. Bytes are exact: of the C library and the compiler's "
        "runtime nothing is counted. RAM is the arena, input, output and static data. Instructions "
        "are counted by qemu (`-icount shift=0`), they are not cycles; `bits`: the output of the "
        "board beside the evaluator's. gcc -O2; seeded weights. Rows of emx-onnx-cgen "
        "are its C of the same networks: its arena is what malloc gives at the same time. "
        f"Command: `{command}`.", "", line(list(COLUMNS)), "|" + "---|" * 2 + "---:|" * 7 + "---|",
        *(line([r[c] for c in COLUMNS]) for r in rows), ""])
