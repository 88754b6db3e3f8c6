"""Context, the first argument of every handler: the builder of one program, and torch's rules for
the types of results and numbers, with its promotion of mixed operands."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import InternalError
from graphtool.front import Array, Front, Refused
from graphtool.front.assumptions import SizeKnowledge
from graphtool.front.known import Elements
from graphtool.importers.torch.driver.captured import CapturedProgram
from graphtool.importers.wrapping import from_end, wrapped
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.run_sizes import bare
from graphtool.symbolic import Dim, Poly, known

# ---- promotion of types -------------------------------------------------------------------------

_KINDS = {"bool": 0, "uint": 1, "int": 1, "float": 2}


def category(x: Any) -> int:
    """0 bool, 1 integer, 2 floating point; for a tensor or a Python number."""
    if isinstance(x, Array):
        return _KINDS[x.dtype.kind]
    return 0 if isinstance(x, bool) else 2 if isinstance(x, float) else 1


def result_type(*xs: Any) -> DType:
    """The promoted type of tensors with axes; rank-0 tensors, then numbers, change it only if
    their category (bool, integer, float) is higher."""
    levels = ([x.dtype for x in xs if isinstance(x, Array) and x.ndim],
              [x.dtype for x in xs if isinstance(x, Array) and not x.ndim],
              [_of_number(x) for x in xs if not isinstance(x, Array)])
    result: DType | None = None
    for level in levels:
        here: DType | None = None
        for d in level:
            here = d if here is None else promote(here, d)
        if here is not None and (result is None or _KINDS[here.kind] > _KINDS[result.kind]):
            result = here
    return result or dtypes.float32


def _of_number(x: Any) -> DType:
    return (dtypes.bool_, dtypes.int64, dtypes.float32)[category(x)]


def promote(a: DType, b: DType) -> DType:
    """The type that torch promotes two element types to."""
    if a is b:
        return a
    ka, kb = _KINDS[a.kind], _KINDS[b.kind]
    if ka != kb:
        return a if ka > kb else b
    if a.kind == "float":
        if a.bits == b.bits:  # float16 with bfloat16
            return dtypes.float32
        return a if a.bits > b.bits else b
    if a.kind == b.kind:
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if signed.bits > unsigned.bits:
        return signed
    return {8: dtypes.int16, 16: dtypes.int32}.get(unsigned.bits, dtypes.int64)


# ---- the context --------------------------------------------------------------------------------

RANDOM_STATE = TensorType(dtypes.uint64, (2,))


class Context(Front):
    """The builder of a program, and the call whose handler runs. `outs` are the types torch gives
    for its results, None for an unused one; `first` is the type of the first result, used or not.
    """

    repeats = False

    def __init__(self, knowledge: SizeKnowledge,
                 convert: Callable[[CapturedProgram], Graph] | None = None) -> None:
        """`convert` makes a closed graph of a CapturedProgram, for calls that take one."""
        super().__init__(knowledge)
        self.convert = convert
        self.outs: tuple[TensorType | None, ...] = ()
        self.first: TensorType | None = None
        self.complex_outs: tuple[bool, ...] = ()  # whose `outs` are the types of their parts
        self.seed: Array | None = None   # the graph input, once something is random
        self.state: Array | None = None  # what it has become by now
        self.declared: Container[str] = ()  # symbols that the inputs have
        self.counted: dict[str, tuple[Value, Array]] = {}  # sizes of data: of which mask, where
        self.number_wanted: tuple[Dim, Dim | None] | None = None  # the symbol a number becomes

    def random_state(self) -> Array:
        """The state of the random generator; the first use makes it a graph input."""
        if self.state is None:
            self.seed = self.state = self.input(RANDOM_STATE, "rng")
        return self.state

    def drawn(self, op: Any, *operands: Any, **attrs: Any) -> Array:
        """The values that a random op draws; the context keeps the new generator state."""
        value: Array
        value, self.state = op(*operands, self.random_state(), **attrs)
        return value

    def region(self, program: CapturedProgram) -> Graph:
        """The closed graph of the program, to be an attribute (a region) of one of our ops."""
        if self.convert is None:
            raise InternalError("GT7205", "a graph is an argument where none can be converted")
        return self.convert(program)

    def open_size(self, mask: Value | None = None) -> tuple[Dim, Array | None]:
        """(the size that depends on data, the indices of an earlier call with this mask, or None).
        """
        kinds = [t for t in (self.first, *self.outs) if t is not None]
        for d in (d for t in kinds for d in t.shape):
            s = bare(d)
            if s is not None and s.name not in self.declared:
                of, indices = self.counted.get(str(d), (mask, None))
                if of is not mask:
                    raise Refused("its size depends on the data and is taken to be equal to that "
                                  "of another result, which is not supported")
                return d, indices
        raise Refused("a result whose size depends on the data is supported only where torch "
                      "names that size by one symbol")

    def size_of(self, count: Array, most: Dim | None = None) -> Dim:
        """The size that depends on data, which the run computes as this number."""
        size, _ = self.open_size()
        o.size(count.reshape(()), size=size, most=most)
        return size

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

    # ---- tensors -------------------------------------------------------------------------------

    def full(self, shape: Sequence[Dim], value: Any, dtype: DType) -> Array:
        """A tensor of one value, which may be a tensor itself."""
        x = self.cast(value, dtype)
        x = x if isinstance(x, Array) else self.number(x, dtype)
        return x.broadcast(shape)

    def zeros(self, i: int) -> Array | None:
        """Zeros for result i of the call, which torch leaves undefined; None for an unused one."""
        kind = self.outs[i] if self.used(i) else None
        return None if kind is None else self.full(kind.shape, 0, kind.dtype)

    def iota(self, shape: Sequence[Dim], axis: int, dtype: DType = dtypes.int64) -> Array:
        """The indices 0, 1, … along one axis, the same along the others."""
        out: Array = self.record(o.iota, (), {"shape": tuple(shape), "axis": axis, "dtype": dtype})
        return out

    def literal(self, x: Any, dtype: DType) -> Any:
        """A Python number as a literal of the element type.

        Raises Refused beyond the range of an integer type; a negative number of a type without
        sign wraps around, as in torch.
        """
        if not dtype.is_integer:
            return float(x) if dtype.is_float else bool(x)
        if not (dtype.low or -dtype.high) <= x <= dtype.high:
            raise Refused(f"{x} is beyond the range of {dtype.name}, which torch does not take")
        return self.as_operand(int(x), dtype)

    def cast(self, x: Any, dtype: DType) -> Any:
        """x in the element type: a tensor is cast, a number becomes a literal, a size a tensor."""
        match x:
            case Array():
                return wrapped(x, x.dtype, dtype)
            case Poly():
                return self.number(x, dtype)
            case bool() | int() | float():
                return self.literal(x, dtype)
            case _:
                return x

    def as_operand(self, x: Any, dtype: DType) -> Any:
        """`cast`, but any integer beyond the range of the type wraps around, as an operand of
        torch's arithmetic and comparisons does."""
        if isinstance(x, int) and dtype.is_integer:
            return (x - dtype.low) % (1 << dtype.bits) + dtype.low
        return self.cast(x, dtype)

    def promoted(self, *xs: Any) -> tuple[Any, ...]:
        """The operands in the type that torch promotes them to; at least one must be a tensor."""
        dtype = result_type(*xs)
        return tuple(self.as_operand(x, dtype) for x in xs)

    def wrap(self, index: Array, size: Dim) -> Array:
        """i64 indices; a negative one counts from the end, so `size` is added to it."""
        index = index.cast(dtypes.int64)
        least = Elements(self.made_by.get).span(index.value, None)[0]
        if isinstance(least, (int, Poly)) and known(least, "<", 0) is False:
            return index
        return from_end(index, self.number(size, dtypes.int64))  # type: ignore[no-any-return]


def batched(fn: Callable[[Array], Array], x: Array, rank: int) -> Array:
    """fn(x); an x that has only a channel axis before its `rank` spatial ones gets a batch axis of
    size 1 for the call."""
    return fn(x) if x.ndim != rank + 1 else fn(x.unsqueeze(0)).entry(0, 0)


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
