"""Composites: an op that is not one operation is a private function, which a
`stablehlo.composite` of our op's name calls. So other tools run the function, and we read the op.

Equal ops on equal types share one function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool.exporters.stablehlo.function import Function, Made
from graphtool.exporters.stablehlo.registry import Declined, Ref, Unsized
from graphtool.exporters.stablehlo.text import attribute, identifier, quoted, signature
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.encode import plain, plain_attrs
from graphtool.ir.graph import Graph, Node

PREFIX = "graphtool."
Body = Callable[[Writer, Node, Sequence[Any]], Sequence[Ref]]


def call(w: Writer, node: Node, operands: Sequence[Any], body: Body) -> Sequence[Ref]:
    """The results of a node: by a composite, or by the body in place where its attributes do not
    fit in a composite, or its sizes do not follow from its operands."""
    given = [x for x in operands if isinstance(x, Ref)]
    told = described(node, operands) if w.shared.composites else None
    if told is None:
        return body(w, node, operands)
    key = node.op.name, told, tuple(x.type for x in given)
    if key not in w.shared.made:
        w.shared.made[key] = _function(w, node, operands, body)
    made = w.shared.made[key]
    if made is None:
        return body(w, node, operands)
    names = "".join(f"{', ' if i else ' '}{x.name}" for i, x in enumerate(given))
    types = signature([x.type for x in given], made.results)
    more = f"composite_attributes = {told}, " if told != "{}" else ""
    return w.several(f"stablehlo.composite {quoted(PREFIX + node.op.name)}{names} "
                     f"{{{more}decomposition = @{made.name}}} : {types}", made.results,
                     node.op.name)


def described(node: Node, operands: Sequence[Any]) -> str | None:
    """The attributes of a composite: those of the op, and operands that are no tensors.

    None where they cannot be written so: regions, open sizes.
    """
    if any(isinstance(a, Graph) for a in node.attrs.values()) or not any(
            isinstance(x, Ref) for x in operands):
        return None
    told = plain_attrs(node)
    if told is None:
        return None
    for i, x in enumerate(operands):
        if not isinstance(x, Ref):
            told[f"operand{i}"] = "none" if x is None else plain(x)
    return attribute(told)


def _function(w: Writer, node: Node, operands: Sequence[Any], body: Body) -> Made | None:
    """Write the function of a composite; None if its sizes are not those of its operands."""
    shared = w.shared
    name = wish = identifier(node.op.name)
    count = 1
    while name in shared.names:
        count += 1
        name = f"{wish}_{count}"
    function = Function(name)
    inner = w.inside(function)
    arguments = [inner.argument(x.type, f"x{i}") if isinstance(x, Ref) else x
                 for i, x in enumerate(operands)]
    for x in arguments:
        if isinstance(x, Ref):
            function.argument(x)
    at, made = len(shared.functions), dict(shared.made)
    shared.names.add(name)
    shared.functions.append("")  # its place is before those that it calls
    refused = {k: len(v) for k, v in shared.refused.items()}
    try:
        results = list(body(inner, node, arguments))
    except (Declined, Unsized) as fault:
        del shared.functions[at:]
        shared.names.discard(name)
        shared.made = made
        if isinstance(fault, Unsized):
            return None
        raise
    for key, places in shared.refused.items():  # the place is that of the node itself
        places[refused.get(key, 0):] = [shared.places.text(w.where) or w.hint]
    results = [Ref(x.name, v.type) for x, v in zip(results, node.outputs, strict=True)]
    shared.functions[at] = function.text(inner.lines, results, [""] * len(results))
    return Made(name, tuple(v.type for v in node.outputs))
