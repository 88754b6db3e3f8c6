"""The values that handlers work on: Arrays, numpy arrays where all inputs are constant, and
questions to both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Array, Refused
from graphtool.front.array import Numbers
from graphtool.importers.onnx.driver.computed import entry, known_element
from graphtool.importers.onnx.driver.reader import shortest
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, Poly, product

# ---- dimensions as tensors ---------------------------------------------------------------------

def dim_tensor(d: Dim, builder: Any) -> Array:
    """A dimension as an int64 scalar."""
    return builder.number(d, dtypes.int64)  # type: ignore[no-any-return]


# ---- questions ---------------------------------------------------------------------------------

def array_of(x: Any) -> Numbers | None:
    """The array of a value known at import (numbers or dimensions), else None."""
    if isinstance(x, Array):
        return None if x.known is None or (x.symbolic and x.dtype is dtypes.bool_) else x.known
    return x if isinstance(x, np.ndarray) else None


def finite(x: Any) -> bool:
    """Whether the value is known at import and holds neither NaN nor infinity."""
    array = array_of(x)
    return array is not None and array.dtype != object and bool(
        np.isfinite(array.astype(np.float64, copy=False)).all())


def computed(what: str) -> Refused:
    """The refusal of a value that the run computes where import needs a constant."""
    return Refused(f"{what} must be known at import, but is computed from the model's inputs; make "
                   "it a constant or an initializer")


def _symbolic(what: str) -> Refused:
    return Refused(f"{what} depends on a symbolic size, but must be known at import; fix that size "
                   "with --dynamic NAME=SIZE")


def dims(x: Any, what: str, least: int | None = 0,
         most: Dim | Sequence[Dim | None] | None = None) -> tuple[Dim, ...]:
    """The entries of an integer vector as dimensions.

    An entry that is computed at run time becomes a symbolic size of at least `least` and at most
    `most`, which is one bound for all entries or one for each. `what` names the vector in errors.
    """
    array = array_of(x)
    if array is None:
        count = product(x.shape)
        if not isinstance(count, int) or not x.dtype.is_integer:
            raise computed(what)
        return tuple(entry(x, i, least, most[i] if isinstance(most, Sequence) else most)
                     for i in range(count))
    return tuple(d if isinstance(d, Poly) else int(d) for d in np.asarray(array).reshape(-1))


def ints(x: Any, what: str) -> tuple[int, ...]:
    """The entries of a constant integer vector. Raises Refused for symbolic ones."""
    if array_of(x) is None and (not isinstance(x, Tracer) or not all(
            isinstance(known_element(x, i), int) for i in range(count_of(x)))):
        raise computed(what)
    out = dims(x, what)
    if any(isinstance(d, Poly) for d in out):
        raise _symbolic(what)
    return out  # type: ignore[return-value]


def count_of(x: Any) -> int:
    """The number of elements of a tensor. Raises Refused if it is symbolic."""
    count = product(x.shape)
    if not isinstance(count, int):
        raise _symbolic("the number of elements of a vector of sizes")
    return count


def floats(x: Any, what: str) -> tuple[float, ...]:
    """The entries of a constant tensor. Raises Refused if the run computes them."""
    array = array_of(x)
    if array is None:
        raise computed(what)
    if array.dtype == object:
        raise _symbolic(what)
    return tuple(float(v) for v in np.asarray(array).reshape(-1))


def one(x: Any, what: str) -> Any:
    """The Python number of a constant tensor with one element. Raises Refused for others."""
    array = array_of(x)
    if array is None:
        raise computed(what)
    if array.size != 1:
        raise Refused(f"{what} must be one number, but has {array.size} elements")
    if array.dtype == object:
        raise _symbolic(what)
    return python_number(array)


def python_number(array: Numbers) -> Any:
    """The first element of an array as a bool, int or float."""
    row = dtypes.of_numpy(array.dtype)
    entry = array.reshape(-1)[0]
    if row is dtypes.float32:
        return shortest(float(entry))
    return bool(entry) if row is dtypes.bool_ else float(entry) if row.is_float else int(entry)


def axis_of(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises ValueError if it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """The axes counted from the front. Raises ValueError if one is out of range."""
    return tuple(axis_of(int(a), rank) for a in axes)


def dim_value(d: Dim, like: Any) -> Any:
    """A dimension as an operand: a literal, or an int64 scalar if it is symbolic."""
    return d if isinstance(d, int) else dim_tensor(d, like.builder)


def as_row(x: Any, info: Any) -> Any:
    """A scalar as a vector of one entry if the subgraph's input `info` is declared so, else x.

    Some exporters give a loop's counter and condition the shape [1].
    """
    dims = info.type.tensor_type.shape.dim
    if not isinstance(x, Tracer) or x.ndim or len(dims) != 1 or dims[0].dim_value != 1:
        return x
    return o.reshape(x, shape=(1,))

