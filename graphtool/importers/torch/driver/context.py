"""Context, the first argument of every handler: the graph builder and torch's result types.

Casts, type promotion and literals are decided here, so that a handler states only mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.front import Refused
from graphtool.importers.from_end import from_end
from graphtool.importers.torch.driver.captured import Program
from graphtool.importers.torch.driver.promote import result_type
from graphtool.importers.wrapping import wrapped
from graphtool.ir.graph import Graph, TensorType, Value, is_constant
from graphtool.ir.op import OPS
from graphtool.ir.run_sizes import bare
from graphtool.ir.trace import Builder, Tracer
from graphtool.symbolic import Dim, Poly

RANDOM_STATE = TensorType(dtypes.uint64, (2,))


class Context:
    """The call that a handler converts. `outs` are the types torch gives for its results, None for
    an unused one; `first` is the type of the first result, used or not."""

    def __init__(self, builder: Builder,
                 convert: Callable[[Program], Graph] | None = None) -> None:
        """`convert` makes a closed graph of a Program, for calls that take one."""
        self.builder = builder
        self.convert = convert
        self.outs: tuple[TensorType | None, ...] = ()
        self.first: TensorType | None = None
        self.complex_outs: tuple[bool, ...] = ()  # whose `outs` are the types of their parts
        self.seed: Tracer | None = None   # the graph input, once something is random
        self.state: Tracer | None = None  # what it has become by now
        self.declared: Container[str] = ()  # symbols that the inputs have
        self.sizes: dict[str, tuple[Value, Tracer]] = {}  # sizes of data: of which mask, where
        self.number_wanted: tuple[Dim, Dim | None] | None = None  # the symbol a number becomes

    def random_state(self) -> Tracer:
        """The state of the random generator; the first use makes it a graph input."""
        if self.state is None:
            self.seed = self.state = self.builder.input(RANDOM_STATE, "rng")
        return self.state

    def drawn(self, op: Any, *operands: Any, **attrs: Any) -> Tracer:
        """The values that a random op draws; the context keeps the new generator state."""
        value: Tracer
        value, self.state = op(*operands, self.random_state(), **attrs)
        return value

    def region(self, program: Program) -> Graph:
        """The closed graph of a Program, to be an attribute (a region) of one of our ops."""
        if self.convert is None:
            raise InternalError("GT7205", "a graph is an argument where none can be converted")
        return self.convert(program)

    def open_size(self) -> tuple[Dim, tuple[Value, Tracer] | None]:
        """(the size that depends on data, (mask, indices) of an earlier call with it, or None)."""
        kinds = [t for t in (self.first, *self.outs) if t is not None]
        for d in (d for t in kinds for d in t.shape):
            s = bare(d)
            if s is not None and s.name not in self.declared:
                return d, self.sizes.get(str(d))
        raise Refused("a result whose size depends on the data is supported only where torch "
                      "names that size by one symbol")

    @property
    def complex_out(self) -> bool:
        """True if a result of the call is complex."""
        return any(self.complex_outs)

    @property
    def out(self) -> TensorType:
        """The type of the first result."""
        if self.first is None:
            raise InternalError("GT7202", "a handler asked for the type of what is no tensor")
        return self.first

    def used(self, i: int) -> bool:
        """True if result i of the call is read by anything."""
        return i < len(self.outs) and self.outs[i] is not None

    # ---- constants -----------------------------------------------------------------------------

    def constant(self, array: Any, dtype: DType | None = None) -> Tracer:
        """A constant of the array or number, in `dtype` if given."""
        if dtype and isinstance(array, (bool, int, float)):
            array = self.literal(array, dtype)
        data = np.asarray(array, dtype.numpy if dtype else None)
        return self.builder.constant(data)

    def full(self, shape: Sequence[Dim], value: Any, dtype: DType) -> Tracer:
        """A tensor of one value: a rank-0 constant, broadcast."""
        if isinstance(value, Poly):
            value = self.number(value, dtype)
        x = value if isinstance(value, Tracer) else self.constant(value, dtype)
        return self.broadcast(self.cast(x, dtype), shape)

    def iota(self, shape: Sequence[Dim], axis: int, dtype: DType = dtypes.int64) -> Tracer:
        """The indices 0, 1, … along one axis, the same along the others."""
        out: Tracer = self.builder.emit(
            OPS["iota"], (), {"shape": tuple(shape), "axis": axis, "dtype": dtype})
        return out

    def number(self, d: Dim, dtype: DType) -> Any:
        """A size as an operand: a literal, or the dim op that reads a symbolic size."""
        if isinstance(d, int):
            return self.literal(d, dtype)
        return self.builder.emit(OPS["dim"], (), {"of": d, "dtype": dtype})

    # ---- types ---------------------------------------------------------------------------------

    def literal(self, x: Any, dtype: DType) -> Any:
        """A Python number as a literal of the element type.

        Raises Refused beyond the range of an integer type; a negative number of a type without
        sign wraps around, as in torch.
        """
        if not dtype.is_integer:
            return float(x) if dtype.is_float else bool(x)
        if not (dtype.low or -dtype.high) <= x <= dtype.high:
            raise Refused(f"{x} is beyond the range of {dtype.name}, which torch does not take")
        return self.operand(int(x), dtype)

    def cast(self, x: Any, dtype: DType) -> Any:
        """x in the element type: a tensor is cast, a number becomes a literal, a size a dim op."""
        match x:
            case Tracer():
                return wrapped(x, x.dtype, dtype)
            case Poly():
                return self.number(x, dtype)
            case bool() | int() | float():
                return self.literal(x, dtype)
            case _:
                return x

    def operand(self, x: Any, dtype: DType) -> Any:
        """`cast`, but any integer beyond the range of the type wraps around, as an operand of
        torch's arithmetic and comparisons does."""
        if isinstance(x, int) and dtype.is_integer:
            return (x - dtype.low) % (1 << dtype.bits) + dtype.low
        return self.cast(x, dtype)

    def promoted(self, *xs: Any) -> tuple[Any, ...]:
        """The operands in the type that torch promotes them to; at least one must be a tensor."""
        dtype = result_type(*xs)
        return tuple(self.operand(x, dtype) for x in xs)

    # ---- shapes --------------------------------------------------------------------------------

    def reshape(self, x: Tracer, shape: Sequence[Dim]) -> Tracer:
        """reshape(x); x itself if it has the shape already."""
        shape = tuple(shape)
        return x if x.shape == shape else o.reshape(x, shape=shape)

    def broadcast(self, x: Tracer, shape: Sequence[Dim]) -> Tracer:
        """broadcast(x); x itself if it has the shape already."""
        shape = tuple(shape)
        return x if x.shape == shape else o.broadcast(x, shape=shape)

    def transpose(self, x: Tracer, perm: Sequence[int]) -> Tracer:
        """transpose(x), negative axes allowed; x itself if nothing moves."""
        perm = tuple(p % x.ndim for p in perm)
        return x if perm == tuple(range(x.ndim)) else o.transpose(x, perm=perm)

    def window(self, x: Tracer, axis: int, start: Dim, limit: Dim, step: int = 1) -> Tracer:
        """x[start:limit:step] along one axis."""
        n = x.ndim
        if start == 0 and limit == x.shape[axis] and step == 1:
            return x
        out: Tracer = o.slice(
            x, start=tuple(start if i == axis else 0 for i in range(n)),
            limit=tuple(limit if i == axis else d for i, d in enumerate(x.shape)),
            strides=tuple(step if i == axis else 1 for i in range(n)))
        return out

    def wrap(self, index: Tracer, size: Dim) -> Tracer:
        """i64 indices; a negative one counts from the end, so `size` is added to it."""
        index = self.cast(index, dtypes.int64)
        producer = self.builder.made.get(index.value)
        if producer is not None and producer.op.name == "iota":
            return index
        if is_constant(producer):
            data = producer.attrs["data"].source
            if not data.size or data.min() >= 0:
                return index
        out: Tracer = from_end(index, self.number(size, dtypes.int64))
        return out


def axis_of(dim: int, rank: int) -> int:
    """A possibly negative dim as an axis number; torch allows 0 and −1 for rank 0."""
    return dim % max(rank, 1)


def axes_of(dim: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction: none or an empty list means all."""
    if dim is None or dim == ():
        return tuple(range(rank))
    dims = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted(axis_of(d, rank) for d in dims)) if rank else ()


def pairs(x: Any, n: int) -> tuple[int, ...]:
    """n entries: a single int, or a list of one, is repeated."""
    if isinstance(x, int):
        return (x,) * n
    return tuple(x) * n if len(x) == 1 and n > 1 else tuple(x)
