"""What a handler can query beyond its operands and attributes."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import Undecided
from graphtool.importers.assumptions import Assuming
from graphtool.importers.stablehlo.driver.parts import flat, joined
from graphtool.importers.stablehlo.driver.promises import Promises
from graphtool.importers.stablehlo.driver.regions import Closed
from graphtool.importers.stablehlo.driver.registry import Refused
from graphtool.importers.stablehlo.driver.values import (
    FOLD_LIMIT,
    Asked,
    Sizes,
    Spread,
    compact,
    dtype_of,
    element_type,
    literal,
    operand,
    shape_of,
    spread,
    tensor,
)
from graphtool.importers.stablehlo.text.tree import Function, Operation, Region
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.trace import Builder, Tracer
from graphtool.ops.common import broadcast_shapes
from graphtool.symbolic import Dim

Env = MutableMapping[str, Any]


class Driver(Protocol):
    """What the importer offers to handlers; `convert.py` implements it."""

    builder: Builder
    promises: Promises
    wanted: set[Value]  # what stays in the graph although nothing reads it
    sizes: dict[str, Dim]  # the open sizes of inputs and of our own nodes by name

    def inline(self, region: Region, xs: Sequence[Any], env: Env, vector: bool) -> list[Any]:
        """Run a region here on these values; returns what it returns."""

    def closed(self, region: Region, types: Sequence[TensorType], env: Env,
               vector: bool = False) -> Closed:
        """A region as a graph of its own: its inputs, results, and what it reads from outside. A
        `vector` one runs on whole tensors, so the types in the text do not apply."""

    def apply(self, op: Operation, xs: Sequence[Any], env: Env, vector: bool) -> list[Any]:
        """The results of one operation on these values."""

    def expect(self, op: Operation, holds: Any) -> None:
        """Add a truth value to the outputs: what the program says must be true."""

    def function(self, name: str) -> Function:
        """The function called `name`."""

    def graph(self, function: Function) -> Graph:
        """A function as a closed graph."""

    def call(self, function: Function, xs: Sequence[Any], vector: bool = False) -> list[Any]:
        """Run a function's body here on these values; returns what it returns."""


@dataclass(frozen=True)
class Context:
    """The operation, and the ways to make values. In a `vector` context the body of a reduction
    runs on whole tensors, so the types in the text do not apply."""

    driver: Driver
    op: Operation
    env: Env
    vector: bool = False

    @property
    def builder(self) -> Builder:
        """The builder that the operation's nodes are added to."""
        return self.driver.builder

    def result(self, i: int = 0) -> TensorType:
        """The type that the text gives to result i. Raises Refused if a size of it is open."""
        kind = self.op.signature.results[i]
        dtype = element_type(kind)
        shape = [d for d in kind.shape or () if d is not None]
        if len(shape) != len(kind.shape or ()):
            raise Refused("the shape of the result is not known")
        return TensorType(dtype, tuple(shape))

    @property
    def dtype(self) -> DType:
        """The element type that the text gives to result 0."""
        return self.element(0)

    def element(self, i: int) -> DType:
        """The element type that the text gives to result i."""
        return element_type(self.op.signature.results[i])

    def tensor(self, x: Any) -> Any:
        """A value as a tracer of its full shape."""
        return tensor(x, self.builder)

    def region(self, i: int, xs: Sequence[Any], vector: bool = False) -> list[Any]:
        """The results of region i on these values, computed in the current graph. Complex ones
        are given and returned as two values."""
        body = self.op.regions[i]
        given = joined([a.kind for a in body.arguments], xs)
        return flat(self.driver.inline(body, given, self.env, vector))

    def apply(self, op: Callable[..., Any], *xs: Any, kept: Sequence[int] = (),
              **attrs: Any) -> Any:
        """An elementwise op on values of one shape, or of scalars beside them.

        Constants are computed at import; a constant of one value becomes a literal, unless its
        operand is among the `kept`, and what is only repeated is repeated by the op.
        """
        shape = self._joined(xs)
        if all(isinstance(x, np.ndarray) for x in xs):
            parts = [compact(x) for x in xs]
            if np.broadcast(*parts).size <= FOLD_LIMIT:
                return spread(np.asarray(op(*parts, **attrs)), shape)
        if any(isinstance(x, (Sizes, Asked)) for x in xs):
            xs = tuple(self.tensor(x) if isinstance(x, (Sizes, Asked)) else x for x in xs)
        given = [None if i in kept else literal(x) for i, x in enumerate(xs)]
        if not any(v is None for v in given):
            given[0] = None
        full = [operand(x, self.builder) if v is None else v
                for x, v in zip(xs, given, strict=True)]
        return self.settled(op(*full, **attrs), shape)

    def _joined(self, xs: Sequence[Any]) -> tuple[Dim, ...]:
        """The common shape; sizes that have to be equal for it are noted for the next round."""
        try:
            return broadcast_shapes(*(shape_of(x) for x in xs))
        except Undecided as error:
            if isinstance(self.builder, Assuming):
                self.builder.found.pairs += error.pairs
            raise

    def settled(self, x: Any, shape: tuple[Dim, ...]) -> Any:
        """A computed value as one of this shape."""
        if isinstance(x, Tracer) and x.shape != shape:
            try:
                same = broadcast_shapes(x.shape, shape) == shape
            except Undecided:
                same = False
            if same:
                return Spread(x, shape)
        return x

    def known(self, *xs: Any, limit: int = FOLD_LIMIT) -> bool:
        """Whether all values are constants, small enough to compute with at import."""
        return all(isinstance(x, np.ndarray) for x in xs) and sum(x.size for x in xs) <= limit

    def ready(self, *xs: Any) -> list[Any]:
        """The values as arrays if all are small constants, else as tracers: ops take both."""
        if self.known(*xs):
            return list(xs)
        return [self.tensor(x) for x in xs]

    def kept(self, found: Any) -> Any:
        """The results of a node of ours, which stays in the graph although nothing may read it."""
        for x in found if isinstance(found, tuple) else (found,):
            if isinstance(x, Tracer):
                self.driver.wanted.add(x.value)
        return found

    def typed(self, x: Any) -> TensorType:
        """The tensor type of a value."""
        return TensorType(dtype_of(x), shape_of(x))
