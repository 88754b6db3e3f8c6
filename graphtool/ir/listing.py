"""Module → the listing: one line for each node, in the language of docs/listing.md that `parse`
reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from graphtool.dtypes import DType, float32, string
from graphtool.io import files
from graphtool.io.manifest_rows import Choice
from graphtool.io.versions import GRAPH
from graphtool.io.weights import Weight
from graphtool.ir.encode import data_row, inline
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value, is_constant, own_names
from graphtool.ir.requires import KEY as PLUGINS
from graphtool.ir.requires import meta_with_plugins
from graphtool.ir.run_sizes import defined, definitions, limits
from graphtool.ir.text import PLACE, literal_text, name_text, node_text, quoted, value_names
from graphtool.symbolic import Symbol, divides, text

FILL = 1 << 16  # elements up to which equal ones are written as one
_SHORT = len("sha256:") + 12
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class ListingStyle:
    """How much is printed. Large constants: the start of their digest, all of it, or base64."""

    data: Literal["short", "digest", "embed"] = "short"
    weights: str = ""  # the file that has them
    where: bool = False  # the tables of source locations and of the modules' classes
    full: bool = False  # all that a graph file holds: version, history, choices and meta too
    notes: Mapping[Value, str] = field(default_factory=dict)  # comments behind what makes a value


def dumps(module: Module, weights_name: str = "", embed: bool = False) -> str:
    """The whole module as text; with `embed`, large constants stand in it as base64."""
    form = ListingStyle("embed" if embed else "digest", weights_name, full=True)
    return "\n".join(listing(module, form)) + "\n"


def listing(module: Module, form: ListingStyle | None = None) -> Iterator[str]:
    """The lines. A short form can be read back too, if its weights file is available."""
    form = form or ListingStyle()
    if form.full:
        yield f"version {GRAPH.version} since {GRAPH.since}"
    if form.weights:
        yield f"weights {quoted(form.weights)}"
    for s in module.symbols.values():
        yield f"dim {_bounds(s)}"
    yield from (f"require {rule}" for rule in required(module))
    most = limits(module.graph)
    for name, node in definitions(module.graph).items():
        size = defined(node)
        assert size is not None
        bound = most[name]
        yield f"size {_bounds(size)}" + (f"  # at most {text(bound)}" if bound is not None else "")
    names = value_names(module.graph)
    yield from _body(module, module.graph, names, form, "")
    for group in module.graph.groups:
        members = ", ".join(name_text(names[n.outputs[0]]) for n in group.members)
        yield f"group {name_text(names[group.root])} ({group.kind}): {members}"
    yield from _returned(module, names)
    if form.full or form.where:
        for key, place in module.locations.items():
            line = f", {quoted(place.text)}" if place.text else ""
            yield f"location {_place(key)} = {quoted(place.at)}{line}"
        for key, kind in module.modules.items():
            yield f"module {_place(key)} = {name_text(kind)}"
    if form.full:
        for name, w in module.kept.items():
            yield f"kept {name_text(name)}: {TensorType(w.dtype, w.shape)} = {data_text(w, form)}"
        for value, rules in module.history.items():
            yield f"history {name_text(value)}: {', '.join(map(quoted, rules))}"
        for r in module.assumes:
            words = ", ".join((quoted(r.by), quoted(r.why), *map(name_text, r.values)))
            yield f"assumes {r.needs}: {words}"
    for key, value in meta_with_plugins(module).items():
        if form.full or key == PLUGINS:
            yield f"meta {name_text(key)} = {files.compact(value)}"


def required(module: Module) -> list[str]:
    """What must hold of the sizes of a run: `H % 32 == 0`, `M == N`."""
    return [*filter(None, map(divides, module.symbols.values())), *map(str, module.requires)]


def _bounds(s: Symbol) -> str:
    low, high = ("" if x is None else str(x) for x in (s.lo, s.hi))
    return f"{name_text(s.name)}: {low}..{high}"


def _place(key: str) -> str:
    return key if PLACE.fullmatch(key) else quoted(key)


def _returned(module: Module, names: Mapping[Value, str]) -> list[str]:
    donors = {out: names[module.graph.inputs[i]] for out, i in module.donations}
    items = []
    for i, (name, v) in enumerate(zip(module.output_names, module.graph.outputs, strict=True)):
        item = name_text(names[v])
        item += f" as {name_text(name)}" if name != names[v] else ""
        items.append(item + (f" donates {name_text(donors[i])}" if i in donors else ""))
    line = f"return {', '.join(items)}".rstrip()
    if len(line) <= _WIDTH:
        return [line]
    return [("  " if i else "return ") + item + ("," if i + 1 < len(items) else "")
            for i, item in enumerate(items)]


def _body(module: Module, graph: Graph, names: Mapping[Value, str], form: ListingStyle,
          indent: str) -> Iterator[str]:
    """Inputs, constants and nodes; each region is indented below its node."""
    initial = module.initial if graph is module.graph else {}
    for i, v in enumerate(graph.inputs):
        data = f" = {data_text(initial[i], form)}" if i in initial else ""
        yield f"{indent}input {name_text(names[v])}: {v.type}{data}"
    for node in graph.nodes:
        if is_constant(node):
            kind = "param" if node.attrs["param"] else "constant"
            yield (f"{indent}{kind} {name_text(names[node.outputs[0]])}: {node.outputs[0].type}"
                   f" = {data_text(node.attrs['data'], form)}{_origin(node, form)}")
    for node in graph.nodes:
        if is_constant(node):
            continue
        note = "".join(f"  # {form.notes[v]}" for v in node.outputs if v in form.notes)
        yield f"{indent}{node_text(node, names)}{_origin(node, form)}{note}"
        for key, region in node.attrs.items():
            if isinstance(region, Graph):
                inner = value_names(region)
                yield f"{indent}  {key}:"
                yield from _body(module, region, inner, form, indent + "    ")
                results = ", ".join(name_text(inner[v]) for v in region.outputs)
                yield f"{indent}    return {results}".rstrip()
        choice = module.choices.get(node.outputs[0]) if form.full and node.outputs else None
        if choice is not None:
            yield indent + _choice(names[node.outputs[0]], choice)


def _choice(name: str, choice: Choice) -> str:
    plans = ", ".join(f"{quoted(plan)} {literal_text(us)}" for plan, us in choice.us.items())
    return f"choice {name_text(name)}: {quoted(choice.site)} {name_text(choice.by)} {plans}"


def _origin(node: Node, form: ListingStyle) -> str:
    of = ", ".join(map(name_text, own_names(node))) if form.full else ""
    return (f"  of {of}" if of else "") + (f"  at {_place(node.where)}" if node.where else "")


def data_text(w: Weight, form: ListingStyle) -> str:
    """`[1.0, 2.0]`; `0.5` if all elements are equal; `base64:…`, or `sha256:…`."""
    if not inline(w) and (one := _fill(w)) is not None:
        return _element(one, w.dtype)
    row = data_row(w, form.data == "embed")
    if "value" in row:
        return f"[{', '.join(_element(x, w.dtype) for x in w.source.reshape(-1))}]"
    data: str = row["data"]
    return data[:_SHORT] if form.data == "short" else data


def _fill(w: Weight) -> Any:
    """The element that all of the array is equal to, if there is one and it is small."""
    if w.dtype.is_packed or w.size > FILL or w.absent:
        return None
    flat = w.stored.reshape(-1)
    raw = flat.view(np.uint8).reshape(w.size, -1)
    return flat[0] if bool((raw == raw[0]).all()) else None


def _element(x: Any, dtype: DType) -> str:
    """One element; a float32 as the shortest text that is read back as the same number."""
    if dtype is string:
        return quoted(str(x))
    if dtype is float32 and np.float32(float(short := str(x))) == x:
        return short
    return literal_text(x.item() if x.dtype.kind in "biuf" else
                        float(x) if dtype.is_float else int(x))
