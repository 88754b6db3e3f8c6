"""From a graph to loops, to C, to a library, and the training of a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.api.arguments import Array, Pathlike, checked, goal
from graphtool.compile.build import build as build_unit
from graphtool.compile.option import takes
from graphtool.compile.options import Build
from graphtool.compile.source import source_of
from graphtool.compile.unit import unit_of
from graphtool.emit.c import emit
from graphtool.errors import UsageError
from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.report.size import within
from graphtool.train import checkpoint
from graphtool.train import dataset as examples
from graphtool.train.loop import Plan, Progress, Trainer
from graphtool.train.model import TrainModel

Row = Mapping[str, float | int]
Torch = TypeVar("Torch")  # what import_model takes


@checked
def lower_model(module: Module, *, name: str = "model", target: str = "cpu",
                index_checks: bool = True) -> Program:
    """The loops and the memory plan of a graph. No pass runs: run `optimize` before.

    `name` is the name of the C functions, `target` the target of the passes. With `index_checks`
    a run finds indices that are out of range.
    """
    return lower(module, goal(target), name=name, index_checks=index_checks)


@checked
def emit_c(program: Program) -> dict[str, str]:
    """The C of a program: the texts of its files by name, with the headers that they include.

    Raises UsageError GT2110 for a name that C functions cannot have.
    """
    return emit(program)


@takes(Build)
def build(source: Module | Program | Pathlike | Torch | Mapping[str, Module], out_dir: Pathlike,
          how: Build) -> Path:
    """Compile a model into a directory and return its path.

    A source that is not a graph is imported first; a module without fusion groups goes through the
    passes, with `precision`, `kernels`, `tuning`, `assume`, `machine` and `threads` as `optimize`
    takes them. A training graph becomes a training build, with `mpi` one of several processes. The
    target `fat` is one library for every level of x86-64. Modules by name become entry points of
    one library over one set of weights, each of which `load(out_dir, entry=…)` loads; with a
    `tokenizer` they write text. `cc` is the compiler's command, `jobs` how many files at a time,
    `exe` adds a program, `static` makes a .a library, `weights` leaves them in a file, embeds them
    into the library, or writes C arrays; `keep` writes the graph of each stage, `debug_lines` what
    debuggers show. `max_ram` and `max_flash` are limits, as "64K": kernels of fewer bytes are taken
    if they are needed for it. Without `index_checks` an index out of range goes unseen; a program
    has its checks already. Raises CompilerError GT212x when the compiler is missing or fails,
    UsageError GT2109 if the limits cannot be kept, GT3052, GT3054, GT3055 for options that do not
    go together, GT3090 for options that choose
    kernels where no pass runs.
    """
    given = {n: source_of(m) for n, m in source.items()} if isinstance(source, Mapping) else (
        source_of(source))
    unit = unit_of(given, how, how.name or "model")
    return build_unit(unit, Path(out_dir), within(unit, how)).path


def train_model(build_dir: Pathlike, data: Pathlike | Mapping[str, Array], plan: Plan | None = None,
                *, val: float | Path = 0.0, start: Pathlike | None = None,
                threads: int | None = None,
                on_epoch: Callable[[Row], None] | None = None) -> tuple[dict[str, Array], Progress]:
    """Train with the build of a training graph: the state's arrays by name, and the progress.

    `data` are arrays with one example along axis 0 each, or an .npz file of them; `val` the share
    (or the file) to validate by; `start` a .safetensors file of weights to begin from. With
    `Plan(run=…)` checkpoints and a log are written there. Raises InputError GT307x for data that do
    not fit.
    """
    plan = plan or Plan()
    model = TrainModel(Path(build_dir), threads)
    if isinstance(data, Mapping):
        if isinstance(val, Path):
            raise UsageError("GT3001", "a file to validate by goes with a file of data")
        prepared = examples.prepared(data, model, val, plan.seed, plan.shuffle)
    else:
        prepared = examples.load(Path(data), model, val, plan.seed, plan.shuffle)
    if start is not None:
        checkpoint.start(model, checkpoint.read(Path(start)), str(start))
    done = Trainer(model, prepared, plan, on_epoch=on_epoch).run()
    model.world.leave()
    return {name: a.copy() for name, a in model.state.items()}, done
