"""From a graph to loops, to C, to a library, and the training of a compiled step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from graphtool.api.models import import_model, read
from graphtool.api.options import Array, Kernels, Pathlike, Precision, WeightsIn, goal, rules
from graphtool.emit.c import emit
from graphtool.errors import UsageError
from graphtool.ir.facets import Assumption
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.kernels.choice.rules import Rules
from graphtool.language.tokenizer import Tokenizer
from graphtool.loops import serial as programs
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.lower.arena import arena_of
from graphtool.native.build import build as build_one
from graphtool.native.entries import build_entries
from graphtool.native.fat import build_fat
from graphtool.native.training import build_training
from graphtool.passes import run as run_passes
from graphtool.target import X86_64, Target, family, on_machine
from graphtool.train import checkpoint
from graphtool.train import dataset as examples
from graphtool.train.loop import Plan, Progress, Trainer
from graphtool.train.model import TrainModel

Torch = TypeVar("Torch")  # what import_model takes
Passes = str | Sequence[str] | None
Row = Mapping[str, float | int]


def lower_model(module: Module, *, name: str = "model", target: str = "cpu",
                index_checks: bool = True) -> Program:
    """The loops and the memory plan of a graph. No pass runs: run `optimize` before.

    `name` is that of the C functions, `target` the one that the passes ran for. With
    `index_checks` a run finds indices that are out of range.
    """
    return lower(module, goal(target), name=name, index_checks=index_checks)


def emit_c(program: Program) -> dict[str, str]:
    """The C of a program: the texts of its files by name, with the headers that they include.

    Raises UsageError GT2110 for a name that C functions cannot have.
    """
    return emit(program)


def build(source: Module | Program | Pathlike | Torch | Mapping[str, Module], out_dir: Pathlike, *,
          target: str = "cpu", name: str = "model", passes: Passes = None,
          precision: Precision = "default", kernels: Kernels = "generated",
          tuning: Pathlike | None = None, cc: str | None = None, jobs: int | None = None,
          exe: bool = False, static: bool = False, openmp: bool = True,
          weights: WeightsIn = "file", mpi: bool = False, assume: Assumption = "finite",
          index_checks: bool = True, tokenizer: Tokenizer | None = None,
          machine: str | None = None) -> Path:
    """Compile a model into a directory and return its path.

    A source that is not a graph is imported first; a module without fusion groups goes through the
    passes, with `precision`, `kernels`, `tuning`, `assume` and `machine` as `optimize` takes them.
    A training graph becomes a training build, with `mpi` one of several processes. The target `fat`
    is one library for every level of x86-64. Modules by name become entry points of one library
    over one set of weights, each of which `load(out_dir, entry=…)` loads; with a `tokenizer` they
    write text. `cc` is the compiler's command, `jobs` how many files at a time, `exe` adds a
    program, `static` makes a .a library, `weights` leaves them in a file, embeds them into the
    library, or writes C arrays. Without `index_checks` an index out of range goes unseen; a program
    has its checks already. Raises CompilerError GT212x when the compiler is missing or fails,
    UsageError GT3052, GT3055 for options that do not go together.
    """
    how: dict[str, Any] = {"cc": cc, "jobs": jobs, "exe": exe, "static": static, "openmp": openmp}
    allowed = rules(precision, kernels, tuning, assume)
    if isinstance(source, Mapping):
        if exe or mpi or target == "fat":
            raise UsageError("GT3055", "exe, mpi and fat cannot go with several entry points",
                             hint="build one model at a time")
        del how["exe"]
        return _entries(source, Path(out_dir), name, passes, goal(target, machine), allowed,
                        index_checks, weights=weights, tokenizer=tokenizer, **how)
    if tokenizer is not None:
        raise UsageError("GT3055", "a tokenizer is for entry points", hint="give modules by name: "
                         "{'decode': module}")
    model = _source(source)
    if isinstance(model, tuple) and not index_checks:
        raise UsageError("GT3052", "index_checks is for graphs, this is a program",
                         hint="lower the graph without them")
    if isinstance(model, tuple):
        return build_one(model[0], Path(out_dir), name=name, target=goal(target, machine),
                         store=model[1], weights=weights, **how)
    if isinstance(model.meta.get("training"), dict):
        if passes is not None or weights != "file" or target == "fat":
            raise UsageError("GT3052", "passes, weights and fat are for models, this is a training "
                                       "graph", hint="optimise the model first")
        return build_training(model, Path(out_dir), name=name, target=goal(target, machine),
                              mpi=mpi, rules=allowed, index_checks=index_checks, **how)
    if mpi:
        raise UsageError("GT3052", "mpi is for training graphs, this is a model",
                         hint="grad with an optimizer makes one")
    if target == "fat":
        targets = {level: t if machine is None else on_machine(t, machine)
                   for level, t in family(X86_64).items()}
        levels = {level: _ready(model, passes, t, allowed) for level, t in targets.items()}
        return build_fat({level: lower(ready, targets[level], name=name, index_checks=index_checks)
                          for level, ready in levels.items()}, Path(out_dir), name=name,
                         weights=weights, **how, store={
                             w.digest: w for m in levels.values() for w in collect_all(m.graph)})
    here = goal(target, machine)
    return build_one(_ready(model, passes, here, allowed), Path(out_dir), name=name,
                     target=here, weights=weights, index_checks=index_checks, **how)


def _entries(modules: Mapping[str, Module], out_dir: Path, name: str, passes: Passes,
             target: Target, allowed: Rules, index_checks: bool, **how: Any) -> Path:
    """The build of several entry points."""
    ready = {entry: _ready(m, passes, target, allowed) for entry, m in modules.items()}
    store = {w.digest: w for m in ready.values() for w in collect_all(m.graph)}
    programs = {entry: lower(m, target, name=entry, index_checks=index_checks)
                for entry, m in ready.items()}
    return build_entries(programs, out_dir, name=name, target=target, store=store, **how)


def _source(source: Module | Program | Pathlike | Torch) -> Any:
    """A module, or a program with its weights."""
    if isinstance(source, Module):
        return source
    if isinstance(source, Program):
        return source, {}
    if isinstance(source, (str, PathLike)):
        path = str(source)
        if path.endswith(".program.json"):
            return programs.load(Path(path))
        return read(path) if path.endswith((".json", ".gt")) else import_model(path)
    return import_model(source)


def _ready(module: Module, passes: Passes, target: Target, allowed: Rules) -> Module:
    """The module as it is to be lowered."""
    if passes is None and module.graph.groups:
        return module
    return run_passes(module, passes, supply={
        "target": target, "rules": allowed, "arena": arena_of(target, allowed)})


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
        found = examples.prepared(data, model, val, plan.seed, plan.shuffle)
    else:
        found = examples.load(Path(data), model, val, plan.seed, plan.shuffle)
    if start is not None:
        checkpoint.start(model, checkpoint.read(Path(start)), str(start))
    done = Trainer(model, found, plan, on_epoch=on_epoch).run()
    model.world.leave()
    return {name: a.copy() for name, a in model.state.items()}, done
