"""Calibration: runs a model on examples in the evaluator, and keeps what rounding needs to know.

Of activations these are histograms; of the inputs of layers their means, their largest values,
some rows, and the sums of products of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import dtypes, interp
from graphtool.errors import InputError, listed
from graphtool.io import npz
from graphtool.ir.graph import Graph, Module, TensorType, Value, producers
from graphtool.ir.text import value_names
from graphtool.passes.quantise.grids import Method, Seen, histogram
from graphtool.passes.quantise.layers import Layer, origins

Array = np.ndarray[Any, Any]
Batch = Mapping[str, Array]
BATCH = 32  # examples that are evaluated together, where the model leaves their number open
SAMPLES = 128  # examples that are read unless another number is given
ROWS = 512  # rows of a layer's input that are kept


def batches(path: Path, module: Module, samples: int = SAMPLES) -> list[Batch]:
    """The examples of an .npz file, or of all .npz files of a directory, as inputs of the model.

    An array has the axes of its input, with examples along the first; or one axis more. Raises
    InputError GT0641 for arrays that do not fit, GT033x for files that cannot be read.
    """
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    if not files:
        raise InputError("GT0641", "the directory has no .npz file", where=str(path))
    out: list[Batch] = []
    for file in files:
        for batch, count in _cut(npz.load(file), module, str(file), samples):
            out.append(batch)
            samples -= count
    return out


def from_arrays(arrays: Batch, module: Module, samples: int = SAMPLES) -> list[Batch]:
    """`batches` of arrays in memory."""
    return [batch for batch, _ in _cut(arrays, module, "", samples)]


def _cut(arrays: Batch, module: Module, where: str, samples: int) -> Iterator[tuple[Batch, int]]:
    """Batches, and how many examples each has."""
    names = value_names(module.graph)
    kinds = {names[v]: v.type for v in module.graph.inputs}
    if missing := [n for n in kinds if n not in arrays]:
        raise InputError("GT0641", f"the data have no array {missing[0]!r}", where=where,
                         hint=f"the model needs {listed(kinds)}; the file has {listed(arrays)}")
    inputs = {n: _typed(n, arrays[n], t, where) for n, t in kinds.items()}
    if not inputs:
        raise InputError("GT0641", "the model has no inputs to calibrate", where=where)
    if empty := next((n for n, a in inputs.items() if not a.size), None):
        raise InputError("GT0641", f"{empty} has the shape {list(inputs[empty].shape)}: no example",
                         where=where)
    stacked = {n: a.ndim == kinds[n].rank + 1 for n, a in inputs.items()}
    if all(stacked.values()):
        for i in range(min([samples, *(len(a) for a in inputs.values())])):
            yield {n: a[i] for n, a in inputs.items()}, 1
        return
    for n, a in inputs.items():
        if a.ndim != kinds[n].rank or not a.ndim:
            raise InputError("GT0641", f"{n} has the shape {list(a.shape)}, the input is "
                                       f"{kinds[n]}", where=where,
                             hint="an array has the axes of its input, examples along the first; "
                                  "or one axis more")
    sizes = {t.shape[0] for t in kinds.values()}
    fixed = [d for d in sizes if isinstance(d, int)]
    count = min(len(a) for a in inputs.values())
    if len({len(a) for a in inputs.values()}) > 1 or len(sizes) > 1:
        yield inputs, count  # inputs without a common axis of examples: one run
        return
    step = fixed[0] if fixed else BATCH
    if count < (step if fixed else 1):
        raise InputError("GT0641", f"{count} examples", where=where, hint="the model takes "
                         f"{step if fixed else 'at least 1'} at a time")
    for i in range(0, min(count, samples), step):
        end = min(i + step, count) if fixed else min(i + step, count, samples)
        if not fixed or end - i == step:
            yield {n: a[i:end] for n, a in inputs.items()}, end - i


def of_one_number(data: Sequence[Batch]) -> dict[str, float]:
    """The inputs of floats whose examples all hold one and the same number, with this number: the
    ranges of such examples fit no others."""
    out = {}
    for name, a in (data[0] if data else {}).items():
        first = a.flat[0]
        if dtypes.of_numpy(a.dtype).is_float and sum(batch[name].size for batch in data) > 1 and (
                all((batch[name] == first).all() for batch in data)):
            out[name] = float(first)
    return out


def _typed(name: str, a: Array, t: TensorType, where: str) -> Array:
    """The array in the element type of its input, where that changes no number."""
    x = dtypes.converted(np.asarray(a), t.dtype)
    if x is None:
        raise InputError("GT0641", f"{name} is {a.dtype}, {t.dtype.name} expected", where=where,
                         hint="integers may become floats that are equal, and floats may be "
                              "rounded to floats in their range; nothing else is converted")
    return x


@dataclass(eq=False)
class LayerInputs:
    """The input of a layer over all examples, by channel: the sum, the largest size, the number of
    rows, some of them, and Σ xᵀx where it was asked for."""

    total: Array
    most: Array
    count: int = 0
    rows: list[Array] = field(default_factory=list)
    gram: Array | None = None

    @property
    def mean(self) -> Array:
        """The mean of each channel."""
        return np.asarray(self.total / max(self.count, 1))

    @property
    def sample(self) -> Array:
        """Some rows, [rows, channels]."""
        return np.concatenate(self.rows)[:ROWS]

    def add(self, x: Array, keep: int) -> None:
        """Count these rows [rows, channels], and keep so many of them."""
        self.total += x.sum(0, dtype=np.float64)
        self.most = np.maximum(self.most, np.abs(x).max(0, initial=0.0))
        self.count += len(x)
        step = max(1, len(x) // max(keep, 1))
        self.rows.append(x[::step][:keep].copy())
        if self.gram is not None:
            self.gram += x.T @ x


@dataclass(frozen=True, eq=False)
class Calibration:
    """What was seen: of the activations that each layer reads, and of its input by channel; and the
    outputs of each batch."""

    activations: Mapping[tuple[Layer, Value], Seen]
    inputs: Mapping[Layer, LayerInputs]
    outputs: Sequence[Mapping[str, Array]]


def calibrated(module: Module, layers: Sequence[Layer], data: Sequence[Batch],
               method: Method = "minmax", grams: bool = False) -> Calibration:
    """Run the module on all batches. A second run takes histograms, unless min-max needs none.

    Raises InputError GT0642 if an activation is not finite.
    """
    watched = [layer for layer in layers if layer.kind != "table"]
    groups = _Groups(module.graph, watched)
    ranges: dict[int, tuple[float, float]] = {}
    inputs = {layer: _inputs(layer, grams) for layer in watched if layer.other is None}

    def seen(v: Value, x: Array) -> None:
        if not np.isfinite(x).all():
            raise InputError("GT0642", "an activation is infinite or not a number",
                             where=f"the input of {groups.layer(v).name}",
                             hint="calibrate with other examples")
        for g in groups.of.get(v, ()):
            low, high = ranges.get(g, (np.inf, -np.inf))
            if x.size:
                ranges[g] = min(low, float(x.min())), max(high, float(x.max()))
        for layer in groups.readers.get(v, ()):
            inputs[layer].add(_rows(layer, x), -(-ROWS // len(data)))
    outputs = _run(module, data, seen, {*groups.of, *groups.readers})
    counts: dict[int, Array] = {}
    if method != "minmax":
        def counted(v: Value, x: Array) -> None:
            for g in groups.of.get(v, ()):
                new = histogram(x, *ranges[g])
                counts[g] = counts[g] + new if g in counts else new
        _run(module, data, counted, set(groups.of))
    activations = {reading: Seen(*ranges.get(g, (0.0, 0.0)), counts.get(g))
                   for g, members in groups.readings.items() for reading in members}
    return Calibration(activations, inputs, outputs)


def _run(module: Module, data: Sequence[Batch], seen: Callable[[Value, Array], None],
         wanted: set[Value]) -> list[Mapping[str, Array]]:
    """The outputs of each batch; `seen` gets each wanted value."""
    by_name = {n: v for v, n in value_names(module.graph).items() if v in wanted}
    given = {n: v for n, v in by_name.items() if v in module.graph.inputs}
    outputs: list[Mapping[str, Array]] = []
    for batch in data:
        def on_value(name: str, x: Array) -> None:
            if name in by_name:
                seen(by_name[name], x)
        for n, v in given.items():
            seen(v, np.asarray(batch[n]))
        outputs.append(interp.run(module, batch, on_value=on_value))
    return outputs


class _Groups:
    """Layers whose activations have one grid: layers that read a common value, or parts that are
    joined. Each operand of a product of two activations has a grid of its own."""

    def __init__(self, graph: Graph, layers: Sequence[Layer]) -> None:
        made_by = producers(graph)
        self.readers: dict[Value, list[Layer]] = {}
        owner: dict[Value, int] = {}
        self.readings: dict[int, list[tuple[Layer, Value]]] = {}
        for i, layer in enumerate(m for m in layers if m.other is None):
            self.readers.setdefault(layer.x, []).append(layer)
            values = origins(layer.x, made_by)
            joined = {owner[v] for v in values if v in owner}
            self.readings[i] = [m for g in sorted(joined) for m in self.readings.pop(g)] + [
                (layer, layer.x)]
            owner = {v: i if g in joined else g for v, g in owner.items()}
            owner.update(dict.fromkeys(values, i))
        self.of = {v: (g,) for v, g in owner.items()}
        for layer in layers:
            for v in layer.read if layer.other is not None else ():
                g = len(layers) + len(self.readings)
                self.readings[g] = [(layer, v)]
                self.of[v] = (*self.of.get(v, ()), g)

    def layer(self, v: Value) -> Layer:
        """A layer that reads v, or a value with elements of v."""
        readers = self.readers.get(v) or [layer for layer, _ in self.readings[self.of[v][0]]]
        return readers[0]


def _inputs(layer: Layer, grams: bool) -> LayerInputs:
    channels = layer.x.type.shape[layer.input_axis]
    n = channels if isinstance(channels, int) else layer.rows.shape[1]
    gram = np.zeros((n, n), np.float64) if grams and layer.deep else None
    return LayerInputs(np.zeros(n), np.zeros(n, np.float32), gram=gram)


def _rows(layer: Layer, x: Array) -> Array:
    """The layer's input as [rows, channels]."""
    return np.moveaxis(x, layer.input_axis, -1).reshape(-1, x.shape[layer.input_axis])
