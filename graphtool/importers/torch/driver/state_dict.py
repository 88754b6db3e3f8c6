"""What torch's state_dict has, in terms of the graph: `meta["state_dict"]` and the kept arrays.

An entry of the list is a name that torch and the graph share, or [torch's name, the array] for a
tied parameter, or [torch's name, real part, imaginary part] for a complex one.
"""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.driver.captured import CapturedProgram, ComplexType, identity
from graphtool.importers.torch.driver.complex_pairs import PARTS
from graphtool.io.weights import Weight, weight
from graphtool.ir.graph import Graph, is_constant
from graphtool.ir.text import value_names


def state_dict(program: CapturedProgram, graph: Graph) -> tuple[list[Any], dict[str, Weight]]:
    """The entries, and the arrays that they name and the graph does not have."""
    names = value_names(graph)
    there = {names[v].lstrip("@") for v in (
        *graph.inputs, *(n.outputs[0] for n in graph.nodes if is_constant(n)))}
    saved = [(s, s.data) for s in program.sources if s.state and s.data is not None]
    owners: dict[Any, str] = {}
    for s, w in sorted(saved, key=lambda row: there.isdisjoint(
            _parts(program, row[0].name, row[0].key))):
        owners.setdefault(identity(w), s.key)  # one that the graph has, if there is one
    entries: list[Any] = []
    kept: dict[str, Weight] = {}
    for s, w in saved:
        parts = _parts(program, s.name, owners[identity(w)])
        arrays = [w] if len(parts) == 1 else [
            weight(w.source[..., i]) for i in range(len(parts))]
        kept |= {n: w for n, w in zip(parts, arrays, strict=True) if n not in there}
        entries.append(s.state if parts == [s.state] else [s.state, *parts])
    return entries, kept


def _parts(program: CapturedProgram, name: str, key: str) -> list[str]:
    """The names of the arrays that hold a source: of a complex one there are two."""
    is_complex = isinstance(program.types.get(name), ComplexType)
    return [f"{key}.{p}" for p in PARTS] if is_complex else [key]
