"""A graph as the rows of a table, similar to torch.fx's print_tabular."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from graphtool.ir.graph import Graph, Module, Node, Value, is_constant
from graphtool.ir.text import attr_text, literal_text, shown_attrs, value_names
from graphtool.report.table import Column

DATA = "data"  # the category of rows that hold values and compute none


class ListedRow(msgspec.Struct):
    """One value or node of the table."""

    kind: str  # input | param | constant | node | output
    category: str
    name: str
    op: str
    operands: str
    type: str
    at: str


ROWS = tuple(Column[ListedRow](f) for f in ListedRow.__struct_fields__)


class Listing(msgspec.Struct):
    """All of `show --tabular --json`; schemas/listing.schema.json is made from it."""

    rows: list[ListedRow]


def rows(module: Module, category: str | None = None) -> list[ListedRow]:
    """The table's rows; with a category, only its nodes."""
    graph = module.graph
    names = value_names(graph)
    result = [ListedRow("input", DATA, names[v], "", "", str(v.type), "") for v in graph.inputs]
    result += list(_node_rows(graph, names, ""))
    result += [ListedRow("output", DATA, name, "", names[v], str(v.type), "")
               for name, v in zip(module.output_names, graph.outputs, strict=True)]
    return [r for r in result if category in (None, r.category)]


class FxRow(msgspec.Struct):
    """One line of the table that torch.fx would print of the graph."""

    opcode: str  # placeholder | get_attr | call_function | output
    category: str  # compute | data | shape | control | memory, as in the other table
    name: str
    target: str
    args: str
    kwargs: str


FX_ROWS = tuple(Column[FxRow](f) for f in FxRow.__struct_fields__)


class FxListing(msgspec.Struct):
    """All of `show --as fx --json`; schemas/fx-listing.schema.json is made from it."""

    rows: list[FxRow]


def fx_rows(module: Module) -> list[FxRow]:
    """The graph in the words of torch.fx: inputs are placeholders, weights are fetched by their
    names, ops are functions that are called, and one last row returns the results. Regions of
    control flow are arguments, as graphs."""
    graph, names = module.graph, value_names(module.graph)
    result = [FxRow("placeholder", DATA, names[v], names[v], "()", "{}") for v in graph.inputs]
    for node in graph.nodes:
        name = ", ".join(names[v] for v in node.outputs)
        if is_constant(node):
            result.append(FxRow("get_attr", DATA, name, name.removeprefix("@"), "()", "{}"))
            continue
        args = [names[x] if isinstance(x, Value) else literal_text(x) for x in node.inputs]
        named = [f"{k}: {attr_text(v)}" for k, v in shown_attrs(node).items()]
        result.append(FxRow("call_function", node.op.category, name, node.op.name, _tuple(args),
                            f"{{{', '.join(named)}}}"))
    result.append(FxRow("output", DATA, "output", "output", _tuple([
        _tuple([names[v] for v in graph.outputs])]), "{}"))
    return result


def _tuple(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _node_rows(graph: Graph, names: dict[Value, str], prefix: str) -> Iterator[ListedRow]:
    for node in graph.nodes:
        yield _row(node, names, prefix)
        for key, region in node.attrs.items():
            if isinstance(region, Graph):
                inner = f"{prefix}{names[node.outputs[0]]}.{key}/"
                yield from _node_rows(region, value_names(region), inner)


def _row(node: Node, names: dict[Value, str], prefix: str) -> ListedRow:
    args = [names[x] if isinstance(x, Value) else literal_text(x) for x in node.inputs]
    kind = "node"
    if is_constant(node):
        kind = "param" if node.attrs["param"] else "constant"
    else:
        args += [f"{k}={attr_text(v)}" for k, v in shown_attrs(node).items()]
    return ListedRow(kind, node.op.category, prefix + ", ".join(names[v] for v in node.outputs),
                     node.op.name, ", ".join(args), ", ".join(str(v.type) for v in node.outputs),
                     node.where)
