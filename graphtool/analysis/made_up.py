"""Made-up inputs: the same arrays for a graph, its program and its build, under one seed.

A graph says which of its inputs are indices, and of what; programs and builds carry that along in
their ports.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from graphtool import dtypes
from graphtool.analysis import size_checks
from graphtool.dtypes import DType
from graphtool.errors import InputError, InternalError
from graphtool.io.grids import of_meta
from graphtool.ir.facets import Indexing, Trait
from graphtool.ir.graph import Graph, Module, Node, Value
from graphtool.ir.op import Op
from graphtool.ir.text import value_names
from graphtool.symbolic import (
    Dim,
    Equation,
    Symbol,
    check_bounds,
    check_required,
    dim_of,
    sample_sizes,
    substitute,
)
from graphtool.symbolic.parse import parse

Array = np.ndarray[Any, Any]
Below = tuple[Dim, ...]
_WORDS = ("", "a", "an apple", "1", "Été")


class DescribedInput(Protocol):
    """An input as a graph, a program or a build describes it; its integers are less than each of
    `below`."""

    @property
    def name(self) -> str:
        """Its name in the model."""

    @property
    def dtype(self) -> DType:
        """Its element type."""

    @property
    def shape(self) -> tuple[Dim, ...]:
        """Its sizes."""

    @property
    def below(self) -> Below:
        """What its integers are less than."""



# ---- the arrays --------------------------------------------------------------------------------

def random_inputs(module: Module, seed: int = 0, sizes: Mapping[str, int] | None = None,
                  deviation: float = 1.0) -> dict[str, Array]:
    """Random inputs on which the module can run: indices in range, masks of 0 and 1, normally
    distributed floats with this standard deviation, all bytes where they stand for real numbers.

    A symbol that is not in `sizes` becomes 3, or the nearest value that its bounds and the
    module's requirements allow. An input has the values that the module's `meta` names as examples.
    Raises InputError GT0333 if they do not fit into the memory,
    GT0515 and GT0516 for sizes that the module does not allow.
    """
    names, limits = value_names(module.graph), index_limits(module.graph)
    ports = {names[v]: (v.type.dtype, v.type.shape, limits.get(v, ()))
             for v in module.graph.inputs}
    found = made_up_sizes(module, sizes)
    arrays = _arrays(ports, seed, found, deviation, of_meta(module.meta, "inputs"))
    return arrays | example_values(module, arrays, found)


def example_values(module: Module, arrays: Mapping[str, Array], sizes: Mapping[str, Dim]
                   ) -> dict[str, Array]:
    """The arrays whose values must fit sizes: one value for all elements, or one for each."""
    table = {name: dim_of(s) for name, s in module.symbols.items()}
    out = {}
    for name, values in module.meta.get("examples", {}).items():
        x = arrays.get(name)
        numbers = [substitute(parse(v, table), sizes) if isinstance(v, str) else v for v in values]
        if x is not None and len(numbers) in (1, x.size) and all(
                isinstance(n, int | float) for n in numbers):
            flat = np.resize(np.array(numbers), x.shape)
            out[name] = flat.astype(x.dtype)
    return out


def port_inputs(ports: Iterable[DescribedInput], symbols: Mapping[str, Symbol],
                requires: Iterable[Equation], seed: int = 0,
                sizes: Mapping[str, int] | None = None,
                on_grids: Collection[str] = ()) -> dict[str, Array]:
    """`random_inputs` for the ports of a program or a build; those of the names `on_grids` are
    bytes that stand for real numbers."""
    return _arrays({p.name: (p.dtype, p.shape, p.below) for p in ports}, seed,
                   _sizes(symbols, requires, sizes), 1.0, on_grids)


def made_up_sizes(module: Module, sizes: Mapping[str, int] | None = None) -> dict[str, Dim]:
    """The size of each symbol in `random_inputs`: from `sizes`, else a size that the module
    allows, with the conditions that its graph computes of sizes."""
    given = _preferred(module, dict(sizes or {}))
    first = _sizes(module.symbols, module.requires, given)
    if size_checks.allowed(module.graph, first):
        return first
    free = [n for n in module.symbols if n not in given]
    for values in size_checks.candidates(module.graph, free, first):
        try:
            found = _sizes(module.symbols, module.requires, given | values)
        except InputError:
            continue  # against another condition
        if size_checks.allowed(module.graph, found):
            return found
    return first


def _preferred(module: Module, given: dict[str, int]) -> dict[str, int]:
    """The sizes given, with those that the module's `meta` names as examples if it allows them."""
    out = dict(given)
    table = {name: dim_of(s) for name, s in module.symbols.items()}
    try:
        for name, value in module.meta.get("example_sizes", {}).items():
            d = substitute(parse(str(value), table), _sizes(module.symbols, module.requires, out))
            if name in module.symbols and isinstance(d, int):
                out.setdefault(name, d)
        _sizes(module.symbols, module.requires, out)
    except InputError:
        return given
    return out


