"""Collectives: ops that combine the values of all processes. A single process is a group of one.

They are composites over two primitives on flat arrays, so that other work can be done between the
start of an exchange and its end. The gradients assume that the loss is the sum over all processes.
Compiled code uses MPI (kernels/c/host/world.h); in the evaluator replicas in threads exchange
arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Barrier, BrokenBarrierError, Thread
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.facets import Lowering, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.trace import like
from graphtool.ops.common import Array, check_axis, composite, filled, need

TIMEOUT = 60.0  # how many seconds a replica waits for the others


@dataclass(frozen=True)
class World:
    """One replica among `size`; a single one exchanges data with nobody."""

    rank: int = 0
    size: int = 1
    meeting: Barrier | None = None
    table: list[Any] = field(default_factory=lambda: [None])

    def exchange(self, x: Any) -> list[Any]:
        """The arrays that all replicas gave, by rank. Raises InputError GT0508 if one of them
        never arrived."""
        self.table[self.rank] = x
        self.wait()
        values = list(self.table)
        self.wait()  # all must have read the table before it is used again
        return values

    def wait(self) -> None:
        """Wait until all replicas have called this. Raises InputError GT0508 if one fails or
        takes too long."""
        if self.meeting is None:
            return
        try:
            self.meeting.wait(TIMEOUT)
        except BrokenBarrierError as error:
            raise InputError("GT0508", "another replica failed, or never reached this "
                                       "exchange") from error


_CURRENT: ContextVar[World | None] = ContextVar("world", default=None)


def current() -> World:
    """The world in which the evaluator runs now."""
    return _CURRENT.get() or World()


@contextmanager
def within(world: World) -> Iterator[None]:
    """A context in which graphs are evaluated as this replica."""
    token = _CURRENT.set(world)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def replicas(size: int, function: Callable[[int], Any]) -> list[Any]:
    """Run function(rank) in `size` threads, each in a world of that size; raise the first error."""
    meeting, table = Barrier(size), [None] * size
    results: list[Any] = [None] * size
    faults: list[BaseException] = []

    def one(rank: int) -> None:
        try:
            with within(World(rank, size, meeting, table)):
                results[rank] = function(rank)
        except BaseException as error:
            faults.append(error)
            meeting.abort()
    threads = [Thread(target=copy_context().run, args=(one, rank)) for rank in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if faults:
        raise faults[0]
    return results


KINDS = ("sum", "mean", "max", "min")
_REDUCED = (dtypes.float64, dtypes.float32, dtypes.int64, dtypes.int32)
_NUMPY: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def _all(x: Array, kind: str) -> Array:
    """The reduction over all processes, in the order of their ranks."""
    parts = current().exchange(x)
    out = parts[0]
    for part in parts[1:]:
        out = _NUMPY[kind](out, part)
    return np.array(out, x.dtype)


# ---- the two halves ----------------------------------------------------------------------------

_TICKET = TensorType(dtypes.int64, (1,))
FLAT = (*_NUMPY, "gather", "scatter", "broadcast")


def _begin_infer(x: TensorType, *, kind: str, size: int = 1,
                 now: bool = False) -> tuple[TensorType, TensorType]:
    need(kind in FLAT, f"kind must be one of {', '.join(FLAT)}, not {kind!r}")
    need(x.rank == 1 and x.dtype in _REDUCED,
         f"the operand must be a flat array of f64, f32, i64 or i32, got {x}")
    n = x.shape[0]
    if kind == "gather":
        return TensorType(x.dtype, (n * size,)), _TICKET
    if kind == "scatter":
        need(isinstance(n, int) and n % size == 0, f"{x} cannot be divided into {size} equal parts")
        return TensorType(x.dtype, (n // size,)), _TICKET
    return x, _TICKET


def _begin_eval(x: Array, *, kind: str, size: int, now: bool) -> tuple[Array, Array]:
    here, ticket = current(), np.zeros(1, np.int64)
    if kind in _NUMPY:
        return _all(x, kind), ticket
    if kind == "broadcast":
        return np.array(here.exchange(x)[0]), ticket
    need(here.size == size, f"the graph is made for {size} processes, but {here.size} run")
    if kind == "gather":
        return np.concatenate(here.exchange(x)), ticket
    return np.split(_all(x, "sum"), size)[here.rank], ticket


def _begin_vjp(g: Any, y: Any, x: Any, *, kind: str, size: int, now: bool) -> tuple[Any]:
    """The gradient of each kind.

    The gradient of a sum is a sum; those of gather and scatter are each other. That of an extreme
    goes in equal parts to the processes that hold it, that of a broadcast to the first process.
    """
    if kind in ("max", "min"):
        has = o.cast(o.eq(x, y[0]), dtype=x.dtype)
        return (has * _exchanged(g[0], "sum") / _exchanged(has, "sum"),)
    if kind == "broadcast":
        return (o.select(o.eq(like(x, o.process_rank), 0), _exchanged(g[0], "sum"), 0.0),)
    return (_exchanged(g[0], {"sum": "sum", "gather": "scatter", "scatter": "gather"}[kind], size),)


register(Op("collective_begin", _begin_infer, _begin_eval, _begin_vjp,
            traits=Trait.DENSE | Trait.WORLD, lowering=Lowering.STATEMENTS, category="control",
            doc="starts an exchange of flat arrays between all processes: sum, max, min, gather, "
                "scatter (a part of the sum for each) or broadcast (from the first process); it "
                "ends at `collective_end`, or at once with `now`"))


def _end_infer(x: TensorType, y: TensorType, ticket: TensorType) -> TensorType:
    need(ticket == _TICKET, "the operands must be that of collective_begin and both its results")
    return y


register(Op("collective_end", _end_infer, lambda x, y, ticket: y,
            lambda g, out, x, y, ticket: (None, g, None),
            traits=Trait.DENSE | Trait.WORLD, lowering=Lowering.STATEMENTS, category="control",
            doc="waits for the exchange that `collective_begin` started and gives its result. The "
                "tensor that was sent is an operand too, because it is read until the exchange "
                "ends"))


def _exchanged(x: Any, kind: str, size: int = 1) -> Any:
    """Start an exchange of x as a flat array and wait for its result."""
    x = o.reshape(x, shape=(_size(x),))
    y, ticket = o.collective_begin(x, kind=kind, size=size, now=True)
    return o.collective_end(x, y, ticket)


def _rank_infer() -> TensorType:
    return TensorType(dtypes.int64, ())


register(Op("process_rank", _rank_infer, lambda: np.array(current().rank, np.int64),
            traits=Trait.DENSE | Trait.WORLD, lowering=Lowering.STATEMENTS, category="control",
            doc="the rank of this process, counted from 0"))


# ---- whole -------------------------------------------------------------------------------------

def _same(x: TensorType, *, kind: str = "sum") -> TensorType:
    need(kind in KINDS, f"kind must be one of {', '.join(KINDS)}, not {kind!r}")
    need(x.dtype.is_float or (x.dtype.is_integer and kind != "mean"),
         f"is not defined on {x.dtype.short}")
    return x


def _whole_eval(x: Array, *, kind: str) -> Array:
    if kind != "mean":
        return _all(x, kind)
    return np.asarray(_all(x, "sum") / x.dtype.type(current().size), x.dtype)


@composite(types=_same, eval=_whole_eval, category="control", traits=Trait.WORLD)
def all_reduce(x: Any, *, kind: str = "sum") -> Any:
    """The sum, mean, maximum or minimum over all processes; each process gets the result."""
    wide = x
    if x.dtype not in _REDUCED:
        wide = o.cast(x, dtype=dtypes.float32 if x.dtype.is_float else dtypes.int64)
    whole = _exchanged(flattened([wide], kind), "sum" if kind == "mean" else kind)
    (out,) = parted(whole, [wide], kind)
    return out if wide is x else o.cast(out, dtype=x.dtype)


@composite(types=lambda x: x, eval=lambda x: np.array(current().exchange(x)[0]),
           category="control", traits=Trait.WORLD)
def broadcast_first(x: Any) -> Any:
    """The tensor of the first process; each process gets it."""
    wide = x
    if x.dtype not in _REDUCED:
        wide = o.cast(x, dtype=dtypes.float32 if x.dtype.is_float else dtypes.int64)
    out = o.reshape(_exchanged(wide, "broadcast"), shape=x.shape)
    return out if wide is x else o.cast(out, dtype=x.dtype)


def flattened(xs: Sequence[Any], kind: str) -> Any:
    """Tensors of one dtype as one flat array. For a mean, a 1 is appended, so that its sum
    counts the processes."""
    flat = [o.reshape(x, shape=(_size(x),)) for x in xs]
    if kind == "mean":
        flat.append(filled(xs[0], 1.0, (1,)))
    return flat[0] if len(flat) == 1 else o.concat(*flat, axis=0)


def parted(whole: Any, xs: Sequence[Any], kind: str) -> list[Any]:
    """Split the flat array that `flattened` made of tensors like xs into those tensors again."""
    at: Any = 0
    out = []
    for x in xs:
        out.append(o.reshape(_part(whole, at, at + _size(x)), shape=x.shape))
        at = at + _size(x)
    if kind != "mean":
        return out
    count = o.reshape(_part(whole, at, at + 1), shape=())
    return [x / count for x in out]


def _part(x: Any, first: Any, last: Any) -> Any:
    return o.slice(x, start=(first,), limit=(last,), strides=(1,))


def _size(x: Any) -> Any:
    size: Any = 1
    for d in x.shape:
        size = size * d
    return size


# ---- gather and scatter ------------------------------------------------------------------------

def _gathered(x: TensorType, *, axis: int, size: int) -> TensorType:
    axis = check_axis(axis, x.rank)
    return TensorType(x.dtype, (*x.shape[:axis], x.shape[axis] * size, *x.shape[axis + 1:]))


def _scattered(x: TensorType, *, axis: int, size: int) -> TensorType:
    axis = check_axis(axis, x.rank)
    d = x.shape[axis]
    need(isinstance(d, int) and d % size == 0,
         f"axis {axis} of {x} cannot be divided into {size} equal parts")
    return TensorType(x.dtype, (*x.shape[:axis], d // size, *x.shape[axis + 1:]))


@composite(types=_gathered, category="control", traits=Trait.WORLD, precision=Precision.FOLLOW,
           vjp=lambda g, y, x, *, axis, size: (o.reduce_scatter(g, axis=axis, size=size),))
def all_gather(x: Any, *, axis: int, size: int) -> Any:
    """The tensors of `size` processes joined along an axis; each process gets the result."""
    parts = o.reshape(_exchanged(x, "gather", size), shape=(size, *x.shape))
    axis %= x.ndim
    back = (*range(1, axis + 1), 0, *range(axis + 1, x.ndim + 1))
    shape = (*x.shape[:axis], x.shape[axis] * size, *x.shape[axis + 1:])
    return o.reshape(o.transpose(parts, perm=back), shape=shape)


@composite(types=_scattered, category="control", traits=Trait.WORLD,
           vjp=lambda g, y, x, *, axis, size: (o.all_gather(g, axis=axis, size=size),))
def reduce_scatter(x: Any, *, axis: int, size: int) -> Any:
    """The sum over `size` processes; each process gets one part of it along an axis."""
    axis %= x.ndim
    each = x.shape[axis] // size
    parts = o.reshape(x, shape=(*x.shape[:axis], size, each, *x.shape[axis + 1:]))
    front = (axis, *(a for a in range(x.ndim + 1) if a != axis))
    mine = _exchanged(o.transpose(parts, perm=front), "scatter", size)
    return o.reshape(mine, shape=(*x.shape[:axis], each, *x.shape[axis + 1:]))
