"""The check after an import: the evaluator against the source, on random inputs of several sizes,
or near the inputs that a file for JAX offers."""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes, escaping, interp
from graphtool.analysis import made_up
from graphtool.errors import GraphtoolError
from graphtool.importers import Importer, what
from graphtool.importers.limits import Limits
from graphtool.io import release
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Module, Value
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.text import value_names
from graphtool.native.arguments import numbers
from graphtool.verify.budget import check_sizes, deadline
from graphtool.verify.check import both_have
from graphtool.verify.compare import (
    NO_HALVES,
    OTHER_HALVES,
    Difference,
    compare,
    difference,
    halves_kept,
    is_text,
    magnitude,
    tolerance,
    worst,
)
from graphtool.verify.sides import ORACLES, Side, by_position

Array = np.ndarray[Any, Any]
# standard deviations of the inputs; near the largest number of a type most models overflow, in the
# source too
DEVIATIONS = (1.0, 300.0, 1e-4)
RTOL = 1e-3
LOGISTIC = 2.0 ** -22  # by how much onnxruntime's sigmoid is wrong where it is close to 0


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
    """Compare on inputs of several sizes, within `limits`.

    An archive and a model that draws random numbers have nothing to be compared with; for them
    `line` says so and `ok` is true.
    """
    limits = limits or Limits()
    kind = what(source, capture or "export")
    if not isinstance(kind, Importer) or not kind.oracle:
        why = kind.unchecked if isinstance(kind, Importer) else "a graph has no other source"
        return ImportCheck(True, f"nothing to check against: {why}")
    if any(Trait.RANDOM in n.op.traits for n in all_nodes(module.graph)):
        return ImportCheck(True, "nothing to check against: the model draws random numbers")
    oracle = ORACLES[kind.oracle]
    if oracle.package and not importlib.util.find_spec(oracle.package):
        return _unchecked(f"{oracle.package} is not installed", release.install(oracle.package))
    try:
        check_sizes(module, limits)
        side = oracle.open(source, module, specs, limits)
        runs = [differences for seed, size in enumerate(_deviations(module))
                if (differences := _compare(side, module, seed, size, limits)) is not None]
        rows = [row for differences in runs for row in differences]
    except GraphtoolError as error:
        return _unchecked(error.message)
    ok = all(r.ok for r in rows)
    verdict = "agrees with" if ok else "DIFFERS from"
    note = ""
    if _allowed(side, module) > tolerance(module):
        note = f"\n  note: {NO_HALVES if side.kind == 'onnxruntime' else OTHER_HALVES}"
    return ImportCheck(ok, f"checked: the graph {verdict} {side.kind} on {len(runs)} inputs: "
                           f"{escaping.line(worst(rows))}{note}", tuple(rows))


def _deviations(module: Module) -> tuple[float, ...]:
    """The sizes to be checked: all where narrow floats may overflow or vanish, else the
    deviation of most inputs and a second one, which the names of the outputs choose."""
    values = (v for n in all_nodes(module.graph) for v in (*n.inputs, *n.outputs))
    if any(isinstance(v, Value) and v.type.dtype.is_narrow for v in values):
        return DEVIATIONS
    choice = zlib.crc32(" ".join(module.output_names).encode()) % (len(DEVIATIONS) - 1)
    return DEVIATIONS[0], DEVIATIONS[1 + choice]


def _unchecked(reason: str, remedy: str = "") -> ImportCheck:
    return ImportCheck(False, f"NOT CHECKED: {escaping.line(reason)}\n  help: the graph was "
                              "written; --no-check imports without a check"
                       + (f"\n  help: {remedy}" if remedy else ""))


def _allowed(side: Side, module: Module) -> float:
    """How far results may differ, as a share of the largest one."""
    return max(tolerance(module), halves_kept(module) if side.kind == "onnxruntime"
               else halves_kept(module, *dtypes.HALVES))


def _compare(side: Side, module: Module, seed: int, deviation: float,
             limits: Limits) -> list[Difference] | None:
    """The differences for inputs of this size; None if numbers of the graph are then beyond the
    range of their types, where the source may keep them."""
    inputs = side.make(seed, {}) if side.make else made_up.random_inputs(
        module, seed, deviation=deviation) | (_state(module) if side.kind == "torch" else {})
    with deadline(limits.seconds, "the evaluator"):
        if deviation > 1 and _exceeds(module, inputs):
            return None
        actual = dict(list(interp.run(module, inputs).items()))
    expected, actual = both_have(side.run(by_position(inputs, tuple(inputs), side.inputs)), actual,
                                 set(side.state))
    results = {n: x for n, x in expected.items() if n not in side.state}
    least = min(deviation, 1.0)
    scale = max((magnitude(x, least) for x in results.values()), default=least)
    share = _allowed(side, module)
    atol = max(share * scale, LOGISTIC if side.kind == "onnxruntime" else 0)
    rows = compare(results, dict(list(actual.items())[:len(results)]), atol, RTOL) + [
        difference(n, x, actual[n], share * magnitude(x, least), RTOL)
        for n, x in expected.items() if n in side.state]
    if side.kind != "onnxruntime":
        return rows
    return [_same_type(r, e, a) for r, e, a in zip(rows, expected.values(), actual.values(),
                                                   strict=True)]


def _exceeds(module: Module, inputs: Mapping[str, Array]) -> bool:
    """Whether a value that the graph has in a narrow type is too large for it on these inputs."""
    names = {name: v.type.dtype for v, name in value_names(module.graph).items()
             if v.type.dtype.is_narrow}
    reasons = []

    def seen(name: str, x: Array) -> None:
        if (d := names.get(name)) is not None and not all(
                np.array_equal(f(x), f(x.astype(d.numpy).astype(x.dtype)))
                for f in (np.isnan, np.isinf)):
            reasons.append(name)
    if names:
        interp.run(module, inputs, dtype=dtypes.float32, on_value=seen)
    return bool(reasons)


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
