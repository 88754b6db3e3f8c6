"""When two results are different: types, shapes, places of NaN and infinity, numbers.

The tolerance follows from the size of the operands and the length of the sums. Where a result
still differs, the graph itself is asked how much it amplifies roundings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from graphtool import interp
from graphtool import ops as o
from graphtool.assume import Assumption
from graphtool.dtypes import float64, of_numpy
from graphtool.errors import GraphtoolError
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Module, Node, is_constant
from graphtool.ir.replay import last_uses, replay
from graphtool.passes.decompose import decompose

Array = np.ndarray[Any, Any]
ROUNDINGS = 64  # of functions, their arguments and results, besides those of sums
AMPLIFIED = 64  # times the change that one more rounding of each result makes
TRIALS, CHOICES = 4, 32  # evaluations with other roundings: of floats; where an output is a choice


def is_float(x: Array) -> bool:
    """Whether the elements are floats, ml_dtypes' included."""
    return x.dtype.kind in "fV" or x.dtype.name == "bfloat16"


def assumed(arrays: Iterable[Array]) -> Assumption:
    """What may be assumed of these numbers."""
    return "finite" if all(bool(np.isfinite(x.astype(np.float64)).all()) for x in arrays
                           if is_float(x)) else "nothing"


def largest(arrays: Iterable[Array]) -> float:
    """The largest finite magnitude among the floats."""
    found = 0.0
    for x in arrays:
        if is_float(x) and x.size:
            wide = np.abs(x.astype(np.float64))
            found = max(found, float(np.max(wide, initial=0, where=np.isfinite(wide))))
    return found


def difference(got: Array, want: Array, operands: Sequence[Array] = (), roundings: int = ROUNDINGS,
               allowed: Array | None = None) -> str:
    """The kind of difference: dtype, shape, nan, inf or value; empty if there is none.

    `allowed` is what each element may be off besides; NaN there says that nothing is known of it,
    and if it is NaN throughout, the sizes may differ.
    """
    if got.dtype != want.dtype:
        return f"dtype {got.dtype} for {want.dtype}"
    if got.shape != want.shape:
        moves = allowed is not None and allowed.size and bool(np.isnan(allowed).all())
        return "" if moves and got.ndim == want.ndim else (
            f"shape {list(got.shape)} for {list(want.shape)}")
    loose = np.zeros(want.shape) if allowed is None else allowed
    known = ~np.isnan(loose)
    if not is_float(want):
        return "value" if bool(np.any((got != want) & known & (loose == 0))) else ""
    g, w = got.astype(np.float64), want.astype(np.float64)
    if bool(np.any((np.isnan(g) != np.isnan(w)) & known)):
        return "nan"
    if bool(np.any((np.where(np.isinf(g), np.sign(g), 0) != np.where(np.isinf(w), np.sign(w), 0))
                   & known)):
        return "inf"
    terms = max((n for x in operands for n in x.shape), default=1)
    share = float(ml_dtypes.finfo(of_numpy(want.dtype).numpy).eps) * (roundings + terms)
    with np.errstate(all="ignore"):
        limit = share * (np.abs(w) + largest([want, *operands])) + loose
        off = np.abs(g - w) > limit
    return "value" if bool(np.any(off & np.isfinite(g) & np.isfinite(w) & known)) else ""


def differing(got: Mapping[str, Array], want: Mapping[str, Array], nodes: int,
              allowed: Mapping[str, Array] | None = None) -> dict[str, str]:
    """The outputs that differ and how; a graph of so many nodes rounds as often."""
    return {name: kind for name, w in want.items() if (kind := difference(
        got[name], w, roundings=ROUNDINGS * max(nodes, 1),
        allowed=None if allowed is None else allowed.get(name)))}


def amplified(module: Module, inputs: Mapping[str, Array], want: Mapping[str, Array]) -> dict[
        str, Array]:
    """How far each element of the outputs moves when roundings change.

    Evaluated in float64, and then with results one rounding away: a few times for floats, which
    all move; more often where an output is no float, since a tie seldom breaks. Composites are
    taken apart, for their roundings inside. Where what is no number moves, nothing is known: NaN.
    """
    parts = in_parts(module)
    moved = {name: np.zeros(w.shape) for name, w in want.items()}
    for trial in range(TRIALS if all(map(is_float, want.values())) else CHOICES):
        try:
            other = (interp.run(module, inputs, dtype=float64) if trial == 0 else
                     nudged(parts, inputs, trial))
        except (GraphtoolError, ArithmeticError, ValueError):
            continue
        for name, w in want.items():
            o = other[name]
            if o.shape != w.shape:
                moved[name][...] = np.nan
                continue
            wide, true = o.astype(np.float64), w.astype(np.float64)
            with np.errstate(all="ignore"):
                step = np.abs(wide - true) * AMPLIFIED
            same = (wide == true) | (np.isnan(wide) & np.isnan(true))
            unknown = ~same & ~(np.isfinite(wide) & np.isfinite(true))
            moved[name] = np.maximum(moved[name], np.where(same, 0, np.where(unknown, np.nan,
                                                                             step)))
    return {name: _spread(m) if is_float(want[name]) else m for name, m in moved.items()}


def in_parts(module: Module) -> Module:
    """The module without composites; as it is if one cannot be taken apart."""
    try:
        return replace(module, graph=decompose(module.graph, keep=()))
    except GraphtoolError:
        return module


def _spread(moved: Array) -> Array:
    """An element that happened not to move may still be off by a share of those that did."""
    if not moved.size or bool(np.isnan(moved).all()):
        return moved
    return np.asarray(np.maximum(moved, np.nanmax(moved) / 16))


def nudged(module: Module, inputs: Mapping[str, Array], trial: int) -> dict[str, Array]:
    """The evaluator's results if each node that computes floats rounds a little differently, and
    products take their factors by size."""
    rng, setting = np.random.default_rng(trial), interp.Setting()

    def apply(node: Node, *xs: Any) -> list[Array]:
        if node.op is o.reduce_prod:
            xs = (_by_size(xs[0], node.attrs["axes"]),)
        found = interp.evaluate_node(node, xs, setting)
        if is_constant(node) or node.op.movement or Trait.PICKS in node.op.traits:
            return found
        return [_rounded(x, rng) for x in found]

    with np.errstate(all="ignore"):
        arrays = interp.bind_inputs(module, inputs, setting)
        outputs = replay(module.graph, arrays, apply, last_uses(module.graph))
    return dict(zip(module.output_names, outputs, strict=True))


def _by_size(x: Array, axes: Sequence[int]) -> Array:
    """The elements sorted by magnitude over these axes."""
    last = range(-len(axes), 0)
    moved = np.moveaxis(x, axes, last)
    flat = moved.reshape(*moved.shape[:moved.ndim - len(axes)], -1)
    order = np.argsort(np.abs(flat), axis=-1)
    return np.moveaxis(np.take_along_axis(flat, order, -1).reshape(moved.shape), last, axes)


def _rounded(x: Array, rng: np.random.Generator) -> Array:
    if not is_float(x):
        return x
    eps = 2 * float(ml_dtypes.finfo(x.dtype).eps)
    return np.asarray((x.astype(np.float64) * (1 + eps * rng.choice((-1, 1), x.shape))
                       ).astype(x.dtype))
