"""Composites: an op that is not one operation is a private function, which a
`stablehlo.composite` of our op's name calls. So other tools run the function, and we read the op.

Equal ops on equal types share one function. A region among the attributes is a function of its own,
which the composite names and its function calls; the name is a string, because StableHLO's portable
form has no other references than those of its own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool.escaping import mlir_string
from graphtool.exporters.forms import Declined, Ref
from graphtool.exporters.stablehlo.function import (
    OWN_SIZE,
    FunctionState,
    WrittenFunction,
    braced,
    sizes_of,
)
from graphtool.exporters.stablehlo.registry import Unsized
from graphtool.exporters.stablehlo.sizes import SIZE, size
from graphtool.exporters.stablehlo.text import attribute, identifier, signature
from graphtool.exporters.stablehlo.writer import Shared, Writer
from graphtool.ir.encode import plain, plain_attrs
from graphtool.ir.graph import Graph, Node, Value
from graphtool.ir.run_sizes import defined
from graphtool.symbolic import Symbol, symbol_of

PREFIX = "graphtool."
LEAST, MOST = "size_least", "size_most"  # the bounds of the size that a node defines
Body = Callable[[Writer, Node, Sequence[Any]], Sequence[Ref]]
Region = Callable[[Writer, Graph, Sequence[Ref]], Sequence[Ref]]


def call(w: Writer, node: Node, operands: Sequence[Any], body: Body, region: Region
         ) -> Sequence[Ref]:
    """The results of a node: by a composite, or by the body in place where its attributes do not
    fit in a composite. `region` writes the nodes of a graph."""
    given = [x for x in operands if isinstance(x, Ref)]
    attributes = described(w, node, operands, region) if w.shared.composites and given else None
    if attributes is None:
        return body(w, node, operands)
    key = node.op.name, attributes, tuple(x.type for x in given)
    if key not in w.shared.by_call:
        outputs = [v.type for v in node.outputs]
        w.shared.by_call[key] = _function(w, node.op.name, operands, lambda inner, xs: [
            Ref(x.name, t) for x, t in zip(body(inner, node, xs), outputs, strict=True)])
    function = w.shared.by_call[key]
    given += [size(w, symbol_of(s)) for s in function.sizes]
    names = "".join(f"{', ' if i else ' '}{x.name}" for i, x in enumerate(given))
    types = signature([x.type for x in given], function.results)
    more = f"composite_attributes = {attributes}, " if attributes != "{}" else ""
    return w.several(f"stablehlo.composite {mlir_string(PREFIX + node.op.name)}{names} "
                     f"{{{more}decomposition = @{function.name}}} : {types}", function.results,
                     node.op.name)


def described(w: Writer, node: Node, operands: Sequence[Any], region: Region) -> str | None:
    """The attributes of a composite: those of the op, and operands that are no tensors.

    None where one of them is an array.
    """
    plains = plain_attrs(node)
    if plains is None:
        return None
    attributes = {k: attribute(v) for k, v in plains.items()}
    for k, v in node.attrs.items():
        if isinstance(v, Graph):
            attributes[k] = mlir_string(_part(w, f"{node.op.name}.{k}", v, region).name)
    if (s := defined(node)) is not None:
        attributes[LEAST], attributes[MOST] = (
            attribute("none" if n is None else n) for n in (s.lo, s.hi))
    for i, x in enumerate(operands):
        if not isinstance(x, Ref):
            attributes[f"operand{i}"] = attribute("none" if x is None else plain(x))
    return "{" + ", ".join(f"{k} = {v}" for k, v in attributes.items()) + "}"


def _part(w: Writer, wish: str, graph: Graph, region: Region) -> WrittenFunction:
    """The function of a region."""
    inputs = [Ref("", v.type) for v in graph.inputs]
    if graph not in w.shared.parts:
        w.shared.parts[graph] = _function(w, wish, inputs,
                                          lambda inner, xs: region(inner, graph, xs), graph.inputs)
    return w.shared.parts[graph]


def _restorer(shared: Shared) -> Callable[[], None]:
    """What takes back all functions that are written from here on."""
    kept = [(held, len(held)) for held in (shared.names, shared.by_call, shared.parts)]
    count = len(shared.functions)

    def back() -> None:
        del shared.functions[count:]
        for held, n in kept:
            while len(held) > n:
                held.popitem()
    return back


def _function(w: Writer, wish: str, operands: Sequence[Any],
              write: Callable[[Writer, Sequence[Any]], Sequence[Ref]],
              named: Sequence[Value] = ()) -> WrittenFunction:
    """Write a private function; `named` are the inputs of a region, whose sizes are told. Open
    sizes that its arguments do not have are arguments, too."""
    shared, missing = w.shared, list[Symbol]()
    name = wish = identifier(wish)
    count = 1
    while name in shared.names:
        count += 1
        name = f"{wish}_{count}"
    back = _restorer(shared)
    refused = {k: len(v) for k, v in shared.refused.items()}
    while True:
        function = FunctionState(name)
        inner = w.inside(function)
        arguments = [inner.argument(x.type, named[i].hint if named else f"x{i}")
                     if isinstance(x, Ref) else x for i, x in enumerate(operands)]
        for i, x in enumerate(arguments):
            if isinstance(x, Ref):
                function.argument(x, braced(sizes_of(named[i].type)) if named else "")
        for s in missing:
            inner.sizes[symbol_of(s)] = inner.argument(SIZE, s.name)
            function.argument(inner.sizes[symbol_of(s)], braced({OWN_SIZE: mlir_string(s.name)}))
        at = len(shared.functions)
        shared.names[name] = None
        shared.functions.append("")  # it stands before the functions that it calls
        try:
            results = list(write(inner, arguments))
            break
        except Declined:
            back()
            raise
        except Unsized as fault:
            back()
            if fault.symbol in missing:
                raise
            missing.append(fault.symbol)
    if not named:
        for key, places in shared.refused.items():  # the place is that of the node itself
            places[refused.get(key, 0):] = [shared.places.text(w.where) or w.hint]
    shared.functions[at] = function.text(inner.lines, results, [""] * len(results))
    return WrittenFunction(name, tuple(x.type for x in results), tuple(missing))
