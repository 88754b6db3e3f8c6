"""The distance between two sets of arrays: the largest errors, and the share out of tolerance.

NaN equals NaN, and an infinity equals the same infinity. Nothing is run here. Sums in another order
differ a little. Where numbers are rounded to few bits, such a difference may lead to the next step,
and all later roundings part; n of them add up as random numbers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import msgspec
import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import InputError, listed
from graphtool.ir.graph import Module, Node, Value, is_constant
from graphtool.ir.run_sizes import all_nodes

Array = np.ndarray[Any, Any]
SHARE = 1e-5
LEAST = 1e-4  # for float32 through many layers, with sums in another order
MOST = 0.25  # no tolerance is wider, so that other weights always show
OTHER_HALVES = "numbers of 16 bits, of which sums in another order may round to the next one"
NO_HALVES = "onnxruntime computes halves in float32 and does not round them between nodes"


class Difference(msgspec.Struct):
    """One array compared with its reference. `max_rel` is relative to max(|reference|, smallest
    normal)."""

    name: str
    ok: bool
    max_abs: float | str
    max_rel: float | str
    out: int
    elements: int
    note: str = ""


def compare(expected: Mapping[str, Array], actual: Mapping[str, Array], atol: float | None,
            rtol: float) -> list[Difference]:
    """Compare each expected array with the one of its name, or by position if the names differ.

    If `atol` is None, it is SHARE of the array's largest magnitude, because rounding errors scale
    with it. Raises InputError GT3041 if the numbers of arrays differ.
    """
    if len(expected) != len(actual):
        raise InputError("GT3041", f"{len(expected)} outputs on one side, {len(actual)} on the "
                                   "other", where=(listed(expected), listed(actual)))
    named = set(expected) == set(actual)
    others: Sequence[Array] = [actual[n] for n in expected] if named else list(actual.values())
    return [difference(name, e, a, atol, rtol)
            for (name, e), a in zip(expected.items(), others, strict=True)]


def difference(name: str, expected: Array, actual: Array, atol: float | None,
               rtol: float) -> Difference:
    """|actual − expected| ≤ atol + rtol·|expected| for each element; integers must be equal."""
    expected, actual = np.asarray(expected), np.asarray(actual)
    if expected.shape != actual.shape:
        return Difference(name, False, "inf", "inf", expected.size, expected.size,
                          f"shapes differ: {list(expected.shape)} and {list(actual.shape)}")
    if is_text(expected) or is_text(actual):
        both = is_text(expected) and is_text(actual)
        count = int(np.count_nonzero(expected != actual)) if both else expected.size
        gap = float(count > 0)
        return Difference(name, not count, gap, gap, count, expected.size,
                          "" if not count else "other strings" if both else "one side has "
                                                                            "strings, the other "
                                                                            "numbers")
    if expected.dtype.kind in "biu" and actual.dtype.kind in "biu":
        e, a = expected.astype(object), actual.astype(object)
        wrong = int(np.count_nonzero(expected != actual))
        gap = float(max((abs(int(x) - int(y)) for x, y in zip(
            e.reshape(-1)[(expected != actual).reshape(-1)],
            a.reshape(-1)[(expected != actual).reshape(-1)], strict=True)), default=0))
        return Difference(name, wrong == 0, gap, gap, wrong, expected.size)
    e, a = expected.astype(np.float64), actual.astype(np.float64)
    return _floats(name, e, a, SHARE * magnitude(e) if atol is None else atol, rtol)


def is_text(x: Array) -> bool:
    """True for an array of strings."""
    return x.dtype.kind in "TU"


def magnitude(x: Array, least: float = 1.0) -> float:
    """The largest finite magnitude, but `least` or more."""
    if is_text(x):
        return least
    x = x.astype(np.float64)
    finite = np.abs(x, where=np.isfinite(x), out=np.zeros(x.shape))
    return max(least, float(finite.max(initial=0.0)))


def _floats(name: str, e: Array, a: Array, atol: float, rtol: float) -> Difference:
    with np.errstate(all="ignore"):
        same = (e == a) | (np.isnan(e) & np.isnan(a))
        gap = np.where(same, 0.0, np.abs(a - e))
        gap = np.where(np.isnan(gap), np.inf, gap)
        relative = np.where(same, 0.0, gap / np.maximum(np.abs(e), np.finfo(np.float32).tiny))
        relative = np.where(np.isnan(relative), np.inf, relative)
        wrong = ~same & (~np.isfinite(gap) | ~(gap <= atol + rtol * np.abs(e)))
    count = int(np.count_nonzero(wrong))
    note = ""
    if count:
        first = tuple(int(i) for i in np.argwhere(wrong)[0])
        note = f"first at {list(first)}: {e[first]:.9g} expected, {a[first]:.9g} found"
    return Difference(name, count == 0, _plain(gap.max(initial=0.0)),
                      _plain(relative.max(initial=0.0)), count, e.size, note)


def _plain(x: Any) -> float | str:
    return float(x) if np.isfinite(x) else "inf"


def worst(rows: Sequence[Difference]) -> str:
    """One line over all arrays: `max abs 1.2e-07, max rel 3.4e-06, 0 of 10 out of tolerance`."""
    out, total = sum(r.out for r in rows), sum(r.elements for r in rows)
    return (f"max abs {_largest([r.max_abs for r in rows])}, "
            f"max rel {_largest([r.max_rel for r in rows])}, {out} of {total} out of tolerance")


def _largest(values: Sequence[float | str]) -> str:
    top = max((float(v) for v in values), default=0.0)
    return f"{top:.2g}"


def tolerance(module: Module) -> float:
    """The share for numbers that are rounded to 8 bits or fewer, each two steps off."""
    return _added(_step(n) for n in all_nodes(module.graph))


def halves_kept(module: Module, *halves: DType) -> float:
    """The share where one side does not round to these types, by default float16, what the graph
    does: see NO_HALVES. Each rounding moves a number by half a step."""
    steps = {d: float(ml_dtypes.finfo(d.numpy).eps) / 2 for d in halves or (dtypes.float16,)}
    return _added(steps[v.type.dtype] for n in all_nodes(module.graph) if not is_constant(n)
                  for v in n.outputs if v.type.dtype in steps)


def _added(steps: Iterable[float]) -> float:
    return max(LEAST, min(MOST, 2.0 * math.sqrt(sum(s ** 2 for s in steps))))


def _step(node: Node) -> float:
    """The step of a rounding to 8 bits or fewer, as a share of the largest number; 0 without."""
    if node.attrs.get("activations") == "q8":
        return 1 / dtypes.int8.high
    if not any(isinstance(x, Value) and x.type.dtype.is_float and x.type.dtype.bits > 8
               for x in node.inputs):
        return 0.0
    rows = [v.type.dtype for v in node.outputs if v.type.dtype.bits <= 8]
    steps = [1 / d.high if d.is_integer else float(ml_dtypes.finfo(d.numpy).eps)
             for d in rows if d.is_integer or d.is_float]
    return max(steps, default=0.0)
