"""One `func.func` of the text: names of values, arguments with what is said of their sizes,
constants at its start, and its lines.

While it is written, a value's name is a number between two marks; the names are chosen at the end,
because a value may get a better name after its line is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from graphtool import transforms
from graphtool.escaping import mlir_string
from graphtool.exporters.forms import Ref
from graphtool.exporters.stablehlo.text import attribute, identifier, tensor
from graphtool.io.weights import Weight
from graphtool.ir.graph import Module, TensorType, is_parameter
from graphtool.ir.text import value_names
from graphtool.symbolic import Dim, Symbol, symbols, text
from graphtool.transforms.training.state import opened, renamed

_MARK = re.compile("\x01(\\d+)\x01")
INDENT = "  "


@dataclass(frozen=True)
class WrittenFunction:
    """A function that has been written: its name, the types of its results, and the open sizes that
    it takes as its last arguments."""

    name: str
    results: tuple[TensorType, ...]
    sizes: tuple[Symbol, ...] = ()


def number_of(x: Ref) -> int:
    """The number of a value in its function: the order in which values are made."""
    return int(x.name.split("\x01")[1])


@dataclass
class FunctionState:
    """The state of one function: `wishes` has the wished name of each value, by number."""

    name: str
    public: bool = False
    wishes: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    head: list[str] = field(default_factory=list)  # constants, and sizes of arguments
    constants: dict[object, Ref] = field(default_factory=dict)
    sources: list[Ref] = field(default_factory=list)  # arguments with open sizes
    sizes: dict[Dim, Ref] = field(default_factory=dict)  # computed in the head

    def value(self, wish: str) -> str:
        """The name of a new value; `wish` is a text that need be neither unique nor allowed."""
        self.wishes.append(wish)
        return f"%\x01{len(self.wishes) - 1}\x01"

    def rename(self, x: Ref, wish: str) -> None:
        """Wish another name for a value."""
        self.wishes[number_of(x)] = wish

    def argument(self, x: Ref, attributes: str = "", origin: str = "") -> None:
        """Add an argument, with the text of its attributes and the name in its location."""
        if not all(isinstance(d, int) for d in x.shape):
            self.sources.append(x)
        place = f" loc({mlir_string(origin)})" if origin else ""
        self.arguments.append(f"{x.name}: {tensor(x.type)}{attributes}{place}")

    def text(self, lines: list[str], outputs: list[Ref], attributes: list[str]) -> str:
        """The whole function that returns the outputs; each has the text of its attributes."""
        types = [tensor(x.type) for x in outputs]
        results = ", ".join(f"{t}{a}" for t, a in zip(types, attributes, strict=True))
        whole = any(attributes) or len(types) != 1
        out = [f"func.func {'public' if self.public else 'private'} @{self.name}("
               f"{', '.join(self.arguments)}) -> {f'({results})' if whole else results} {{",
               *(INDENT + s for s in (*self.head, *lines)),
               f"{INDENT}return {', '.join(x.name for x in outputs)}{' : ' * bool(types)}"
               f"{', '.join(types)}", "}"]
        return self._named("\n".join(out))

    def _named(self, text: str) -> str:
        names: dict[str, str] = {}
        taken: set[str] = set()
        counters: dict[str, int] = {}

        def name(match: re.Match[str]) -> str:
            if match[1] not in names:
                wish = identifier(self.wishes[int(match[1])])
                unique = wish
                while unique in taken:
                    counters[wish] = counters.get(wish, 1) + 1
                    unique = f"{wish}_{counters[wish]}"
                taken.add(unique)
                names[match[1]] = unique
            return names[match[1]]
        return _MARK.sub(name, text)


# ---- arguments ----------------------------------------------------------------------------------

SIZES, BOUNDS, STEPS = "graphtool.sizes", "graphtool.bounds", "graphtool.steps"
OWN_SIZE = "graphtool.size"  # the name of the size that is an argument


def with_arguments(module: Module) -> tuple[Module, Mapping[str, Weight]]:
    """The module with its parameters as inputs after its own, and the parameters by these names.

    Parameters inside regions are included. One of a type that safetensors lacks (int4, float8)
    stays a constant.
    """
    graph, count = transforms.lifted(module.graph), len(module.graph.inputs)
    held = {n.outputs[0]: n.attrs["data"] for n in graph.nodes
            if is_parameter(n) and n.attrs["data"].dtype.safetensors}
    graph = renamed(opened(graph, tuple(held)), {v: v.hint.removeprefix("@") for v in held})
    names = value_names(graph)
    return replace(module, graph=graph), {
        names[v]: w for v, w in zip(graph.inputs[count:], held.values(), strict=True)}


def sizes_of(type: TensorType) -> dict[str, str]:
    """The attribute of an argument that has open sizes: their names, as `"batch, 3"`."""
    free = any(symbols(d) for d in type.shape)
    return {SIZES: mlir_string(", ".join(map(text, type.shape)))} if free else {}


def told_of(type: TensorType) -> dict[str, str]:
    """The attributes of an argument that has open sizes: their names, bounds and steps."""
    free = {s.name: s for d in type.shape for s in symbols(d)}
    bounds = {n: [s.lo] if s.hi is None else [s.lo, s.hi] for n, s in free.items()
              if (s.lo, s.hi) != (1, None) and s.lo is not None}
    steps = {n: [s.step, s.offset] for n, s in free.items() if s.step > 1}
    return {**sizes_of(type), **({BOUNDS: attribute(bounds)} if bounds else {}),
            **({STEPS: attribute(steps)} if steps else {})}


def braced(attributes: Mapping[str, str]) -> str:
    """Attributes behind the type of an argument; "" for none."""
    return f" {{{', '.join(f'{k} = {x}' for k, x in attributes.items())}}}" if attributes else ""
