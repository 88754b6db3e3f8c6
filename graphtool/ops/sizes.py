"""Sizes that depend on data: `size` makes a computed integer a size; `nonzero` finds as many rows
as there are. `assume` gives sizes that must be equal one form.

The attribute `size` is the symbol that the node defines (an int once it is known). Types and
attributes of later nodes may use it like any other dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.ir.facets import Axes, Lowering, Movement, Precision, Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.run_sizes import bare
from graphtool.ir.trace import like
from graphtool.loops.pull import Names, Pull
from graphtool.ops.common import Array, fail, filled, need
from graphtool.ops.costs import nothing
from graphtool.symbolic import Dim, known, minimum, product, text

# ---- size --------------------------------------------------------------------------------------


def _check_size(size: Dim) -> None:
    if not isinstance(size, int) and bare(size) is None:
        raise fail(f"the attribute size must be a symbol or a number, not {text(size)}")


def _size_infer(n: TensorType, *, size: Dim, most: Dim | None = None,
                checked: bool = False) -> TensorType:
    need(n == TensorType(dtypes.int64, ()),
         f"a size must be {TensorType(dtypes.int64, ())}, got {n}")
    _check_size(size)
    return n


def _size_eval(n: Array, *, size: int | None = None, most: int | None = None,
               checked: bool = False) -> Array:
    if size is not None and int(n) != size:
        raise InputError("GT0505", f"the size is {int(n)}, expected {size}")
    if most is not None and int(n) > most:
        raise InputError("GT0505", f"the size is {int(n)}, expected {most} or less")
    return n


register(Op("size", _size_infer, _size_eval, lambda g, y, n, **_: (None,),
            lambda _, n, **__: n,
            category="shape", traits=Trait.SIZE, lowering=Lowering.VIEW,
            known=lambda _, n, **__: n, span=lambda _, n, **__: n,
            doc="n itself. After this node the symbol `size` has its value, which is at most "
                "`most`. A `checked` node stays even if nothing uses the symbol"))

# ---- assume ------------------------------------------------------------------------------------


def _assume_infer(x: TensorType, *, shape: tuple[Dim, ...]) -> TensorType:
    need(x.rank == len(shape) and all(known(a, "==", b) is not False
                                      for a, b in zip(x.shape, shape, strict=True)),
         f"{x} cannot have the shape {[*shape]}")
    return TensorType(x.dtype, shape)


def _assume_eval(x: Array, *, shape: tuple[int, ...]) -> Array:
    if x.shape != shape:
        raise InputError("GT0516", f"the shape is {list(x.shape)}, {list(shape)} expected",
                         hint="the model adds or joins tensors whose sizes must be equal")
    return x


register(Op("assume", _assume_infer, _assume_eval,
            lambda g, y, x, *, shape: (o.assume(g, shape=x.shape),),
            lambda _, x, *, shape: Pull(x.dtype, shape, x.at),
            category="shape", lowering=Lowering.VIEW, movement=Movement.KEEPS,
            precision=Precision.FOLLOW, traffic=nothing, axes=Axes(sizes=("shape",)),
            doc="x itself. Its sizes are those of `shape` when the model runs, because the module "
                "requires it, though they are written otherwise"))

# ---- nonzero -----------------------------------------------------------------------------------


def _nonzero_infer(x: TensorType, *, size: Dim) -> TensorType:
    _check_size(size)
    count = product(x.shape)
    need(known(size, "<=", count) is not False,
         f"x has {text(count)} elements, of which {text(size)} cannot be nonzero")
    return TensorType(dtypes.int64, (size, x.rank))


def _nonzero_eval(x: Array, *, size: int | None = None) -> Array:
    if x.ndim == 0:
        return np.zeros((int(bool(x)), 0), np.int64)
    return np.argwhere(x)


def _nonzero_decompose(x: Any, *, size: Dim) -> Any:
    """Write the index of each nonzero element to the row given by its rank among them.

    The indices of zero elements all go to one extra row behind the last, which is then cut off.
    """
    count = product(x.shape)
    flat = o.reshape(x, shape=(count,))
    hit = flat if x.dtype is dtypes.bool_ else o.ne(flat, 0.0 if x.dtype.is_float else 0)
    one = o.cast(hit, dtype=dtypes.int64)
    rank = o.cumulative(one, kind="sum", axis=0, exclusive=True)
    total = o.reshape(o.reduce_sum(one, axes=(0,)), shape=())
    o.size(total, size=size, most=count)
    row = o.select(hit, rank, _number(x, count))
    places = like(x, o.iota, shape=(count,), axis=0, dtype=dtypes.int64)
    hole = filled(x, 0, (count + 1,), dtypes.int64)
    indices = o.scatter(hole, o.reshape(row, shape=(count, 1)), places, axes=(0,))
    flat = o.slice(indices, start=(0,), limit=(size,), strides=(1,))
    if x.ndim == 1:
        return o.reshape(flat, shape=(size, 1))
    if x.ndim == 0:
        row = o.reshape(flat, shape=(size, 1))
        return o.slice(row, start=(0, 0), limit=(size, 0), strides=(1, 1))
    columns: list[Any] = []
    step: Dim = 1
    for d in reversed(x.shape):
        at = o.div(flat, _number(x, step)) if step != 1 else flat
        columns.append(o.mod(at, _number(x, d)) if len(columns) < x.ndim - 1 else at)
        step = step * d
    return o.concat(*(o.reshape(c, shape=(size, 1)) for c in reversed(columns)), axis=1)


def _number(x: Any, d: Dim) -> Any:
    """A dimension as an int64 operand."""
    return d if isinstance(d, int) else like(x, o.dim, of=d, dtype=dtypes.int64)


register(Op("nonzero", _nonzero_infer, _nonzero_eval, lambda g, y, x, **_: (None,),
            decompose=_nonzero_decompose, category="data",
            traits=Trait.COMPOSITE | Trait.SIZE,
            doc="the coordinates of the elements that are not zero, i64[size, rank], row-major"))

# ---- spread ------------------------------------------------------------------------------------

def _spread_types(x: TensorType, *, shape: tuple[Dim, ...]) -> TensorType:
    need(len(shape) == x.rank, f"the shape {shape} needs {x.rank} entries")
    need(all(d == 1 or known(d, "==", n) is not False or known(d, "==", 1) is not False
             for d, n in zip(x.shape, shape, strict=True)), f"{x} does not spread to {shape}")
    return TensorType(x.dtype, shape)


def _spread_lower(_: Names, x: Pull, *, shape: tuple[Dim, ...]) -> Pull:
    def at(i: Dim, have: Dim, n: Dim) -> Dim:
        return i if have == n else 0 if have == 1 else minimum(i, have - 1)
    return Pull(x.dtype, shape, lambda idx: x.at(tuple(map(at, idx, x.shape, shape))))


def _spread_apart(x: Any, *, shape: tuple[Dim, ...]) -> Any:
    for axis, (have, n) in enumerate(zip(x.shape, shape, strict=True)):
        if have not in (1, n):
            line = like(x, o.iota, shape=(n, 1), axis=0, dtype=dtypes.int64)
            count = like(x, o.dim, of=have, dtype=dtypes.int64)
            rows = o.gather(x, o.min(line, count - 1), axes=(axis,))
            x = o.transpose(rows, perm=(*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))
    return o.broadcast(x, shape=shape)


def _spread_vjp(g: Any, _y: Any, x: Any, *, shape: tuple[Dim, ...]) -> tuple[Any, ...]:
    """The gradients of equal elements are added, on each axis where the run repeats them."""
    for axis, (have, n) in enumerate(zip(x.shape, shape, strict=True)):
        if have == n:
            continue
        total = o.reduce_sum(g, axes=(axis,))
        if have != 1:
            sizes = [like(x, o.dim, of=d, dtype=dtypes.int64) for d in (have, n)]
            limit = (*g.shape[:axis], have, *g.shape[axis + 1:])
            part = o.slice(g, start=(0,) * g.ndim, limit=limit, strides=(1,) * g.ndim)
            same = o.reshape(o.eq(*sizes), shape=(1,) * g.ndim)
            total = o.select(same, part, o.broadcast(total, shape=limit))
        g = total
    return (g,)


register(Op("spread", _spread_types, lambda x, *, shape: np.broadcast_to(x, shape), _spread_vjp,
            _spread_lower, _spread_apart, category="shape",
            movement=Movement.REPEATS, traits=Trait.NEST, precision=Precision.FOLLOW,
            axes=Axes(sizes=("shape",)),
            doc="x with these sizes: each is that of x, or x has 1 element there, which is "
                "repeated. A run decides which of the two: element i is that at min(i, size − 1)"))
