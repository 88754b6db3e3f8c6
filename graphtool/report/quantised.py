"""The report of `quantise`: what each layer became, what it gains in time and bytes, and what it
changes in the outputs.

Times are those of the cost model, or of profiled builds. The error of a layer is that of the
outputs if it alone is quantised.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from graphtool import interp, passes
from graphtool.analysis.costs import executions
from graphtool.compile.as_is import build
from graphtool.dtypes import of_numpy
from graphtool.ir.graph import Module, names_of
from graphtool.passes.claims import roots
from graphtool.passes.quantise.calibrate import Batch
from graphtool.passes.quantise.layers import Layer
from graphtool.passes.quantise.rewrite import LayerChoice
from graphtool.passes.specialize import specialize
from graphtool.report.profile import profile
from graphtool.report.table import Column, optional
from graphtool.target import Target

Array = np.ndarray[Any, Any]
FLOAT = "float32"


class QuantisedLayer(msgspec.Struct):
    """One layer. `us` is None where no time is known; `why` says why it is as it is, if it was not
    simply asked for; `error` is None if it was not computed."""

    name: str
    kind: str
    form: str
    bytes: int
    bytes_before: int
    us: float | None = None
    us_before: float | None = None
    error: float | None = None
    why: str = ""


class QuantiseReport(msgspec.Struct):
    """`quantise --json`; schemas/quantise.schema.json is made from it.

    `error` is √(Σ(y − ŷ)² / Σy²) over the examples, of the worst output; `by` says whether times
    are by "cost" or "measured"; `met` whether the result is within what was asked for.
    """

    layers: list[QuantisedLayer]
    bytes: int
    bytes_before: int
    us: float
    us_before: float
    by: str
    error: float | None
    examples: int
    met: bool = True


@dataclass(frozen=True)
class LayerTimes:
    """Microseconds of a module: the sum, and of each layer that has a kernel of its own."""

    total: float
    layers: Mapping[str, float]


def expected(module: Module, layers: Sequence[Layer], target: Target,
             sizes: Mapping[str, int] | None = None) -> LayerTimes:
    """The times by the cost model: of the kernels with a choice among plans, as often as they run.

    A size that is not among `sizes` counts with its largest value, or as 128.
    """
    ready = passes.run(specialize(module, **(sizes or {})), supply={"target": target})
    rows = [(names_of(n), (times if isinstance(times, int) else 1) * next(iter(c.us.values())))
            for n, times in executions(ready.graph) for v in n.outputs
            if (c := ready.choices.get(v)) is not None]
    return _by_layer(rows, layers)


def measured(module: Module, layers: Sequence[Layer], target: Target, arrays: Batch) -> LayerTimes:
    """The times of a profiled build on this machine. Raises CompilerError as `build` does."""
    ready = passes.run(module, supply={"target": target})
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        built = build(ready, Path(folder) / "build", target=target)
        steps = profile(built, arrays, target.threads)[0].steps
    return _by_layer([(tuple(s.label.split(" + ")), s.us) for s in steps], layers)


def _by_layer(rows: Sequence[tuple[Sequence[str], float]], layers: Sequence[Layer]) -> LayerTimes:
    """Each row counts for the layers that it names, or whose names its own begins with (inside of
    loops), in equal parts."""
    out: dict[str, float] = {}
    kernels: dict[str, list[str]] = {}
    for layer in layers:
        for name in names_of(layer.node):
            kernels.setdefault(name, []).append(layer.name)
    for names, us in rows:
        own_layers = {layer for n in names for layer in next(
            (kernels[root] for root in reversed(roots(n)) if root in kernels), ())}
        for name in own_layers:
            out[name] = out.get(name, 0.0) + us / len(own_layers)
    return LayerTimes(sum(us for _, us in rows), out)


class Effects:
    """How far the outputs of changed modules are from those of the original, on some examples."""

    def __init__(self, original: Module, data: Sequence[Batch]) -> None:
        self.data = data
        self.outputs = [interp.run(original, batch) for batch in data]

    def of(self, changed: Module) -> float:
        """√(Σ(y − ŷ)² / Σy²) of the worst float output; infinity if an output is not finite."""
        lost: dict[str, float] = {}
        size: dict[str, float] = {}
        for batch, want in zip(self.data, self.outputs, strict=True):
            for (name, y), got in zip(want.items(), interp.run_on_reals(changed, batch).values(),
                                      strict=True):
                if of_numpy(y.dtype).is_float:
                    wide = y.astype(np.float64)
                    gap = wide - got.astype(np.float64)
                    lost[name] = lost.get(name, 0.0) + float((gap ** 2).sum())
                    size[name] = size.get(name, 0.0) + float((wide ** 2).sum())
        errors = [float(np.sqrt(lost[n] / (size[n] or lost[n]))) if lost[n] else 0.0
                  for n in lost]
        return max((e if np.isfinite(e) else float("inf") for e in errors), default=0.0)


def row(layer: Layer, chosen: LayerChoice | None, before: LayerTimes, after: LayerTimes | None,
        error: float | None, why: str = "") -> QuantisedLayer:
    """The row of one layer; `chosen` is None where it stays in floats."""
    size = layer.nbytes
    us = before.layers.get(layer.name)
    if chosen is None:
        return QuantisedLayer(layer.name, layer.kind, FLOAT, size, size, us, us, error, why)
    return QuantisedLayer(
        layer.name, layer.kind, chosen.form, chosen.stored.nbytes, size,
        after.layers.get(layer.name) if after else None, us, error, why)


LAYERS: tuple[Column[QuantisedLayer], ...] = (
    Column("layer", "name"), Column("kind"), Column("form"),
    Column("KiB", lambda r: f"{r.bytes / 1024:.1f}"),
    Column("of", lambda r: f"{r.bytes_before / 1024:.1f}"),
    Column("µs", lambda r: optional(".2f", r.us)),
    Column("of", lambda r: optional(".2f", r.us_before)),
    Column("error", lambda r: optional(".5f", r.error)), Column("", "why"))


def lines(report: QuantiseReport) -> list[str]:
    """The totals in words."""
    done = sum(r.form != FLOAT for r in report.layers)
    by = "measured" if report.by == "measured" else "by the cost model"
    out = [f"{done} of {len(report.layers)} layers, {report.bytes / 1024:.1f} KiB of constants "
           f"instead of {report.bytes_before / 1024:.1f}"]
    if report.us_before:
        out.append(f"{report.us:.1f} µs in kernels instead of {report.us_before:.1f}, {by}")
    if report.error is not None:
        out.append(f"error of the outputs {report.error:.5f} on {report.examples} examples")
    return out
