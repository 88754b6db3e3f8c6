"""The values of an import: tracers, arrays known at import, sizes, and tensors not yet repeated.

An array may have axes of stride 0: what `broadcast_in_dim` repeats is stored once. `compact` is
such an array without the repetition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType, of_numpy
from graphtool.importers.stablehlo.driver.registry import Refused
from graphtool.importers.stablehlo.text.types import Kind
from graphtool.ir.graph import TensorType, Value
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim, Poly, product, text

Array = np.ndarray[Any, Any]
_SIGNS = {"==": o.eq, "!=": o.ne, "<": o.lt, "<=": o.le}
FOLD_LIMIT = 1 << 16  # elements of a result that is computed at import

_ELEMENTS = {
    "i1": dtypes.bool_, "index": dtypes.int64,
    "f8E4M3FN": dtypes.float8e4m3fn, "f8E4M3FNUZ": dtypes.float8e4m3fnuz,
    "f8E5M2": dtypes.float8e5m2, "f8E5M2FNUZ": dtypes.float8e5m2fnuz,
    "f8E4M3": dtypes.float8e4m3, "f8E3M4": dtypes.float8e3m4,
    "f8E4M3B11FNUZ": dtypes.float8e4m3b11fnuz,
    "f8E8M0FNU": dtypes.float8e8m0, "f4E2M1FN": dtypes.float4e2m1,
    **{f"f{n}": dtypes.BY_NAME[f"f{n}"] for n in (16, 32, 64)}, "bf16": dtypes.bfloat16,
    **{f"{mlir}{n}": dtypes.BY_NAME[f"{ours}{n}"] for n in (2, 4, 8, 16, 32, 64)
       for mlir, ours in (("i", "i"), ("si", "i"), ("ui", "u"))},
}


def element_type(kind: Kind) -> DType:
    """The row of a kind's element type. Raises Refused for types that have no counterpart."""
    row = _ELEMENTS.get(kind.element) if kind.shape is not None else None
    if row is None:
        raise Refused("complex numbers are not supported here" if kind.element.startswith("complex")
                      else f"the type {kind} is not supported")
    return row


@dataclass(frozen=True, slots=True)
class Spread:
    """`base` repeated to `shape` by NumPy's rule, not yet done: elementwise ops repeat operands
    themselves. A constant is a base where a size of the shape is open."""

    base: Tracer | Array
    shape: tuple[Dim, ...]

    @property
    def dtype(self) -> DType:
        """The element type."""
        return dtype_of(self.base)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Integers computed from open sizes: an array of ints and polynomials, and its type."""

    array: Array
    dtype: DType

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of the array itself."""
        return tuple(self.array.shape)


@dataclass(frozen=True, slots=True)
class Asked:
    """A comparison of two sizes that holds for some inputs only. `sign` is ==, !=, < or <=."""

    sign: str
    a: Dim
    b: Dim

    @property
    def dtype(self) -> DType:
        """A truth value."""
        return dtypes.bool_

    @property
    def shape(self) -> tuple[Dim, ...]:
        """It is one truth value."""
        return ()


def shape_of(x: Any) -> tuple[Dim, ...]:
    """The sizes of a value, one for each axis."""
    return tuple(x.shape)


def dtype_of(x: Any) -> DType:
    """The element type of a value."""
    return of_numpy(x.dtype) if isinstance(x, np.ndarray) else x.dtype


def type_of(x: Any) -> TensorType:
    """The tensor type of a value."""
    return TensorType(dtype_of(x), shape_of(x))


def compact(x: Array) -> Array:
    """The array with size 1 on each axis along which it repeats one element."""
    return x[(..., *(slice(0, 1) if step == 0 and n > 1 else slice(None)
                     for step, n in zip(x.strides, x.shape, strict=True)))]


def literal(x: Any) -> int | float | bool | None:
    """The one value of a constant, or None if it has several. A narrow float is the shortest
    decimal that rounds to it."""
    base = x.base if isinstance(x, Spread) else x
    if not isinstance(base, np.ndarray) or not base.size:
        return None
    one = compact(base)
    if one.size != 1 or not (dtype_of(one).is_integer or one.dtype.kind in "fb"
                             or dtype_of(one).is_float):
        return None
    v = one.reshape(())[()]
    if dtype_of(one).is_float:
        short = float(str(v))
        return short if one.dtype.type(short) == v else float(v)
    return v.item()  # type: ignore[no-any-return]


