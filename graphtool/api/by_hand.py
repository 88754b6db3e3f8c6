"""A graph that a program builds value by value, without a model to import."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any, overload

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.dtypes import DType
from graphtool.errors import InputError, near
from graphtool.io.versions import GRAPH
from graphtool.io.weights import Weight, weight
from graphtool.ir.decode import module_of
from graphtool.ir.graph import Module
from graphtool.ir.op import Op
from graphtool.ir.records import (
    GraphFile,
    InputRow,
    NodeRow,
    OutputRow,
    ParamRow,
    RegionRow,
    SymbolRow,
)
from graphtool.ir.types import TensorType

HERE = "Graph"
_NUMBERS = count(1)
_DIM = re.compile(r"[A-Za-z_]\w*")


class Graph:
    """Values with names, and ops that read them by their names: in any order, since `module` sorts
    them.

    `dims` are the bounds of open sizes, `Graph(batch=(1, 64))`; a size without bounds is 1 or more.
    A graph that an attribute takes (a loop's `body`) is another `Graph`, which reads nothing but
    its own inputs.
    """

    def __init__(self, **dims: tuple[int, int | None]) -> None:
        for name, bounds in dims.items():
            match bounds:
                case (int(), int() | None):
                    continue
            raise InputError("GT0356", f"the bounds of {name} are {bounds!r}",
                             hint=f"{name}=(1, 64), or {name}=(1, None) without an upper one")
        self._dims, self._number = dims, next(_NUMBERS)
        self._inputs: list[InputRow] = []
        self._params: list[ParamRow] = []
        self._nodes: list[NodeRow] = []
        self._outputs: list[OutputRow] = []
        self._weights: dict[str, Weight] = {}
        self._regions: dict[str, Graph] = {}

    def __repr__(self) -> str:
        return (f"<Graph of {len(self._inputs)} inputs, {len(self._params)} constants, "
                f"{len(self._nodes)} ops, {len(self._outputs)} outputs>")

    def add_input(self, name: str, type: str | TensorType) -> str:
        """Add an input of a type such as `f32[batch,3]`; a scalar is `f32[]`. Returns its name."""
        self._inputs.append(InputRow(_text(name, "a name"), str(type)))
        return name

    def add_const(self, value: Any, name: str = "", *, trainable: bool = False) -> str:
        """Add an array, of its own element type, as a constant or a trainable parameter. Returns
        its name: `constant`, `constant#2` and so on unless one is given."""
        name = _text(name, "a name", empty=True) or self._free("constant")
        try:
            held = weight(np.asarray(value, order="C"))
        except ValueError as error:
            raise InputError("GT0302", f"the value of {name} is no array: {error}") from error
        self._weights[held.digest] = held
        self._params.append(ParamRow(name, str(TensorType(held.dtype, held.shape)), held.digest,
                                     trainable=trainable))
        return name

    @overload
    def add_op(self, op: str | Op, *operands: Any, name: str = "", **attrs: Any) -> str: ...

    @overload
    def add_op(self, op: str | Op, *operands: Any, name: Sequence[str], **attrs: Any
               ) -> tuple[str, ...]: ...

    def add_op(self, op: str | Op, *operands: Any, name: str | Sequence[str] = "", **attrs: Any
               ) -> str | tuple[str, ...]:
        """Add an op, and return the name of its result, or the names if several are given.

        An operand is the name of a value, a number, None, or an array, which becomes a constant.
        `graphtool ops NAME` says which operands and attributes an op has.
        """
        op = op.name if isinstance(op, Op) else _text(op, "an op")
        ids = [name or self._free(op)] if isinstance(name, str) else [
            _text(n, "a name") for n in name]
        ins = [x if x is None or type(x) in (str, bool, int, float) else self.add_const(x)
               for x in operands]
        self._nodes.append(NodeRow(ids if len(ids) != 1 else ids[0], op, ins, [""] * len(ids),
                                   {k: self._attr(v) for k, v in attrs.items()}))
        return ids[0] if isinstance(name, str) else tuple(ids)

    def add_output(self, value: str, name: str = "") -> None:
        """Return the value of this name, as `name`."""
        self._outputs.append(OutputRow(_text(name, "a name", empty=True) or value,
                                       _text(value, "a name")))

    def module(self) -> Module:
        """The graph, with its ops in an order of execution and their types inferred.

        Raises InputError GT0349 for an operand that is not there or that depends on itself, GT0346
        for a name given twice, GT0347 for an output that is not there, GT0351 for a graph inside
        itself, GT040x and GT0412 for ops whose operands do not fit.
        """
        every = self._all_regions()
        names = {n for row in self._inputs for n in _DIM.findall(row.type.partition("[")[2])}
        symbols = {n: SymbolRow(*self._dims.get(n, (1, None))) for n in {**dict.fromkeys(
            sorted(names)), **self._dims}}
        regions = [RegionRow(key, g._inputs, g._params, g._sorted(), [
            o.value for o in g._outputs]) for key, g in every.items()]
        file = GraphFile("graphtool/graph", GRAPH.version, GRAPH.since, {}, "", symbols,
                         self._inputs, self._params, self._sorted(), self._outputs, regions)
        store = {k: w for g in (self, *every.values()) for k, w in g._weights.items()}
        return module_of(file, store, HERE, lambda region, label: f"{region} {label}".strip())

    def _all_regions(self) -> dict[str, Graph]:
        """The graphs in attributes, at any depth, by name."""
        regions: dict[str, Graph] = {}
        left = [self]
        while left:
            new = {k: g for k, g in left.pop()._regions.items() if k not in regions}
            regions |= new
            left += new.values()
        return regions

    def _sorted(self) -> list[NodeRow]:
        """The ops in an order in which each follows its operands; otherwise as they were added."""
        maker = {i: row for row in self._nodes for i in _ids(row)}
        there = self._given()
        out: list[NodeRow] = []
        done: set[int] = set()
        for first in self._nodes:
            way: list[tuple[NodeRow, str]] = [(first, "")]  # each with the value that asked for it
            while way:
                row = way[-1][0]
                left = [x for x in row.inputs if isinstance(x, str) and x not in there
                        and id(maker.get(x)) not in done]
                if not left or id(row) in done:
                    way.pop()
                    if id(row) not in done:
                        done.add(id(row))
                        out.append(row)
                    continue
                name = left[0]
                if name not in maker:
                    raise InputError(
                        "GT0349", f"there is no value {name!r}", where=f"node {_ids(row)[0]}",
                        hint=near(name, (*there, *maker), "values are read by their names"))
                if any(maker[name] is r for r, _ in way):
                    turn = [_ids(r)[0] for r, _ in way]
                    turn = [*turn[turn.index(_ids(maker[name])[0]):], _ids(maker[name])[0]]
                    raise InputError("GT0349", f"a cycle: {' reads '.join(turn)}",
                                     where=f"node {turn[0]}",
                                     hint="a loop is an op with a graph as its body: while, scan")
                way.append((maker[name], name))
        return out

    def _given(self) -> set[str]:
        """The names of the values that no op makes."""
        return {row.id for row in self._inputs} | {row.id for row in self._params}

    def _free(self, stem: str) -> str:
        taken = self._given() | {i for row in self._nodes for i in _ids(row)}
        name, n = stem, 1
        while name in taken:
            n += 1
            name = f"{stem}#{n}"
        return name

    def _attr(self, value: Any) -> Any:
        """An attribute as a file has it."""
        match value:
            case Graph():
                name = f"graph{value._number}"
                self._regions[name] = value
                return name
            case DType():
                return value.short
            case tuple() | list():
                return [self._attr(x) for x in value]
            case np.generic():
                return value.item()
            case _:
                return value


def _text(x: object, what: str, empty: bool = False) -> str:
    if not isinstance(x, str) or not (x or empty):
        raise InputError("GT0342", f"{what} is a text, not {x!r:.60}")
    return x


def _ids(row: NodeRow) -> list[str]:
    return [row.id] if isinstance(row.id, str) else row.id
