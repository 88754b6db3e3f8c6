"""The values that handlers work on: Arrays, numpy arrays where all inputs are constant, and
questions to both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.front import Array, Refused
from graphtool.front.array import Numbers
from graphtool.importers.onnx.driver.computed import Recorder, entry, resolved
from graphtool.importers.onnx.driver.reader import shortest
from graphtool.ir.graph import TensorType
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


def dtype_of(x: Any) -> DType:
    """The dtype of a Tracer or of an array."""
    return x.dtype if isinstance(x, Tracer) else dtypes.of_numpy(x.dtype)


def type_of(x: Any) -> TensorType:
    """Dtype and shape of a Tracer or of an array."""
    return x.type if isinstance(x, Tracer) else TensorType(dtype_of(x), x.shape)


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
            isinstance(known_entry(x, i), int) for i in range(count_of(x)))):
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


def known_entry(x: Tracer, at: int) -> Dim | None:
    """An element of an integer tensor if shape arithmetic determines it, else None."""
    assert isinstance(x.builder, Recorder)
    return resolved(x.value, at, x.builder)


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


def literal(x: Any, rank: int) -> Any:
    """A constant of one element as a Python number if its rank is at most `rank`, else x.

    A name with a dot is a parameter of a module (`norm.scale`), which stays a tensor.
    """
    if isinstance(x, Array) and x.numbers is not None and x.numbers.size == 1 and x.ndim <= rank \
            and x.dtype is not dtypes.string and not (x.param and "." in x.hint):
        return python_number(x.numbers)
    return x


def operands(*xs: Any) -> tuple[Any, ...]:
    """Operands of an elementwise op: constants of one element as literals, others as they are. At
    least one stays a tensor."""
    if not any(isinstance(x, Tracer) for x in xs):
        return xs
    rank = max((x.ndim for x in xs if x is not None and array_of(x) is None), default=-1)
    if rank < 0:
        return xs
    return tuple(literal(x, rank) for x in xs)


def axis_of(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises ValueError if it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise ValueError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def axes_of(axes: Any, rank: int) -> tuple[int, ...]:
    """The axes counted from the front. Raises ValueError if one is out of range."""
    return tuple(axis_of(int(a), rank) for a in axes)


def cast(x: Any, dtype: DType, saturate: bool = True) -> Any:
    """x as `dtype`: x itself if it has that dtype, else a `cast`."""
    return x if dtype_of(x) is dtype else o.cast(x, dtype=dtype, saturate=saturate)


def number(value: Any, like: Any) -> Any:
    """A constant of one element with x's dtype: a Tracer if `like` is one, else an array."""
    array = np.asarray(value).astype(dtype_of(like).numpy)
    return like.builder.constant(array) if isinstance(like, Tracer) else array


def tensor(array: Numbers, like: Any) -> Any:
    """An array as a constant: a Tracer if `like` is one, else the array itself."""
    return like.builder.constant(array) if isinstance(like, Tracer) else array


def dim_value(d: Dim, like: Any) -> Any:
    """A dimension as an operand: a literal, or an int64 scalar if it is symbolic."""
    return d if isinstance(d, int) else dim_tensor(d, like.builder)


def reshape(x: Any, shape: tuple[Dim, ...]) -> Any:
    """x in this shape: x itself if it has that shape, else a `reshape`."""
    return x if tuple(x.shape) == tuple(shape) else o.reshape(x, shape=tuple(shape))


def as_row(x: Any, info: Any) -> Any:
    """A scalar as a vector of one entry if the subgraph's input `info` is declared so, else x.

    Some exporters give a loop's counter and condition the shape [1].
    """
    dims = info.type.tensor_type.shape.dim
    if not isinstance(x, Tracer) or x.ndim or len(dims) != 1 or dims[0].dim_value != 1:
        return x
    return o.reshape(x, shape=(1,))


def transpose(x: Any, perm: Any) -> Any:
    """x with its axes permuted: x itself for the identity, else a `transpose`."""
    perm = tuple(perm)
    return x if perm == tuple(range(len(perm))) else o.transpose(x, perm=perm)


def take(x: Any, axis: int, start: Dim, limit: Dim, stride: int = 1) -> Any:
    """x[start:limit:stride] along one axis, as a `slice`."""
    rank = x.ndim
    lo: list[Dim] = [0] * rank
    hi = list(x.shape)
    steps = [1] * rank
    lo[axis], hi[axis], steps[axis] = start, limit, stride
    return o.slice(x, start=tuple(lo), limit=tuple(hi), strides=tuple(steps))
