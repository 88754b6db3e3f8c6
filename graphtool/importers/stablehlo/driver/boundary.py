"""Inputs and outputs of the module: names from JAX's paths, open sizes, arguments not used."""

from __future__ import annotations

from typing import Any

from graphtool.errors import UsageError, near
from graphtool.importers.stablehlo.driver.places import argument_name, path_name
from graphtool.importers.stablehlo.driver.registry import REFUSED, Refused
from graphtool.importers.stablehlo.driver.session import Names, Session
from graphtool.importers.stablehlo.driver.values import element_type
from graphtool.importers.stablehlo.text.tree import Argument, Function
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.symbolic import Dim, Symbol, symbols


class Entry:
    """The inputs of a module: `inputs` in the graph, and `values` of the function's arguments."""

    def __init__(self, importer: Session, main: Function) -> None:
        self.importer = importer
        self.free: dict[str, Symbol] = {}
        names = distinct([self._name(i, a) for i, a in enumerate(main.arguments)])
        tracers = [self._input(i, a, n) for i, (a, n) in enumerate(
            zip(main.arguments, names, strict=True))]
        for key in importer.dynamic:
            if key not in self.free:
                raise UsageError("GT1104", f"there is no open size {key!r}", hint=near(
                    key, self.free, f"they are {', '.join(self.free)}") if self.free else
                    "all sizes of the program are fixed; jax.export.symbolic_shape makes open ones")
        importer.found.settle(self.free)
        self.inputs: tuple[Value, ...] = tuple(t.value for t in tracers if t is not REFUSED)
        self.values = [importer.found.entered(t) for t in tracers]

    def _name(self, i: int, a: Argument) -> str:
        given = self.importer.names.inputs
        return given[i] if i < len(given) else argument_name(a.origin) or a.name.removeprefix("%")

    def _input(self, i: int, a: Argument, name: str) -> Any:
        try:
            dtype = element_type(a.kind)
        except Refused as refused:
            self.importer.refuse(f"the input {name}", str(refused), "")
            return REFUSED
        shape = tuple(self._size(i, k, name) if d is None else d
                      for k, d in enumerate(a.kind.shape or ()))
        return self.importer.builder.input(TensorType(dtype, shape), name)

    def _size(self, i: int, axis: int, name: str) -> Dim:
        """An open size of an input: the caller's name for it, else `x_0` for axis 0 of x."""
        given = self.importer.names.sizes
        key = str(given[i][axis]) if i < len(given) else f"{name}_{axis}"
        bounds = self.importer.dynamic.get(key)
        lo, hi = (bounds[0], bounds[1]) if isinstance(bounds, tuple) else (1, None)
        made = self.importer.found.facts.size(key, lo, hi)
        for s in symbols(made):
            self.free[s.name] = s
        return made

    def symbols(self, graph: Graph) -> dict[str, Symbol]:
        """The module's open sizes by name."""
        return {s.name: s for v in graph.inputs for d in v.type.shape for s in symbols(d)}


def output_names(main: Function, count: int, names: Names) -> tuple[str, ...]:
    """The outputs' names: the caller's, else those that JAX wrote, else `result.0`."""
    if names.outputs:
        return tuple(distinct(list(names.outputs)))
    told = [path_name(str(a.attrs.get("jax.result_info") or "")) for a in main.results]
    made = [told[i] if i < len(told) and told[i] else f"result.{i}" if count > 1 else "result"
            for i in range(count)]
    return tuple(distinct(made))


def distinct(names: list[str]) -> list[str]:
    """The names, of which a repeated one gets a number behind it."""
    out: list[str] = []
    for name in names:
        n, own = 2, name
        while own in out:
            n, own = n + 1, f"{name}_{n}"
        out.append(own)
    return out
