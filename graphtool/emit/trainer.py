"""The main program of a training build: tables of its state and parts; kernels/train.h contains the
rest.

It knows programs and offsets, but no graph. A `Judge` describes the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphtool.emit.lines import Writer
from graphtool.emit.main import dim_rows, including, port_row, run_function, shape_function, table
from graphtool.emit.training import Cell, state_layout
from graphtool.escaping import c_string
from graphtool.loops.program import Port, Program
from graphtool.symbolic import product

PARTS = ("step", "loss", "predict", "init")
RATE = "lr"
COMPLEX = "C64"  # in safetensors: two float32


@dataclass(frozen=True, slots=True)
class Judge:
    """How results are judged: none, classes, probability, logit or distance; and the defaults."""

    measure: str
    target: str
    axis: int
    ignored: int
    lr: float
    accumulate: int
    model: Mapping[str, Sequence[str]]  # what a checkpoint of it has, and the arrays that hold it


def trainer_program(name: str, programs: Mapping[str, Program], judge: Judge,
                    fixed: Sequence[Cell] = ()) -> str:
    """C with a `main` that trains; `fixed` are arrays of the model that no step changes."""
    cells, size = state_layout(programs["step"])
    at = {c.name: c.offset for c in cells}
    w = Writer()
    for part in PARTS:
        _part(w, part, programs[part], at)
    own = {p for parts in judge.model.values() for p in parts}
    norm = -1 if "grad_norm" in own else at.get("grad_norm", -1)
    rows = {"cells": [_cell(c.name, [c]) for c in sorted(cells, key=_file_order)],
            "kept": _kept(cells, fixed, judge)}
    for kind, lines in rows.items():
        table(w, f"static const learner_cell {kind}", lines)
    w.line()
    with w.block("static const learner_model model = {", "};"):
        w.line(f"{c_string(name)}, {c_string(judge.target)}, {size}, {len(cells)}, "
               f"{len(rows['kept'])}, cells, kept,")
        w.line(f"{at['step']}, {at.get('micro', -1)}, {norm}, "
               f"{judge.accumulate}, MEASURE_{judge.measure.upper()}, {judge.axis}, "
               f"{judge.ignored}, {_batch(programs['step'], at)}, {judge.lr!r}, "
               f"{f'{name}_fixed' if fixed else 0},")
        for part in PARTS:
            w.line(f"{_row(name, part, programs[part])},")
    return including(f"{name}.h", "train.h", text=w.text())


def _part(w: Writer, part: str, program: Program, at: Mapping[str, int]) -> None:
    """The ports of a part, the address of each, and the function that computes their sizes."""
    shape_function(w, program, f"{part}_shapes")
    for kind, ports in (("in", program.inputs), ("out", program.outputs)):
        table(w, f"static main_port {part}_{kind}", map(port_row, ports))
        table(w, f"static const int64_t {part}_{kind}_at", (str(_place(p, at)) for p in ports), "0")
    table(w, f"static const main_dim {part}_dims", dim_rows(program))
    w.line()
    run_function(w, program, f"{part}_run")


def _place(p: Port, at: Mapping[str, int]) -> str:
    if p.name in at:
        return str(at[p.name])
    return "LEARNER_RATE" if p.name == RATE else "LEARNER_GIVEN"


def _row(name: str, part: str, program: Program) -> str:
    return (f"{{{len(program.inputs)}, {len(program.outputs)}, {len(program.dims)}, "
            f"{len(program.sizes)}, {part}_in, {part}_out, {part}_in_at, {part}_out_at,\n"
            f"     {part}_dims, {part}_shapes, {name}_{part}_arena_bytes, {part}_run}}")


def _batch(step: Program, at: Mapping[str, int]) -> int:
    """The number of examples that a step is compiled for; -1 if it is open."""
    first = next(p for p in step.inputs if p.name not in at and p.name != RATE)
    size = first.shape[0] if first.shape else 1
    return size if isinstance(size, int) else -1


# ---- checkpoints -------------------------------------------------------------------------------

def _kept(cells: Sequence[Cell], fixed: Sequence[Cell], judge: Judge) -> list[str]:
    """The model's arrays under torch's names. What is fixed has places below 0: −1, −2, …"""
    held = {c.name: c for c in cells} | {
        c.name: replace(c, offset=-1 - c.offset) for c in fixed}
    rows = [(name, [held[p] for p in parts]) for name, parts in judge.model.items()]
    return [_cell(*row) for row in sorted(
        rows, key=lambda row: _file_order(replace(row[1][0], name=row[0]), len(row[1])))]


def _file_order(c: Cell, parts: int = 1) -> tuple[float, str]:
    """The order in which safetensors writes arrays: wide types first, then by name; complex numbers
    stand before those of their parts."""
    return -c.dtype.rank - (0.5 if parts > 1 else 0), c.name


def _cell(name: str, parts: Sequence[Cell]) -> str:
    c = parts[0]
    size = product(c.shape) * c.dtype.bytes * len(parts)
    shape = ", ".join(map(str, c.shape)) or "0"
    kind = COMPLEX if len(parts) > 1 else c.dtype.safetensors
    return (f"{{{c_string(name)}, {c_string(kind)}, {len(c.shape)}, {{{shape}}}, {size}, "
            f"{c.offset}, {parts[-1].offset}}}")
