"""The check after an import: the evaluator against the source, on two inputs: random ones, or
near those that a file for JAX offers."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import escaping, interp
from graphtool.analysis import made_up
from graphtool.errors import GraphtoolError
from graphtool.importers import form, is_exported
from graphtool.importers.limits import Limits
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Module
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import value_names
from graphtool.native.sizes import numbers
from graphtool.verify.budget import check_sizes, deadline
from graphtool.verify.check import both_have
from graphtool.verify.compare import (
    Difference,
    compare,
    difference,
    is_text,
    magnitude,
    worst,
)
from graphtool.verify.roundings import NO_HALVES, halves_kept, tolerance
from graphtool.verify.sides import Side, by_position, of_jax, of_onnx, of_torch

Array = np.ndarray[Any, Any]
SEEDS = (0, 1)
RTOL = 1e-3


@dataclass(frozen=True)
class ImportCheck:
    """Whether the graph computes what its source does; `line` is the result as text.

    `ok` is false if the two differ, and if a check was due and could not be made.
    """

    ok: bool
    line: str
    rows: tuple[Difference, ...] = ()


def check_import(source: str, module: Module, specs: Sequence[str] = (),
                 limits: Limits | None = None, capture: str = "") -> ImportCheck:
    """Compare on two inputs, within `limits`.

    An archive and a model that draws random numbers have nothing to be compared with; for them
    `line` says so and `ok` is true.
    """
    limits = limits or Limits()
    if source.endswith(".pt2") or is_exported(source):
        return ImportCheck(True, "nothing to check against: an archive is read, never run")
    if form(source) == "stablehlo":
        return ImportCheck(True, "nothing to check against: a program's text is read, never run")
    if any(Trait.RANDOM in n.op.traits for n in all_nodes(module.graph)):
        return ImportCheck(True, "nothing to check against: the model draws random numbers")
    if source.endswith(".onnx") and not importlib.util.find_spec("onnxruntime"):
        return _unchecked("onnxruntime is not installed")
    try:
        check_sizes(module, limits)
        side = of_onnx(Path(source), limits) if source.endswith(".onnx") else of_jax(
            source, module, specs) if capture == "jax" else of_torch(source, module, specs)
        rows = [row for seed in SEEDS for row in _compare(side, module, seed, limits)]
    except GraphtoolError as error:
        return _unchecked(error.message)
    ok = all(r.ok for r in rows)
    verdict = "agrees with" if ok else "DIFFERS from"
    wide = f"\n  note: {NO_HALVES}" if _allowed(side, module) > tolerance(module) else ""
    return ImportCheck(ok, f"checked: the graph {verdict} {side.kind} on {len(SEEDS)} inputs: "
                           f"{escaping.line(worst(rows))}{wide}", tuple(rows))


def _unchecked(reason: str) -> ImportCheck:
    return ImportCheck(False, f"NOT CHECKED: {escaping.line(reason)}\n  help: the graph was "
                              "written; --no-check imports without a check")


def _allowed(side: Side, module: Module) -> float:
    """How far results may differ, as a share of the largest one."""
    return max(tolerance(module), halves_kept(module) if side.kind == "onnxruntime" else 0.0)


def _compare(side: Side, module: Module, seed: int, limits: Limits) -> list[Difference]:
    inputs = side.make(seed, {}) if side.make else made_up.random_inputs(module, seed) | (
        _state(module) if side.kind == "torch" else {})
    with deadline(limits.seconds, "the evaluator"):
        actual = dict(list(interp.run(module, inputs).items()))
    expected, actual = both_have(side.run(by_position(inputs, tuple(inputs), side.inputs)), actual,
                                 set(side.state))
    results = {n: x for n, x in expected.items() if n not in side.state}
    scale = max((magnitude(x) for x in results.values()), default=1.0)
    share = _allowed(side, module)
    rows = compare(results, dict(list(actual.items())[:len(results)]), share * scale, RTOL) + [
        difference(n, x, actual[n], share * magnitude(x), RTOL)
        for n, x in expected.items() if n in side.state]
    if side.kind != "onnxruntime":
        return rows
    return [_same_type(r, e, a) for r, e, a in zip(rows, expected.values(), actual.values(),
                                                   strict=True)]


def _state(module: Module) -> dict[str, Array]:
    """What the state that a run updates starts from: the model's own, as the source has it."""
    names = value_names(module.graph)
    out = {}
    for _, i in module.donations:
        v, start = module.graph.inputs[i], module.initial.get(i)
        if all(isinstance(d, int) for d in v.type.shape):
            out[names[v]] = np.zeros(numbers(v.type.shape, {}), v.type.dtype.numpy) if (
                start is None) else np.asarray(start.source)
    return out


def _same_type(row: Difference, expected: Any, actual: Any) -> Difference:
    """The difference of two arrays, which also have to be of one element type."""
    if is_text(expected) or expected.dtype == actual.dtype:
        return row
    return Difference(row.name, False, row.max_abs, row.max_rel, row.elements, row.elements,
                      f"types differ: {expected.dtype} and {actual.dtype}")