def joint_sizes(module: Module, symbols: Mapping[str, Symbol], requires: Iterable[Equation],
                sizes: Mapping[str, int]) -> dict[str, int]:
    """Sizes of the symbols, those of a build, which its requirements and the module allow; those
    given if there are none. Symbols of the same name are the same size."""
    both = {n: _narrower(s, symbols[n]) if n in symbols else s for n, s in module.symbols.items()}
    shared = [e for e in requires if e.names <= both.keys()]
    given = {n: size for n, size in sizes.items() if n in both}
    try:
        found = made_up_sizes(replace(module, symbols=both,
                                      requires=(*module.requires, *shared)), given)
    except InputError:
        return dict(sizes)
    return {n: d for n, d in found.items() if n in symbols and isinstance(d, int)} | dict(sizes)


def _narrower(a: Symbol, b: Symbol) -> Symbol:
    """A symbol with the bounds of both, and the steps of the one that has steps."""
    steps = a if a.step > b.step else b
    tops = [s.hi for s in (a, b) if s.hi is not None]
    return replace(steps, lo=max(a.lo or 0, b.lo or 0), hi=min(tops, default=None))


def _sizes(symbols: Mapping[str, Symbol], requires: Iterable[Equation],
           sizes: Mapping[str, int] | None) -> dict[str, Dim]:
    requires = tuple(requires)
    bound = sample_sizes(symbols, requires, sizes or {})
    for name, row in symbols.items():
        check_bounds(row, bound[name])
    check_required(requires, bound)
    return bound


def _arrays(ports: Mapping[str, tuple[DType, tuple[Dim, ...], Below]], seed: int,
            sizes: Mapping[str, Dim], deviation: float, on_grids: Collection[str]
            ) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    out = {}
    for name, (dtype, shape, below) in ports.items():
        extents = [n for d in shape if isinstance(n := substitute(d, sizes), int)]
        known = [n for d in below if isinstance(n := substitute(d, sizes), int)]
        try:
            out[name] = _bytes(rng, dtype, extents) if name in on_grids and not known else _array(
                rng, name, dtype, extents, min(known, default=None), deviation)
        # too large for numpy or for the machine's memory
        except (ValueError, MemoryError) as error:
            raise InputError("GT0333", f"cannot make up {name}: {error}",
                             hint="choose smaller sizes, as in --dim batch=8") from error
    return out


def _array(rng: np.random.Generator, name: str, d: DType, shape: list[int],
           limit: int | None, deviation: float) -> Array:
    if d.is_float:
        return np.asarray(rng.standard_normal(shape) * deviation).astype(d.numpy)
    if d is dtypes.string:
        return np.array(rng.choice(_WORDS, shape), d.numpy)
    if d.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if limit is None:
        limit = 2 if "mask" in name.lower() or d.is_packed else 4
    return np.asarray(rng.integers(0, max(limit, 1), shape)).astype(d.numpy)


def _bytes(rng: np.random.Generator, d: DType, shape: list[int]) -> Array:
    """Integers of the whole range of the type."""
    info = np.iinfo(d.numpy)
    return np.asarray(rng.integers(info.min, info.max + 1, shape)).astype(d.numpy)


# ---- what is an index --------------------------------------------------------------------------

def index_limits(graph: Graph) -> dict[Value, Below]:
    """For each value that is used as an index, the extents that it indexes."""
    limits: dict[Value, Below] = {}

    def lower(v: object, *below: Dim) -> None:
        if isinstance(v, Value):
            limits[v] = tuple(dict.fromkeys((*limits.get(v, ()), *below)))

    for node in reversed(graph.nodes):
        if (indexing := node.op.indexing) is not None:
            lower(node.inputs[indexing.indices], *_indexed(node, indexing))
        elif Trait.CONVERTS in node.op.traits and node.attrs["dtype"] is dtypes.bool_:
            lower(node.inputs[0], 2)
        elif node.outputs and node.outputs[0] in limits and _passes_on(node.op):
            for i in node.op.alike or range(len(node.inputs)):
                lower(node.inputs[i], *limits[node.outputs[0]])
    return limits


def _indexed(node: Node, indexing: Indexing) -> list[Dim]:
    """The sizes of the axes that the node's indices address."""
    x = node.inputs[indexing.into]
    if not isinstance(x, Value):
        raise InternalError("GT7502", f"{node.op.name} indexes a literal")
    axes = node.attrs[indexing.axes] if isinstance(indexing.axes, str) else indexing.axes
    return [x.type.shape[a] for a in (axes if isinstance(axes, tuple) else (axes,))]


def _passes_on(op: Op) -> bool:
    """Whether the elements of the result are elements of the operands."""
    return bool(op.movement) or bool(op.traits & (Trait.PICKS | Trait.CONVERTS))
