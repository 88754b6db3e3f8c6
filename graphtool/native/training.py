"""Compiles a training graph: init, step, loss and predict in one library over one state.

Their constants are built into the library, so that it needs no other file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphtool import passes
from graphtool.emit.c import emit
from graphtool.emit.headers import used_headers
from graphtool.emit.names import check_name
from graphtool.emit.trainer import Judge, trainer_program
from graphtool.emit.training import state_layout, training_sources
from graphtool.io.directory import replacing
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.kernels.choice.rules import Rules
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.native.blas import linking
from graphtool.native.build import (
    Options,
    build_key,
    compile_all,
    describe,
    parts_of,
    unchanged,
    weights_of,
    write_manifest,
    write_weights,
)
from graphtool.native.compiler import find
from graphtool.passes.distribute import distribute
from graphtool.target import Target, named
from graphtool.transforms.training import programs
from graphtool.transforms.training.phases import phase_of, phases
from graphtool.transforms.training.recipe import loss_call


def build_training(module: Module, out_dir: Path, *, name: str = "model",
                   target: Target | None = None, cc: str | None = None, jobs: int | None = None,
                   exe: bool = False, static: bool = False, openmp: bool = True,
                   mpi: bool = False, rules: Rules | None = None,
                   index_checks: bool = True, nodes: Mapping[str, str] | None = None) -> Path:
    """Compile a training graph into `out_dir`; `exe`: with a program that trains.

    `mpi`: for several processes; the graph is distributed if it is not yet.
    Raises as `build` does, and InputError GT0617.
    """
    check_name(name)
    if mpi:
        module = distribute(module)
    target, cuts = target or named("native"), programs(module)
    lowered = {part: _lowered(cut, f"{name}_{part}", target, rules, index_checks)
               for part, cut in cuts.items()}
    only = {part: p for part, (p, _) in lowered.items()}
    options = Options(exe, static, "embed")
    sources = training_sources(name, only, mpi)
    for program, held in lowered.values():
        sources |= emit(program, parts_of(program.name, held, "embed"), owner=name,
                        state=True, nodes=nodes)
    if exe:
        sources[f"{name}_main.c"] = trainer_program(name, only, _judge(module))
        sources |= used_headers(sources.values())
    if mpi:  # in the files themselves, so that no compiler makes several lone processes of them
        sources = {file: f"#define GT_MPI 1\n{text}" if file.endswith(".c") else text
                   for file, text in sources.items()}
    compiler = linking(find(cc, target, openmp=openmp, mpi=mpi), sources).of_class(
        rules.precision if rules else "default", nodes is not None)
    key = build_key(sources, [w.digest for _, held in lowered.values() for w in held], compiler,
                    options)
    if unchanged(out_dir, key):
        return out_dir
    with replacing(out_dir) as work:
        for file, source in sources.items():
            (work / file).write_text(source)
        offsets = {part: write_weights(work, program.name, held,
                                       parts_of(program.name, held, "embed"), "embed")
                   for part, (program, held) in lowered.items()}
        made = compile_all(work, name, [p.name for p in only.values()], compiler, jobs, options)
        step = describe(*lowered["step"], key)
        write_manifest(work, step | made | {
            "header": f"{name}.h", "weights_offset": offsets["step"], "weights_mode": "embed",
            "training": _training(name, module, only) | {"distributed": mpi},
            "steps": _phased(step["steps"], cuts["step"])})
    return out_dir


def _lowered(cut: Module, name: str, target: Target,
             rules: Rules | None, index_checks: bool) -> tuple[Program, list[Weight]]:
    """One of the graph's functions as a program, with the constants that it uses."""
    ready = passes.run(cut, verify=False, supply={"target": target, "rules": rules})
    program = lower(ready, target, name=name, index_checks=index_checks)
    return program, weights_of(program, {w.digest: w for w in collect_all(ready.graph)})


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


MEASURES = {"cross_entropy": "classes", "bce": "probability", "mse": "distance",
            "huber": "distance"}


def _training(name: str, module: Module, only: Mapping[str, Program]) -> dict[str, Any]:
    """What build.json says of the training: the state's layout and each function's ports."""
    cells, size = state_layout(only["step"])
    rows = {part: describe(p, [], "") for part, p in only.items()}
    roles = {k: v for k, v in module.meta["training"].items()
             if k not in ("gradients", "seed", "distributed", "amp")}
    return {**roles, "name": name, "state_bytes": size,
            "state": [{"name": c.name, "type": c.dtype.short, "shape": list(c.shape),
                       "offset": c.offset} for c in cells],
            "programs": {part: {k: row[k] for k in ("arena", "inputs", "outputs", "dims",
                                                 "requires", "sizes")}
                         for part, row in rows.items()}}
