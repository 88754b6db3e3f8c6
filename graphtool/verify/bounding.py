"""The error bound of a module against real arithmetic, beside the errors of made-up inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from graphtool import dtypes, interp
from graphtool.analysis.enclosure import Enclosure, enclosed
from graphtool.analysis.error_bound import enclosures, flattened
from graphtool.analysis.made_up import made_up_sizes
from graphtool.errors import InputError, UsageError, one_of
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names
from graphtool.passes.chunk import examples
from graphtool.passes.specialize import specialize
from graphtool.report.table import Column
from graphtool.symbolic import Dim, substitute, symbols
from graphtool.verify.sensitivity import sharpened

Array = np.ndarray[Any, Any]


class BoundRow(msgspec.Struct):
    """An output: in real arithmetic it is between `least` and `most`, and what is computed differs
    by at most `error`. `observed` is the largest error seen, `outside` how many elements differed
    by more than their bound."""

    name: str
    least: float
    most: float
    error: float
    observed: float = 0.0
    outside: int = 0


class BoundReport(msgspec.Struct):
    """`bound --json`; schemas/bound.schema.json is made from it. `inputs` are the ranges, `samples`
    the number of runs with inputs from them."""

    inputs: dict[str, tuple[float, float]]
    sizes: dict[str, int]
    samples: int
    outputs: list[BoundRow]

    @property
    def held(self) -> bool:
        """Whether no error was larger than its bound."""
        return not any(row.outside for row in self.outputs)


COLUMNS: tuple[Column[BoundRow], ...] = (
    Column("output", "name"), Column("from", lambda r: f"{r.least:.4g}"),
    Column("to", lambda r: f"{r.most:.4g}"), Column("error at most", lambda r: f"{r.error:.2g}"),
    Column("largest seen", lambda r: f"{r.observed:.2g}"),
    Column("times", lambda r: f"{r.error / r.observed:.3g}" if r.observed else ""))


def bound(module: Module, ranges: Mapping[str, tuple[float, float]], data: Mapping[str, Array],
          samples: int = 0, seed: int = 0, sizes: Mapping[str, int] | None = None) -> BoundReport:
    """The bounds of all outputs. Inputs are those in `data`, exactly, or any numbers of `ranges`,
    by default from −1 to 1; `samples` runs in float32 are compared with runs in float64.

    Raises UsageError GT3174 for a name that no input has, and for a range that is none; InputError
    GT0534 for an op without a bound, GT0535 for an input that is not of floats and not in `data`.
    """
    names = value_names(module.graph)
    ports = {names[v]: v.type for v in module.graph.inputs}
    for name in (*ranges, *data):
        if name not in ports:
            raise UsageError("GT3174", f"there is no input {name!r}", hint=one_of(name, ports))
    for name, (lo, hi) in ranges.items():
        if not lo <= hi:
            raise UsageError("GT3174", f"the range of {name} is from {lo} to {hi}",
                             hint="the least number comes first")
    found = made_up_sizes(module, sizes)
    found |= {d.name: n for name, x in data.items() for d, n in _named(ports[name], x)}
    given, spans = {}, {}
    for name, t in ports.items():
        if name not in data and not t.dtype.is_float:
            raise InputError("GT0535", f"the input {name} is not of floats: its numbers must be "
                                       "given", hint="--inputs FILE.npz")
        lo, hi = ranges.get(name, (-1.0, 1.0))
        shape = tuple(substitute(d, found) for d in t.shape)
        given[name] = enclosed(data[name], data[name], 0.0) if name in data else Enclosure(
            np.full(shape, lo), np.full(shape, hi), np.zeros(shape))
        spans[name] = _span(given[name])
    bounds = _bounds(module, list(given.values()), found)
    rows = [BoundRow(n, *_span(b), float(b.err.max(initial=0.0))) for n, b in bounds.items()]
    rng = np.random.default_rng(seed)
    for k in range(samples):
        inputs = {n: _drawn(rng, given[n], t.dtype.numpy, k) for n, t in ports.items()}
        _compare(module, inputs, bounds, {row.name: row for row in rows})
    numbers = {n: d for n, d in found.items() if isinstance(d, int)}
    return BoundReport(spans, numbers, samples, rows)


def _bounds(module: Module, given: Sequence[Enclosure], sizes: Mapping[str, Dim],
            ) -> dict[str, Enclosure]:
    """The enclosures of all outputs by name."""
    numbers = {n: d for n, d in sizes.items() if isinstance(d, int) and n in module.symbols}
    graph = flattened(specialize(module, **numbers).graph)
    with np.errstate(all="ignore"):
        apart = examples(graph)
        count = given[0].lo.shape[0] if apart else 1
        outputs = sharpened(graph, enclosures(graph, given, count), apart)
    return dict(zip(module.output_names, outputs, strict=True))


def _span(x: Enclosure) -> tuple[float, float]:
    """The least and the greatest number; +∞ and −∞ where there is none."""
    return (float(x.lo.astype(float).min(initial=np.inf)),
            float(x.hi.astype(float).max(initial=-np.inf)))


def _named(t: Any, x: Array) -> list[tuple[Any, int]]:
    """The open sizes of an input that its array decides."""
    return [(symbols(d)[0], n) for d, n in zip(t.shape, np.shape(x), strict=False)
            if not isinstance(d, int) and len(symbols(d)) == 1]


def _drawn(rng: Any, x: Enclosure, kind: Any, k: int) -> Array:
    """Numbers of a range: any, ends alone, or near one point, in turn."""
    lo, hi = x.lo, x.hi
    match k % 3:
        case 0:
            y = lo + (hi - lo) * rng.random(lo.shape)
        case 1:
            y = np.where(rng.random(lo.shape) < 0.5, lo, hi)
        case _:
            y = lo + (hi - lo) * np.clip(rng.random() + 1e-3 * rng.standard_normal(lo.shape), 0, 1)
    out: Array = np.clip(y, lo, hi).astype(kind)
    return out


def _compare(module: Module, inputs: Mapping[str, Array], bounds: Mapping[str, Enclosure],
             rows: Mapping[str, BoundRow]) -> None:
    """Add the errors of one run to the rows."""
    got = interp.run(module, inputs)
    real = interp.run(module, inputs, dtype=dtypes.float64)
    for name, y in got.items():
        error = np.abs(y.astype(np.float64) - real[name].astype(np.float64))
        rows[name].observed = max(rows[name].observed, float(error.max(initial=0.0)))
        rows[name].outside += int((~(error <= bounds[name].err)).sum())
