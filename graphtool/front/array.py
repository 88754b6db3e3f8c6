"""`Array`, the value that handlers compute with: a traced tensor; import may know more about it,
such as its values.

An op that is called on Arrays goes to their builder (see builder.py). It computes at import what
is known there, and records a node for the rest, so a handler states mathematics once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import Signal
from graphtool.ir.graph import Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, Poly, product

Numbers = np.ndarray[Any, Any]
REFUSED = object()
"""The value of a result whose operation was refused."""


class Refused(Signal):
    """Raised by a handler for what it cannot express; the driver collects all of them, each with
    its reason, under `name` or the name of the operator. Without a reason, the cause has been
    recorded already."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


class Array(Tracer):
    """A tensor of an import.

    `known` has its elements if import knows them: numbers, or objects, which are sizes and
    conditions on sizes. Axes along which it repeats one element may have the stride 0. `base` is
    a smaller tensor that is repeated to the shape of this one by NumPy's rule; elementwise ops
    repeat operands themselves. What is known or repeated becomes a node when something reads its
    `value`. A `param` is a constant that training may change; `hint` is its name.
    """

    __slots__ = ("base", "emitted", "hint", "kind", "known", "param")
    builder: Any  # a Front

    def __init__(self, builder: Any, kind: TensorType, *, value: Value | None = None,
                 known: Numbers | None = None, base: Array | None = None, hint: str = "",
                 param: bool = False) -> None:
        self.builder, self.kind, self.emitted = builder, kind, value
        self.known, self.base, self.hint, self.param = known, base, hint, param

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return self.kind

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes, one for each axis."""
        return self.kind.shape

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.kind.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.kind.shape)

    @property
    def value(self) -> Value:  # type: ignore[override]
        """The value in the graph; the first call may add nodes that make it."""
        if self.emitted is None:
            self.emitted = self.builder.realised(self)
        return self.emitted

    @property
    def maker(self) -> Node | None:
        """The node that makes the value; None for an input, and for a value without a node yet."""
        return None if self.emitted is None else self.builder.made_by.get(self.emitted)

    def sibling(self, value: Value) -> Self:
        """Another value of the same builder."""
        return self.builder.traced(value)  # type: ignore[no-any-return]

    def nullary(self, op: Op, attrs: dict[str, Any]) -> Any:
        """The result of an op without operands; beside known numbers it is known too."""
        known = self.fixed and not self.symbolic
        return self.builder.filled(op, attrs) if known else super().nullary(op, attrs)

    def __repr__(self) -> str:
        return f"{self.hint or (self.emitted.hint if self.emitted else 'constant')}: {self.kind}"

    # ---- what is known -------------------------------------------------------------------------

    @property
    def symbolic(self) -> bool:
        """Whether the elements are known as sizes or conditions, not all as numbers."""
        return self.known is not None and self.known.dtype == object

    @property
    def numbers(self) -> Numbers | None:
        """The elements, if all of them are known numbers."""
        return None if self.symbolic else self.known

    @property
    def fixed(self) -> bool:
        """Whether ops on it are computed at import: not on parameters of several elements."""
        return self.known is not None and not (self.param and self.known.size > 1)

    @property
    def literal(self) -> int | float | bool | None:
        """The one number that all elements are, else None. A narrow float is the shortest decimal
        that rounds to it."""
        if self.base is not None:
            return self.base.literal
        x = self.numbers
        one = None if x is None or not x.size else compact(x)
        if one is None or one.size != 1 or self.dtype is dtypes.string:
            return None
        v = one.reshape(())[()]
        if self.dtype.is_float:
            short = float(str(v))
            return short if one.dtype.type(short) == v else float(v)
        return v.item()  # type: ignore[no-any-return]

    def sizes(self, what: str) -> tuple[Dim, ...]:
        """The elements as sizes. Raises Refused, with the name `what`, for what the run
        computes."""
        if self.known is None or (self.symbolic and not all(
                isinstance(d, (int, Poly)) for d in self.known.reshape(-1))):
            raise Refused(f"{what} must be known at import, but is computed from data")
        return tuple(d if isinstance(d, Poly) else int(d) for d in self.known.reshape(-1))

    # ---- other tensors of the same builder -----------------------------------------------------

    def number(self, value: Any) -> Array:
        """A number, of the element type of this tensor."""
        return self.builder.number(value, self.dtype)  # type: ignore[no-any-return]

    def reshape(self, shape: Sequence[Dim]) -> Self:
        """As for a Tracer; one repeated element is repeated to the other shape."""
        shape = tuple(shape)
        if self.base is not None and self.shape != shape and all(
                d == 1 for d in self.base.shape) and product(self.shape) == product(shape):
            return self.builder.repeated(self.base.reshape(()), shape)  # type: ignore[no-any-return]
        return super().reshape(shape)

    def flat(self) -> Self:
        """All elements along one axis, the last axis of this tensor fastest."""
        return self.reshape((product(self.shape),))

    def moveaxis(self, axis: int, to: int) -> Self:
        """The tensor with one axis at another place; the others keep their order."""
        axes = [i for i in range(self.ndim) if i != axis % self.ndim]
        axes.insert(to % self.ndim, axis % self.ndim)
        return self.transpose(axes)

    def entry(self, axis: int, at: Dim) -> Self:
        """The elements with this index along one axis, which the result does not have."""
        shape = (*self.shape[:axis], *self.shape[axis + 1:])
        return self.take(axis, at, at + 1).reshape(shape)

    def at(self, index: Any, axis: int) -> Self:
        """The slices along one axis that an array of indices names, as NumPy's `take`: the axes of
        the index stand where this axis was. An index is 0 or more."""
        i = index.ndim
        y: Self = o.gather(self, index.reshape((*index.shape, 1)), axes=(axis,))
        return y.transpose((*range(i, i + axis), *range(i), *range(i + axis, y.ndim)))


def compact(x: Numbers) -> Numbers:
    """The array with size 1 on each axis along which it repeats one element."""
    return x[(..., *(slice(0, 1) if step == 0 and n > 1 else slice(None)
                     for step, n in zip(x.strides, x.shape, strict=True)))]


def stripped(x: Numbers) -> Numbers:
    """The array without the axes of size 1 at its front."""
    first = next((i for i, n in enumerate(x.shape) if n != 1), x.ndim)
    return x.reshape(x.shape[first:])


def concat(xs: Sequence[Array], axis: int) -> Array:
    """The tensors one behind the other along an axis; those without elements are left out."""
    parts = [x for x in xs if 0 not in x.shape] or list(xs[:1])
    return o.concat(*parts, axis=axis)  # type: ignore[no-any-return]


def pick(cond: Array, a: Any, b: Any, like: Array | None = None) -> Array:
    """a where the condition is true, else b. If both are Python numbers, they have the element
    type of `like`."""
    if like is not None and not isinstance(a, Tracer) and not isinstance(b, Tracer):
        a = like.number(a)
    return o.select(cond, a, b)  # type: ignore[no-any-return]