def stripped(x: Array) -> Array:
    """The array without the axes of size 1 at its front."""
    first = next((i for i, n in enumerate(x.shape) if n != 1), x.ndim)
    return x.reshape(x.shape[first:])


def tensor(x: Any, builder: Builder) -> Tracer:
    """A value as a tracer of its full shape."""
    match x:
        case Tracer():
            return x
        case Spread(base, shape):
            one = operand(base, builder)
            return one if one.shape == shape else o.broadcast(one, shape=shape)
        case Sizes():
            return _computed(x, builder)
        case Asked(sign, a, b):
            sides = [builder.emit(o.dim, (), {"of": d, "dtype": dtypes.int64}) for d in (a, b)]
            return _SIGNS[sign](*sides)  # type: ignore[no-any-return]
        case _:
            part = compact(x)
            if part.size == x.size:
                return builder.constant(np.ascontiguousarray(x).reshape(x.shape))
            made = builder.constant(np.array(stripped(part)))
            return o.broadcast(made, shape=tuple(x.shape))  # type: ignore[no-any-return]


def operand(x: Any, builder: Builder) -> Tracer:
    """A value as a tracer that NumPy's rule repeats to its shape."""
    match x:
        case Spread(base, _):
            return operand(base, builder)
        case np.ndarray():
            return builder.constant(np.array(stripped(compact(x))))
        case _:
            return tensor(x, builder)


def spread(x: Any, shape: tuple[Dim, ...]) -> Any:
    """x under NumPy's rule of broadcasting, as a value of this shape."""
    if isinstance(x, np.ndarray) and all(isinstance(d, int) and d > 0 for d in shape):
        return np.broadcast_to(x, [d for d in shape if isinstance(d, int)])
    return x if shape_of(x) == shape else Spread(x, shape)


def reshape(x: Tracer | Array, shape: tuple[Dim, ...]) -> Tracer | Array:
    """x under another shape. Of what is a reshape itself, or a broadcast that only adds axes, what
    it was made of is reshaped."""
    if isinstance(x, np.ndarray):
        return x.reshape([d for d in shape if isinstance(d, int)])
    node = x.builder.made.get(x.value)
    while node is not None and node.op in (o.reshape, o.broadcast):
        (source,) = node.inputs
        assert isinstance(source, Value)
        if product(source.type.shape) != product(x.shape):
            break
        x = Tracer(source, x.builder)
        node = x.builder.made.get(x.value)
    return x if x.shape == shape else o.reshape(x, shape=shape)


def before_reshape(x: Any, shape: tuple[Dim, ...]) -> Tracer | None:
    """What x is a reshape of, if that has this shape."""
    node = x.builder.made.get(x.value) if isinstance(x, Tracer) else None
    if node is None or node.op is not o.reshape:
        return None
    (source,) = node.inputs
    assert isinstance(source, Value)
    return Tracer(source, x.builder) if source.type.shape == shape else None


def _computed(x: Sizes, builder: Builder) -> Tracer:
    """Sizes as numbers of the graph, which the run knows."""
    if all(isinstance(d, int) for d in x.array.reshape(-1)):
        return builder.constant(np.array(x.array.tolist(), x.dtype.numpy).reshape(x.array.shape))
    parts = [builder.emit(o.dim, (), {"of": d, "dtype": x.dtype}) for d in x.array.reshape(-1)]
    if x.array.shape == ():
        return parts[0]  # type: ignore[no-any-return]
    rows = [o.reshape(p, shape=(1,)) for p in parts]
    joined = rows[0] if len(rows) == 1 else o.concat(*rows, axis=0)
    return joined if x.array.ndim == 1 else o.reshape(  # type: ignore[no-any-return]
        joined, shape=tuple(x.array.shape))


def dims_of(x: Any, what: str) -> tuple[Dim, ...]:
    """The numbers of a constant or of computed sizes. Raises Refused for what the run computes."""
    if isinstance(x, (np.ndarray, Sizes)):
        flat = (x.array if isinstance(x, Sizes) else x).reshape(-1)
        return tuple(d if isinstance(d, Poly) else int(d) for d in flat)
    raise Refused(f"{what} must be known at import, but is computed from data")


def shown(types: Sequence[TensorType]) -> str:
    """Types for a message: `f32[2,3], i32[]`."""
    return ", ".join(f"{t.dtype.short}[{','.join(map(text, t.shape))}]" for t in types)
