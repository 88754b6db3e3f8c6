"""The verbs of the command line as functions; each one names the module that does the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

import graphtool.ops  # noqa: F401  (fills the registry)
from graphtool import importers, interp
from graphtool.dtypes import dtype as named_dtype
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.loops.ir import Program
from graphtool.lower import lower
from graphtool.lower.arena import arena_of
from graphtool.native import runtime
from graphtool.native.build import build as build_module
from graphtool.native.fat import build_fat, targets
from graphtool.passes import run as run_passes
from graphtool.target import Target, detect, named
from graphtool.transforms import modules

Array = np.ndarray[Any, Any]
Pathlike = str | PathLike[str]


def import_model(source: Any, args: tuple[Any, ...] | None = None, *, inputs: Sequence[str] = (),
                 capture: str = "export",
                 dynamic: Mapping[str, tuple[int, int | None]] | None = None,
                 kwargs: Mapping[str, Any] | None = None) -> Module:
    """The graph of a model: a .onnx or .pt2 path, `file.py:callable`, a torch module, or a program
    of torch.export.

    A torch module comes with example `args` and `kwargs`; a source has its own, or takes `inputs`
    such as `x:f32[1,3]`. `capture` is export or fx, `dynamic` maps a dim's name to its bounds.
    Raises UnsupportedError with all that is missing, InputError for a bad model.
    """
    if isinstance(source, (str, PathLike)):
        return importers.import_source(str(source), inputs=inputs, capture=capture,
                                       dynamic=dynamic)
    from graphtool.importers.torch import import_torch
    return import_torch(source, args or (), capture=capture, dynamic=dynamic, kwargs=kwargs)


def read(path: Pathlike) -> Module:
    """The module of a graph file. Raises InputError GT034x for anything else."""
    return serial.load(Path(path))


def write(module: Module, path: Pathlike) -> None:
    """Write a graph file, with its weights beside it."""
    serial.save(module, Path(path))


def optimize(module: Module, passes: str | Sequence[str] | None = None, *,
             target: str = "cpu", verify: bool = True) -> Module:
    """The module after the named passes, or after the default ones for a target."""
    goal = _target(target)
    return run_passes(module, passes, verify=verify,
                      supply={"target": goal, "arena": arena_of(goal)})


def _target(name: str) -> Target:
    return detect() if name == "cpu" else named(name)


def jvp(module: Module, wrt: Sequence[str] = ("inputs",)) -> Module:
    """The module with inputs `NAME.tangent` and outputs `tangent.NAME`: derivatives along them."""
    return modules.jvp(module, wrt)


def vmap(module: Module, in_axes: Mapping[str, int | None] | None = None,
         size: int | str = "examples") -> Module:
    """The module over many examples: inputs have an axis more (0, or as `in_axes` says; None: the
    same for all), outputs have it first. `size` is a number, or the name of an open dim."""
    return modules.vmap(module, in_axes, size)


def evaluate(module: Module, inputs: Mapping[str, Array], *,
             dtype: str | None = None) -> dict[str, Array]:
    """The outputs by the reference evaluator, under their names; `dtype` evaluates in another."""
    return interp.run(module, inputs, dtype=named_dtype(dtype) if dtype else None)


def build(source_or_module: Any, out_dir: Pathlike, *, target: str = "cpu", name: str = "model",
          passes: str | Sequence[str] | None = None, **options: Any) -> Path:
    """Compile a model into a directory and return its path.

    A source is imported first; a module without fusion groups goes through the passes. `options`
    are those of `graphtool.native.build.build`: cc, jobs, exe, static, openmp. The target `fat` is
    one library for every level of x86-64. Raises CompilerError.
    """
    module = source_or_module
    if not isinstance(module, Module):
        path = str(source_or_module) if isinstance(module, PathLike) else source_or_module
        graph = isinstance(path, str) and path.endswith(".json")
        module = read(path) if graph else import_model(path)
    if target == "fat":
        return _fat(module, Path(out_dir), name, passes, **options)
    if passes is not None or not module.graph.groups:
        module = optimize(module, passes, target=target)
    return build_module(module, Path(out_dir), name=name, target=_target(target), **options)


def _fat(module: Module, out_dir: Path, name: str, passes: str | Sequence[str] | None,
         **options: Any) -> Path:
    programs: dict[int, Program] = {}
    store: dict[str, Weight] = {}
    for level, goal in targets().items():
        ready = module
        if passes is not None or not module.graph.groups:
            ready = run_passes(module, passes, supply={"target": goal})
        programs[level] = lower(ready, goal, name=name)
        store |= {w.digest: w for w in collect_all(ready.graph)}
    return build_fat(programs, out_dir, name=name, store=store, **options)


def load(build_dir: Pathlike, threads: int | None = None) -> runtime.Model:
    """A callable model: `model(**inputs) -> {output: array}`, in the order of the outputs."""
    return runtime.load(Path(build_dir), threads)
