"""How good a build is on given data: against labels, expected outputs, or a reference model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.errors import InputError, listed
from graphtool.native.runtime import Model
from graphtool.report.summary import Accuracy
from graphtool.verify.sides import Side, by_position

Array = np.ndarray[Any, Any]
BATCH = 64  # examples of a run, where the build leaves their number open


def accuracy(model: Model, data: Mapping[str, Array], where: Path, reference: Side | None = None
             ) -> list[Accuracy]:
    """One row for each output that something can be said of.

    `data` has the inputs by name, examples along the first axis, and what the outputs are compared
    with: an array of an output's name is the expected output; one array of integers, with one for
    each example, are classes. The outputs of `reference`, if given, are expected as well. Raises
    InputError GT0641 for arrays that do not fit.
    """
    names = [p.name for p in model.inputs]
    if missing := [n for n in names if n not in data]:
        raise InputError("GT0641", f"the data have no array {missing[0]!r}", where=str(where),
                         hint=f"the build needs {listed(names)}; the file has {listed(data)}")
    kinds = {p.name: p.dtype.numpy for p in model.inputs}
    inputs = {n: np.asarray(data[n]).astype(kinds[n], copy=False) for n in names}
    got: dict[str, list[Array]] = {}
    want: dict[str, list[Array]] = {}
    for batch in _batches(model, inputs):
        for name, x in model.run(batch).items():
            got.setdefault(name, []).append(x)
        if reference is not None:
            reference_ = reference.run(by_position(batch, tuple(names), reference.inputs))
            for name, x in zip(got, reference_.values(), strict=False):
                want.setdefault(name, []).append(x)
    whole = {n: np.concatenate(xs) if xs[0].ndim else np.stack(xs) for n, xs in got.items()}
    expected = {n: np.concatenate(xs) if xs[0].ndim else np.stack(xs) for n, xs in want.items()}
    out = [row for name, y in whole.items() if name in data
           for row in _close(name, np.asarray(data[name])[:len(y)], y, "the data")]
    out += [row for name, y in expected.items()
            for row in _close(name, y, whole[name], reference.kind if reference else "")]
    for name, labels in data.items():
        unused = name not in inputs and name not in whole
        if unused and labels.ndim == 1 and labels.dtype.kind in "iu":
            out += [_classes(n, name, y, labels) for n, y in whole.items()
                    if y.ndim == 2 and y.dtype.kind == "f" and len(labels) >= len(y)]
            out += [_classes(n, f"the reference and {name}", y, labels) for n, y in expected.items()
                    if y.ndim == 2 and y.dtype.kind == "f" and len(labels) >= len(y)]
    return out


def _batches(model: Model, data: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """The examples as the build takes them; a rest that fills no batch of a fixed size is left."""
    firsts = {p.shape[0] for p in model.inputs if p.shape}
    lengths = {len(a) for a in data.values() if a.ndim}
    fixed = [d for d in firsts if isinstance(d, int)]
    if len(firsts) != 1 or len(lengths) != 1:
        yield dict(data)
        return
    most = min((m.max for m in model.manifest.dims if m.max is not None), default=BATCH)
    step = fixed[0] if fixed else min(BATCH, most)
    length = lengths.pop()
    for i in range(0, length - step + 1 if fixed else length, max(step, 1)):
        yield {n: a[i:i + step] for n, a in data.items()}


def _close(name: str, expected: Array, got: Array, by: str) -> Iterator[Accuracy]:
    """The error of a float output, the share of equal elements of any other output."""
    if expected.shape != got.shape:
        raise InputError("GT0641", f"{by} has {name} of the shape {list(expected.shape)}, the "
                                   f"build computes {list(got.shape)}")
    if got.dtype.kind in "biuOSUT" or not got.size:
        yield Accuracy(name, "equal", float(np.mean(expected == got)) if got.size else 1.0,
                       len(got), by)
        return
    e, g = expected.astype(np.float64), got.astype(np.float64)
    size = float((e ** 2).sum())
    yield Accuracy(name, "relative error", float(np.sqrt(((e - g) ** 2).sum() / size)) if size
                   else float(np.abs(g).max()), len(got), by)
    yield Accuracy(name, "largest difference", float(np.abs(e - g).max()), len(got), by)


def _classes(name: str, by: str, y: Array, labels: Array) -> Accuracy:
    right = y.argmax(axis=1) == labels[:len(y)]
    return Accuracy(name, "right class", float(right.mean()), len(y), by)
