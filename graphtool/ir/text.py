"""The words of the listing: names of values, literals, attributes, one line a node.

graphtool.ir.listing puts them together to a text, graphtool.ir.parse reads it back. `node_texts`
gives each value's line by the names that its author knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from graphtool.dtypes import DType
from graphtool.escaping import HIDDEN, visible
from graphtool.io.weights import Weight
from graphtool.ir.graph import Graph, Module, Node, Operand, Value, is_constant, names_of
from graphtool.ir.graph import value_names as value_names
from graphtool.ir.plan import Plan
from graphtool.symbolic import Poly, text

BARE = re.compile(r"(?:[^\W\d]|[@/])(?:[\w@/.$~#-]|::)*")  # names that need no quotes
PLACE = re.compile(r"(?![#:])[\w@/.$~#:-]+")  # keys of locations that need no quotes
LONGEST = 160
LITERALS = ("true", "false", "none", "nan", "inf")


def quoted(s: str) -> str:
    """The string in double quotes, with JSON's escapes."""
    return visible(json.dumps(s, ensure_ascii=False))


def name_text(name: str) -> str:
    """A name as the listing shows it: in quotes if it could be read as something else."""
    bare = BARE.fullmatch(name) and name not in LITERALS and not HIDDEN.search(name)
    return name if bare else quoted(name)


def literal_text(x: Operand) -> str:
    """The text of a scalar; for a float the shortest text that is read back as the same number."""
    return "none" if x is None else str(x).lower() if isinstance(x, bool) else repr(x)


def attr_text(x: Any) -> str:
    """An attribute's value as the listing shows it."""
    match x:
        case bool():
            return str(x).lower()
        case None:
            return "none"
        case Poly():  # a string alone would be read as a string
            result = text(x)
            return f"({result})" if result.startswith('"') and result.endswith('"') else result
        case DType():
            return x.short
        case tuple():
            return f"({', '.join(map(attr_text, x))}{',' if len(x) == 1 else ''})"
        case Weight():
            return x.digest[:15]
        case Graph():
            return f"<graph of {len(x.nodes)}>"
        case str():
            return quoted(x)
        case Plan():  # with braces, lest it be a word
            return str(x) if x.parameters else f"{x.kind}{{}}"
        case _:
            return repr(x)


def shown_attrs(node: Node) -> dict[str, Any]:
    """The attributes that differ from their defaults."""
    schema = node.op.schema
    return {k: v for k, v in node.attrs.items()
            if schema[k].required or not _same(v, schema[k].default)}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


def node_text(node: Node, names: Mapping[Value, str]) -> str:
    """`fc1.matmul: f32[B,128] = matmul(x, @fc1.weight, transpose_b=true)`, without regions."""
    outputs = ", ".join(f"{name_text(names[v])}: {v.type}" for v in node.outputs)
    args = [name_text(names[x]) if isinstance(x, Value) else literal_text(x) for x in node.inputs]
    args += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()
             if not isinstance(v, Graph)]
    return f"{outputs} = {node.op.name}({', '.join(args)})"


def expression(node: Node, inside: Mapping[Value, Node]) -> str:
    """A node as an expression over hints; operands that a node of `inside` makes are written out,
    as far as a line of LONGEST characters takes them."""
    def operand(x: Operand, room: int) -> str:
        if not isinstance(x, Value):
            return literal_text(x)
        maker = inside.get(x)
        text = write(maker, room) if maker is not None and not is_constant(maker) and room > 0 \
            else x.hint
        return text if len(text) <= max(room, len(x.hint)) else x.hint

    def write(n: Node, room: int) -> str:
        attrs = [f"{k}={attr_text(v)}" for k, v in shown_attrs(n).items()
                 if not isinstance(v, Graph)]
        rest = room - len(n.op.name) - sum(map(len, attrs))
        return f"{n.op.name}({', '.join([*(operand(x, rest) for x in n.inputs), *attrs])})"
    return write(node, LONGEST)


def node_texts(module: Module) -> dict[str, str]:
    """Name → the node's line in the listing, in the order of the nodes, with those of regions.

    Of several nodes that came from one, the first stands for its name."""
    out: dict[str, str] = {}
    for names, line in _lines(module, module.graph):
        for name in names:
            out.setdefault(name, line)
    return out


def _lines(module: Module, graph: Graph) -> Iterator[tuple[tuple[str, ...], str]]:
    names = value_names(graph)
    for node in graph.nodes:
        if is_constant(node):
            continue
        results = tuple(names[v] for v in node.outputs)
        yield (*names_of(node), *results), f"{node_text(node, names)}{_where(module, node.where)}"
        for region in node.attrs.values():
            if isinstance(region, Graph):
                yield from _lines(module, region)


def _where(module: Module, key: str) -> str:
    known = module.locations.get(key)
    return f"  at {known.at if known else key}" if key else ""
