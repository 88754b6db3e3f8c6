"""The C of a training graph: init, step, loss and predict in one library over one state.

Their constants are built into the library, equal ones once, so that it needs no other file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphtool.analysis.phases import phase_of, phases
from graphtool.compile.lowering import LoweredFunction
from graphtool.compile.options import Build
from graphtool.compile.rows import describe
from graphtool.compile.texts import Texts, beyond_c, nodes_of, precision, store_of
from graphtool.compile.unit import LibraryUnit
from graphtool.compile.weights import WeightsSide, common, placed
from graphtool.emit.c import emit
from graphtool.emit.headers import used_headers
from graphtool.emit.main import Judge, trainer_program
from graphtool.emit.training import Cell, state_layout, training_sources
from graphtool.io.weights import layout
from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.transforms.training.recipe import loss_call

MEASURES = {"cross_entropy": "classes", "bce": "probability", "mse": "distance",
            "huber": "distance"}


def training_texts(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction], how: Build) -> Texts:
    """The C of the functions of a training graph; for several processes with `mpi`, with a program
    that trains if `exe` is true."""
    assert unit.state is not None
    place = "c" if how.single or unit.target.freestanding else "embed"
    side = WeightsSide(unit.name, common((f.program for f in lowered.values()), store_of(lowered)),
                       place)
    programs = {part: placed(f.program, side.held) for part, f in zip(
        unit.entries, lowered.values(), strict=True)}
    fixed = _fixed(unit.state)
    files = training_sources(unit.name, programs, how.mpi, bool(fixed))
    for program in programs.values():
        files |= emit(program, side.parts, owner=unit.name, state=True,
                      nodes=nodes_of(unit, lowered, how))
    if how.exe:
        files[f"{unit.name}_main.c"] = trainer_program(unit.name, programs, _judge(unit.state),
                                                       fixed)
        files |= used_headers(files.values())
    if how.mpi:  # in the files themselves, so that no compiler makes several lone processes of them
        files = {file: f"#define GT_MPI 1\n{text}" if file.endswith(".c") else text
                 for file, text in files.items()}
    step = describe(programs["step"], side.held)
    cut = unit.entries["step"].module
    assert cut is not None
    rows = step | {"header": f"{unit.name}.h", "weights": f"{unit.name}.safetensors",
                   "steps": _phased(step["steps"], cut), "training": _roles(
                       unit.name, unit.state, programs, fixed) | {"distributed": how.mpi}}
    sides = [side, *([WeightsSide(f"{unit.name}_fixed", list(unit.state.kept.values()), place)]
                     if fixed else [])]
    return Texts(unit.name, files, tuple(sides), rows, beyond_c(programs.values()),
                 precision(programs["step"]), devices=unit.target.devices,
                 programs=tuple(p.name for p in programs.values()))


def _phased(rows: list[dict[str, Any]], cut: Module) -> list[dict[str, Any]]:
    """The rows of the steps, each with its phase: forward, backward, optimizer."""
    known = phases(cut)
    return [row | {"phase": phase_of(row["label"], known)} for row in rows]


def _judge(module: Module) -> Judge:
    """How the results of inference are judged, and what else a trainer starts from."""
    roles = module.meta["training"]
    measure, arguments = "none", dict[str, Any]()
    if roles["target"]:
        call = loss_call(roles["loss"], {})
        arguments = dict(call.arguments)
        logits = call.name == "bce" and arguments.get("from_logits")
        measure = "logit" if logits else MEASURES[call.name]
    rank = module.graph.outputs[module.output_names.index(
        f"predict.{roles['predict'][0]}")].type.rank
    return Judge(measure, roles["target"], arguments.get("axis", 1) % max(rank, 1),
                 arguments.get("ignore_index", -100), roles["lr"], roles["accumulate"],
                 roles["model"])


def _fixed(module: Module) -> tuple[Cell, ...]:
    """The arrays of the model that no step changes, as NAME_fixed gives them."""
    at, _ = layout(module.kept.values())
    return tuple(Cell(n, w.dtype, w.shape, at[w.digest]) for n, w in module.kept.items())


def _cell(c: Cell) -> dict[str, Any]:
    return {"name": c.name, "type": c.dtype.short, "shape": list(c.shape), "offset": c.offset}


def _roles(name: str, module: Module, programs: Mapping[str, Program],
           fixed: Sequence[Cell]) -> dict[str, Any]:
    """What build.json says of the training: the state's layout and each function's ports."""
    cells, size = state_layout(programs["step"])
    rows = {part: describe(p) for part, p in programs.items()}
    roles = {k: v for k, v in module.meta["training"].items()
             if k not in ("distributed", "amp")}
    return {**roles, "name": name, "state_bytes": size,
            "state": list(map(_cell, cells)), "fixed": list(map(_cell, fixed)),
            "programs": {part: {k: row[k] for k in ("arena", "inputs", "outputs", "dims",
                                                 "requires", "sizes")}
                         for part, row in rows.items()}}
