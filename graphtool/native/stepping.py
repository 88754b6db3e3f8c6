"""Runs a build over a signal, step by step; the state is updated in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphtool.errors import InputError, UsageError, listed
from graphtool.native.runtime import Array, Model


def over(model: Model, inputs: Mapping[str, Any], axis: int) -> dict[str, Array]:
    """The results of all steps, one after the other along a new first axis; and the last state.

    Each run takes as much of the inputs along the axis as the build does. A state that is not given
    starts as zeros. Raises UsageError GT2224 for a build without a state, InputError GT2224 for
    inputs that are no whole number of steps long, and as `Model.run` does.
    """
    m = model.manifest
    pairs = {m.outputs[o].name: m.inputs[i].name for o, i in m.donations}
    if not pairs:
        raise UsageError("GT2224", f"{m.name} keeps no state from step to step",
                         hint="the pass step{axis=…} makes a graph that does")
    specs = {s.name: s for s in model.inputs}
    held = {n: np.array(inputs[n]) if n in inputs else np.zeros(
        _fixed(specs[n].shape), specs[n].dtype.numpy) for n in pairs.values()}
    signal = {n: np.asarray(x) for n, x in inputs.items() if n not in held}
    size = {n: _fixed(specs[n].shape) if n in specs else x.shape for n, x in signal.items()}
    counts = {n: _steps(n, x, size[n], axis) for n, x in signal.items()}
    if len(set(counts.values())) != 1:
        raise InputError("GT2224", "the inputs are not equally many steps long",
                         where=listed(f"{n} {k}" for n, k in counts.items()))
    out = {name: held[n] for name, n in pairs.items()}
    results = list[dict[str, Array]]()
    for i in range(max(counts.values())):
        parts = {n: np.ascontiguousarray(x.take(range(
            i * size[n][axis], (i + 1) * size[n][axis]), axis)) for n, x in signal.items()}
        found = model.run({**parts, **held}, out=out)
        results.append({n: y for n, y in found.items() if n not in out})
    return {n: np.stack([r[n] for r in results]) for n in results[0]} | out


def _fixed(shape: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes of a port; an open one counts as 1."""
    return tuple(d if isinstance(d, int) else 1 for d in shape)


def _steps(name: str, x: Array, size: tuple[int, ...], axis: int) -> int:
    """How many steps an input is long."""
    if not -len(size) <= axis < len(size) or x.ndim != len(size):
        raise InputError("GT2224", f"{name} has the shape {list(x.shape)}, a signal of parts "
                                   f"{list(size)} along axis {axis} expected")
    count, rest = divmod(int(x.shape[axis]), size[axis])
    if rest or not count:
        raise InputError("GT2224", f"{name} has {x.shape[axis]} along axis {axis}, no multiple of "
                                   f"{size[axis]}, of which a step is")
    return count
