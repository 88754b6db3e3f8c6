"""Models into graphs, graphs into files, numbers, listings and better graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeVar

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import importers, interp
from graphtool.analysis.composites import notes
from graphtool.api.arguments import (
    Array,
    Capture,
    Kernels,
    Pathlike,
    Precision,
    checked,
    goal,
    rules,
)
from graphtool.assume import Assumption
from graphtool.assume.tiers import Tier
from graphtool.compile.source import STABLEHLO
from graphtool.dtypes import dtype as named_dtype
from graphtool.errors import UsageError, one_of
from graphtool.exporters import FORMATS
from graphtool.exporters.picture import picture
from graphtool.front.assumptions import Bounds
from graphtool.importers.kinds import not_a_graph, what
from graphtool.importers.limits import Limits
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.listing import ListingStyle, listing
from graphtool.lower.arena import arena_of
from graphtool.passes import run as run_passes

Torch = TypeVar("Torch")  # torch.nn.Module or torch.export.ExportedProgram: torch is an extra


def import_model(source: Pathlike | Torch, args: tuple[object, ...] | None = None, *,
                 inputs: Sequence[str] = (), capture: Capture = "export",
                 dynamic: Mapping[str, Bounds] | None = None,
                 kwargs: Mapping[str, object] | None = None,
                 strict: bool | None = None) -> Module:
    """The graph of a model: a .onnx or .pt2 path, `file.py:callable`, a torch module, or a program
    of torch.export.

    A torch module comes with example `args` and `kwargs`; a source has its own, or takes `inputs`
    such as `x:f32[1,3]`. `capture` is export or fx, `dynamic` maps a dim's name to its bounds.
    What an ONNX model does against its specification is refused if `strict` is True, taken where
    it can be given a meaning if False; by default what has one meaning is. `meta["warnings"]` has
    what was taken.
    Raises UnsupportedError with all that is missing, InputError for a bad model.
    """
    if isinstance(source, (str, PathLike)):
        return importers.import_source(str(source), inputs=inputs, capture=capture,
                                       dynamic=dynamic, limits=Limits(strict=strict))
    from graphtool.importers.torch import import_torch
    return import_torch(source, args or (), capture=capture, dynamic=dynamic, kwargs=kwargs)


@checked
def read(path: Pathlike) -> Module:
    """The module of a .graph.json or .gt file. Raises InputError GT033x to GT035x for others."""
    if (error := not_a_graph(str(path), what(str(path)))) is not None:
        raise error
    return serial.load(Path(path))


@checked
def write(module: Module, path: Pathlike) -> None:
    """Write a graph file (a listing where it ends in .gt), with its weights beside it.

    Raises InputError GT0330 where that cannot be written, UsageError GT3172 for a path with the
    ending of a format that `export` writes.
    """
    if Path(path).suffix.lower() in (".onnx", *STABLEHLO):
        raise UsageError("GT3172", f"write writes a graph, and {path} has the ending of another "
                         "format", hint="graphtool.export writes ONNX and StableHLO")
    serial.save(module, Path(path))


@checked
def export(module: Module, path: Pathlike, *, external_data: bool = False) -> None:
    """Write a module as an ONNX model; or where the path ends in .mlir or .stablehlo, as StableHLO.

    `external_data` puts the weights of an ONNX model into PATH.data, as it is above 2 GB in any
    case. Raises UnsupportedError GT1040 or GT1050 with a list of all that the format cannot
    express, UsageError GT3172 for the ending of a graph file, InputError GT0330 where the file
    cannot be written.
    """
    out = Path(path)
    if out.suffix.lower() in (".json", ".gt"):
        raise UsageError("GT3172", f"export writes ONNX or StableHLO, and {path} has the ending of "
                         "another format", hint="graphtool.write writes a graph")
    if out.suffix.lower() in STABLEHLO:
        from graphtool.exporters.stablehlo import export_stablehlo
        export_stablehlo(module, out)
    else:
        from graphtool.exporters.onnx import export_onnx
        export_onnx(module, out, external=external_data)


@checked
def show(module: Module) -> str:
    """The listing of a graph, one node on a line; large constants are named by their digest."""
    return "\n".join(listing(module, ListingStyle(notes=notes(module.graph))))


@checked
def draw(module: Module, format: str = "svg", *, constants: bool = False,
         groups: bool = False) -> str:
    """A picture of a graph as svg, dot or mermaid: with its constants as nodes, with one box for
    each fusion group. Raises UsageError GT3017 for another format."""
    if format not in FORMATS:
        raise UsageError("GT3017", f"unknown format {format!r}", hint=one_of(format, FORMATS))
    return FORMATS[format](picture(module, constants, groups))


@checked
def evaluate(module: Module, inputs: Mapping[str, Array], *,
             dtype: str | None = None) -> dict[str, Array]:
    """The outputs by the reference evaluator, under their names.

    `dtype` evaluates floats in another type, as in "float64". Raises InputError GT051x for
    inputs that do not fit, GT050x where an operation fails on them.
    """
    return interp.run(module, inputs, dtype=named_dtype(dtype) if dtype else None)


@checked
def optimize(module: Module, passes: str | Sequence[str] | None = None, *, target: str = "cpu",
             precision: Precision = "default", kernels: Kernels = "generated",
             tuning: Pathlike | None = None, assume: Assumption = "finite",
             proofs: Tier = "tested", machine: str | None = None, threads: int | None = None,
             verify: bool = True) -> Module:
    """The module after the named passes (`fold{max_bytes=1048576},dce`), or the default ones.

    `target` is cpu (this machine) or a name such as x86-64-v3, `precision` the loosest class of
    numerics that a kernel may have, `tuning` a file of measurements made by `tune_model`,
    `machine` a row of the table of machines, or a .json file of one, by which kernels are chosen,
    `threads` the most that a run may use, by default as many as there are processors where it runs.
    With `assume="nothing"` no kernel is chosen that can move or spread a NaN or an infinity.
    `proofs` is the least tier of the rules and passes that are used: proved, bounded, tested.
    `verify` checks the graph after each pass. Raises UsageError GT060x for unknown passes,
    arguments or an illegal order.
    """
    target_, allowed = goal(target, machine, threads), rules(precision, kernels, tuning, assume,
                                                          proofs)
    result = run_passes(module, passes, verify=verify, supply={
        "target": target_, "rules": allowed, "arena": arena_of(target_, allowed)})
    return result if machine is None else replace(result, meta={
        **result.meta, "machine": target_.machine})
