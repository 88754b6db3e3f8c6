"""Writes the operations of one block: of a function, or of a region in it. Has no knowledge of
single ops; those are in the tables of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.errors import Unsupported
from graphtool.escaping import mlir_string
from graphtool.exporters.forms import Ref
from graphtool.exporters.stablehlo.function import INDENT, FunctionState, WrittenFunction
from graphtool.exporters.stablehlo.text import LocationAliases, dense, number, signature, tensor
from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, TensorType
from graphtool.symbolic import Dim, symbols, text

PARAMETER = "graphtool.parameter"  # the name of a constant or argument that training may change
NODE = "graphtool.node"  # marks what is read back as a node, and is not simplified
_LONG = ("select", "dynamic_update_slice")  # their types are written in full, equal or not


@dataclass
class Shared:
    """What all writers of one module share: options, places, functions, what is refused."""

    places: LocationAliases
    elide: bool = False
    composites: bool = True
    functions: list[str] = field(default_factory=list)
    by_call: dict[object, WrittenFunction] = field(default_factory=dict)
    parts: dict[Graph, WrittenFunction] = field(default_factory=dict)  # regions that are functions
    names: dict[str, None] = field(default_factory=lambda: {"main": None})
    refused: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def unsupported(self) -> tuple[Unsupported, ...]:
        """What could not be written, with its reason and places, for one error."""
        return tuple(Unsupported(name, reason, tuple(dict.fromkeys(places)))
                     for (name, reason), places in self.refused.items())


class Writer:
    """Collects the lines of one block; called with an operation's name it writes one."""

    def __init__(self, shared: Shared, function: FunctionState,
                 outer: Writer | None = None) -> None:
        self.shared, self.function, self.outer = shared, function, outer
        self.lines: list[str] = []
        self.sizes: dict[Dim, Ref] = {}  # that were computed in this block
        self.marks: bool = outer.marks if outer else True  # whether nodes are marked as such
        self.hint: str = outer.hint if outer else ""
        self.where: str = outer.where if outer else ""

    # ---- operations ----------------------------------------------------------------------------

    def __call__(self, op: str, *operands: Ref, to: TensorType, attrs: str = "",
                 node: Sequence[Dim] | None = None) -> Ref:
        """Write `stablehlo.OP operands attrs`, which has one result of the type `to`; `node` says
        that it is one of our nodes even where it has no effect, and has the sizes that it makes."""
        plain = not operands or (not attrs and op not in _LONG and all(
            x.type == to for x in operands))
        types = tensor(to) if plain else signature([x.type for x in operands], [to])
        names = ", ".join(x.name for x in operands)
        if node is not None and self.marks:
            free = any(map(symbols, node))
            attribute = f"{NODE} = {mlir_string(', '.join(map(text, node))) if free else 'true'}"
            attrs = (f"{attrs[:-1]}, {attribute}}}" if attrs[-1:] == "}"
                     else f"{attrs} {{{attribute}}}")
        return self.put(f"stablehlo.{op} {names}{attrs} : {types}", to, op)

    def generic(self, op: str, operands: Sequence[Ref], results: Sequence[TensorType],
                attrs: str = "", regions: Sequence[Sequence[str]] = ()) -> tuple[Ref, ...]:
        """Write an operation in the generic form, with the lines of its regions."""
        names = ", ".join(x.name for x in operands)
        text = f'"stablehlo.{op}"({names})' + (f" <{{{attrs}}}>" if attrs else "")
        if regions:
            text += f" ({', '.join(chr(10).join(['{', *r, '}']) for r in regions)})"
        text += f" : {signature([x.type for x in operands], results)}"
        return self.several(text, results, op)

    def put(self, text: str, type: TensorType, wish: str) -> Ref:
        """Write an operation that has one result of this type."""
        return self.several(text, [type], wish)[0]

    def several(self, text: str, types: Sequence[TensorType], wish: str) -> tuple[Ref, ...]:
        """Write an operation whose results have these types."""
        name = self.function.value(f"{self.hint}.{wish}" if self.hint else wish)
        count = "" if len(types) == 1 else f":{len(types)}"
        self.line(f"{name}{count} = {text}{self.shared.places.suffix(self.where)}")
        if not count:
            return (Ref(name, types[0]),)
        return tuple(Ref(f"{name}#{i}", t) for i, t in enumerate(types))

    def line(self, text: str) -> None:
        """Add a text of one or more lines to the block."""
        self.lines += text.split("\n")

    def inside(self, function: FunctionState) -> Writer:
        """A writer for a function of its own."""
        inner = Writer(self.shared, function)
        inner.marks = self.marks
        return inner

    def region(self) -> Writer:
        """A writer for a block inside this one; its lines are for `block`."""
        return Writer(self.shared, self.function, self)

    def argument(self, type: TensorType, wish: str) -> Ref:
        """A value that a block has as its argument."""
        return Ref(self.function.value(wish), type)

    def block(self, arguments: Sequence[Ref], results: Sequence[Ref]) -> list[str]:
        """The lines of a region: `^bb0` with the arguments, and `stablehlo.return`."""
        given = ", ".join(f"{a.name}: {tensor(a.type)}" for a in arguments)
        names = ", ".join(x.name for x in results)
        types = ", ".join(tensor(x.type) for x in results)
        return [*([f"^bb0({given}):"] if given else []), *(INDENT + s for s in self.lines),
                f"{INDENT}stablehlo.return {names} : {types}"]

    # ---- constants -----------------------------------------------------------------------------

    def number(self, x: float, dtype: DType, shape: Sequence[int] = ()) -> Ref:
        """A constant of one number, at the start of the function."""
        value = np.asarray(x).astype(dtype.numpy)
        text = number(value, dtype)
        return self._constant(text, TensorType(dtype, tuple(shape)), f"dense<{text}>",
                              f"c{text.removesuffix('.0')}")

    def array(self, x: Any) -> Ref:
        """A constant array, at the start of the function."""
        w = weight(np.asarray(x))
        return self._constant(w.digest, TensorType(w.dtype, w.shape), dense(w), "table")

    def weight(self, w: Weight, wish: str, parameter: bool = False) -> Ref:
        """A constant node of the model, at the start of the function or region; a parameter keeps
        its name."""
        if not self.marks:
            return self.array(w.source)
        attribute = f"{PARAMETER} = {mlir_string(wish)}" if parameter else f"{NODE} = true"
        x = Ref(self.function.value(wish), TensorType(w.dtype, w.shape))
        head = self.lines if self.outer else self.function.head
        head.append(f"{x.name} = stablehlo.constant {{{attribute}}} "
                    f"{dense(w, self.shared.elide)} : {tensor(x.type)}")
        return x

    def _constant(self, content: str, type: TensorType, text: str, wish: str) -> Ref:
        key = content, type
        if key not in self.function.constants:
            x = Ref(self.function.value(wish), type)
            self.function.head.append(f"{x.name} = stablehlo.constant {text} : {tensor(type)}")
            self.function.constants[key] = x
        return self.function.constants[key]
