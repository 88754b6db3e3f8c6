"""What a handler can query beyond its operands and attributes."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphtool.dtypes import DType
from graphtool.front import Array, Front, Refused
from graphtool.front.regions import Closed
from graphtool.importers.stablehlo.driver.parts import flat, joined
from graphtool.importers.stablehlo.driver.session import Promises
from graphtool.importers.stablehlo.driver.values import element_type
from graphtool.importers.stablehlo.text.tree import Function, Operation, Region
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.symbolic import Dim

Env = MutableMapping[str, Any]


class Driver(Protocol):
    """What the importer offers to handlers; `convert.py` implements it."""

    builder: Front
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
    def builder(self) -> Front:
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

    def region(self, i: int, xs: Sequence[Any], vector: bool = False) -> list[Any]:
        """The results of region i on these values, computed in the current graph. Complex ones
        are given and returned as two values."""
        body = self.op.regions[i]
        given = joined([a.kind for a in body.arguments], xs)
        return flat(self.driver.inline(body, given, self.env, vector))

    def kept(self, results: Any) -> Any:
        """The results of a node of ours, which stays in the graph although nothing may read it."""
        for x in results if isinstance(results, tuple) else (results,):
            if isinstance(x, Array) and x.known is None:
                self.driver.wanted.add(x.value)
        return results
