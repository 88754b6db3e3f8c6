"""Writes our nodes: by the first of the tables in the registry that takes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphtool.exporters.definitions import defined
from graphtool.exporters.forms import Declined, Ref
from graphtool.exporters.stablehlo import composites, sizes
from graphtool.exporters.stablehlo.function import number_of
from graphtool.exporters.stablehlo.registry import (
    BODIES,
    DEFINITIONS,
    FORMS,
    Unsized,
    reason_against,
)
from graphtool.exporters.stablehlo.text import signature
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Graph, Node, Value, is_constant
from graphtool.ir.replay import ancestors
from graphtool.symbolic import symbol_of


def part(w: Writer, g: Graph, given: Sequence[Ref]) -> list[Ref]:
    """Writes a region with the given inputs: the call of its function, if it has one; returns its
    outputs."""
    function = w.shared.parts.get(g)
    if function is None:
        return graph(w, g, given)
    xs = [*given, *(sizes.size(w, symbol_of(s)) for s in function.sizes)]
    return list(w.several(f"func.call @{function.name}({', '.join(x.name for x in xs)}) : "
                          f"{signature([x.type for x in xs], function.results)}", function.results,
                          function.name))


def graph(w: Writer, g: Graph, given: Sequence[Ref]) -> list[Ref]:
    """Writes the nodes of a closed graph with the given inputs; returns its outputs."""
    env: dict[Value, Ref] = dict(zip(g.inputs, given, strict=True))
    nodes(w, g, env)
    return [env[v] for v in g.outputs]


def nodes(w: Writer, g: Graph, env: dict[Value, Ref],
          names: Mapping[Value, str] | None = None) -> None:
    """Writes the nodes of a graph and adds their results to `env`. `names` has the names of the
    outermost graph's values; without it a value is named by its hint."""
    used = set(ancestors(g, g.outputs))
    for n in g.nodes:
        _node(w, n, env, names, n in used)


def _node(w: Writer, n: Node, env: dict[Value, Ref], names: Mapping[Value, str] | None,
          used: bool) -> None:
    """Writes one node. One that is not `used` is a composite, because a plain operation would not
    be read back as a node."""
    def wish(v: Value) -> str:
        return names[v] if names else v.hint
    if is_constant(n) and not reason_against(n):
        v = n.outputs[0]
        env[v] = w.weight(n.attrs["data"], wish(v), n.attrs["param"])
        return
    saved = w.hint, w.where
    w.hint, w.where = wish(n.outputs[0]) if n.outputs else n.op.name, n.where or w.where
    before = len(w.function.wishes)
    operands = [env[x] if isinstance(x, Value) else x for x in n.inputs]
    for v, x in zip(n.outputs, _results(w, n, operands, used), strict=True):
        if number_of(x) >= before:
            w.function.rename(x, w.hint)
        env[v] = Ref(x.name, v.type)
    sizes.note(w, n, [env[v] for v in n.outputs])
    w.hint, w.where = saved


def _results(w: Writer, n: Node, operands: list[Any], used: bool) -> Sequence[Ref]:
    reason = reason_against(n)
    if reason:
        return _refused(w, n, reason)
    for table in (FORMS, BODIES, DEFINITIONS):
        fn = table.get(n.op.name)
        if fn is None:
            continue
        try:
            if table is FORMS and (used or not w.marks):
                return _as_tuple(_tried(w, fn, n, operands))
            return composites.call(w, n, operands, _restated(fn) if table is DEFINITIONS
                                   else _written(fn), graph)
        except Declined as declined:
            reason = str(declined)
        except Unsized as unsized:
            if not w.function.public:
                raise
            reason = str(unsized)
    if n.op.decompose is not None:
        return composites.call(w, n, operands, _restated(n.op.decompose), graph)
    return _refused(w, n, reason or "StableHLO has nothing like it")


def _refused(w: Writer, n: Node, reason: str) -> list[Ref]:
    """Notes a node for the error, which lists all of them, and goes on."""
    w.shared.refused.setdefault((n.op.name, reason), []).append(
        w.shared.places.text(w.where) or w.hint)
    return [Ref(w.function.value("refused"), v.type) for v in n.outputs]


def _tried(w: Writer, fn: Callable[..., Any], n: Node, operands: Sequence[Any]) -> Any:
    before = len(w.lines)
    try:
        return fn(w, n, *operands)
    except (Declined, Unsized):
        del w.lines[before:]
        raise


def _as_tuple(x: Any) -> tuple[Ref, ...]:
    return x if isinstance(x, tuple) else (x,)


def _written(fn: Callable[..., Any]) -> composites.Body:
    """A form as the body of a composite."""
    return lambda w, n, operands: _as_tuple(_tried(w, fn, n, operands))


def _restated(fn: Callable[..., Any]) -> composites.Body:
    """A function over our ops as the body of a composite."""
    def write(w: Writer, n: Node, operands: Sequence[Any]) -> tuple[Ref, ...]:
        given = [x for x in operands if isinstance(x, Ref)]
        meaning = defined(lambda *xs: fn(*xs, **n.attrs),
                          [x.type if isinstance(x, Ref) else x for x in operands],
                          [f"x{i}" for i in range(len(given))], w.hint)
        saved, w.marks = w.marks, False
        results = tuple(graph(w, meaning, given))
        w.marks = saved
        return results
    return write
