"""What an op computes at import: of known numbers by its `eval`, of sizes and conditions by its
`known`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool.dtypes import of_numpy
from graphtool.front.array import Array, Numbers, compact
from graphtool.ir.facets import Movement, Trait
from graphtool.ir.op import Op, evaluate

FOLD_LIMIT = 1 << 16  # elements of operands, or of a result, that is computed at import
_PRODUCTS = 1 << 24  # of the sizes of two operands: more is too much work at import
_READ = 1 << 24  # elements that an op reads, however many of them are one number in memory
_GROWN = 1 << 12  # elements of a result that has more than its operands
_ENTRIES = 1 << 10  # sizes in one array that is computed at import
_NEVER = Trait.RANDOM | Trait.WORLD | Trait.SIZE
_VIEWS = Movement.PERMUTES | Movement.TAKES | Movement.REVERSES | Movement.REPEATS
_MOVES = _VIEWS | Movement.KEEPS | Movement.JOINS


def evaluated(op: Op, xs: Sequence[Any], attrs: dict[str, Any], types: Any
               ) -> tuple[Numbers, ...] | None:
    """The results on known numbers; None if that is too much work, or more than data."""
    arrays = [x.known for x in xs if isinstance(x, Array) and x.known is not None]
    if op.traits & _NEVER or op.category in ("control", "memory") or (
            op.eval is None and op.decompose is None):
        return None
    several = types if isinstance(types, tuple) else (types,)
    operands = [x.known if isinstance(x, Array) else x for x in xs]
    if Trait.ELEMENTWISE in op.traits:
        parts = [compact(x) if isinstance(x, np.ndarray) else x for x in operands]
        if np.broadcast(*(p for p in parts if isinstance(p, np.ndarray))).size > FOLD_LIMIT:
            return None
        return (np.broadcast_to(evaluate(op, parts, attrs), several[0].shape),)
    if not all(isinstance(d, int) for t in several for d in t.shape):
        return None
    if Movement.KEEPS in op.movement and compact(arrays[0]).size == 1:
        return (np.broadcast_to(compact(arrays[0]).reshape(()), several[0].shape),)
    if not (op.movement & _VIEWS or _is_little_work(arrays, several)):
        return None
    out = evaluate(op, operands, attrs)
    return out if isinstance(out, tuple) else (out,)


def _is_little_work(arrays: Sequence[Numbers], types: Sequence[Any]) -> bool:
    """Whether an op that is no view can compute results of these types at import."""
    whole = sorted(compact(a).size for a in arrays)
    return sum(whole) <= FOLD_LIMIT and math.prod(whole[-2:]) <= _PRODUCTS and all(
        a.size <= _READ for a in arrays) and all(
        math.prod(t.shape) <= max(_GROWN, *whole) for t in types)


def of_entries(op: Op, xs: Sequence[Any], arrays: Sequence[Array], attrs: dict[str, Any]
                ) -> Numbers | None:
    """The result on sizes and conditions; None if it is neither."""
    dtype = arrays[0].dtype if arrays else None
    if op.traits & _NEVER:
        return None
    moves = op.movement & _MOVES and Movement.REPEATS not in op.movement
    if (op.known is None and not (moves or op.indexing)) or any(
            compact(x.known).size > _ENTRIES for x in arrays):  # type: ignore[arg-type]
        return None
    into = {op.indexing.into} if op.indexing and op.indexing.draws else range(len(xs))
    known = [_as_entries(x) if i in into else x.numbers if isinstance(x, Array) else x
             for i, x in enumerate(xs)]
    if any(k is None and x is not None for k, x in zip(known, xs, strict=True)):
        return None
    if op.known is None:
        return np.asarray(op.eval(*known, **attrs))  # type: ignore[misc]
    if Trait.ELEMENTWISE not in op.traits:
        return op.known(dtype, *known, **attrs)  # type: ignore[no-any-return]
    wide = np.broadcast_arrays(*(compact(k) for k in known if k is not None))
    out = np.empty(wide[0].shape, object)
    flat = out.reshape(-1)
    for i, row in enumerate(zip(*(w.reshape(-1) for w in wide), strict=True)):
        flat[i] = op.known(dtype, *row, **attrs)
        if flat[i] is None:
            return None
    return flat.reshape(wide[0].shape)


def _as_entries(x: Any) -> Numbers | None:
    """Known elements as sizes and truth values; None for numbers that are not whole."""
    if isinstance(x, Array) and x.symbolic:
        return x.known
    array = x.known if isinstance(x, Array) else np.asarray(x)
    if array is None or (array.dtype.kind not in "biuf" and not of_numpy(array.dtype).is_float):
        return None
    if array.dtype.kind == "b":
        return array.astype(object)
    if of_numpy(array.dtype).is_float:
        wide = array.astype(np.float64)
        if not (np.isfinite(wide).all() and (wide == np.trunc(wide)).all()):
            return None
        array = wide
    out = np.empty(array.shape, object)
    flat = out.reshape(-1)
    flat[:] = [int(v) for v in array.reshape(-1)]
    return flat.reshape(array.shape)
