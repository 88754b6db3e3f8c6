"""Records the nodes of a model as their author wrote them, beside what they become here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import NodeProto

from graphtool.front import Array
from graphtool.front.authored import Operation
from graphtool.importers.onnx.driver.context import Frame, Session
from graphtool.importers.onnx.driver.schemas import plain_domain
from graphtool.ir.graph import is_constant


def recorded(importer: Session, node: Any, frame: Frame, inputs: Sequence[Any], before: int,
             state: Any) -> Iterator[Operation]:
    """The node as an operation, if it has become nodes, those of the builder from number `before`
    on, and its operands and results are tensors. A node with subgraphs gives none. `state` is that
    of the random generator before it."""
    builder, first = importer.builder, state or importer.seed
    drawn = None if first is None or importer.state is state else (
        first.value, importer.state.value)
    results = [frame.env.get(name) if name else None for name in node.output]
    made = [n for n in builder.nodes[before:] if not is_constant(n)]
    if not made or any(a.HasField("g") or a.graphs or a.ref_attr_name
                                for a in node.attribute) or not any(
            x is not None for x in results) or not all(
            x is None or _traced(x) for x in results) or not all(
            x is None or (isinstance(x, Array) and not x.symbolic and x.base is None)
            for x in inputs):
        return
    known = [x if x is None or x.known is None or x.hint else builder.constant(
        x.known, frame.prefix + name, x.param) for x, name in zip(inputs, node.input, strict=False)]
    operands, outputs = (tuple(None if x is None else x.value for x in xs)
                         for xs in (known, results))
    constants = (builder.made_by.get(v) for v in operands if v is not None)
    yield Operation(_text(node, drawn is not None),
                    frame.opsets.get(plain_domain(node.domain), 1), operands, outputs,
                    frozenset(v for n in made for v in n.outputs),
                    tuple(n for n in constants if is_constant(n)), drawn)


def _text(node: Any, drawn: bool) -> bytes:
    """The node without names, so that equal ones are equal; each that draws is another."""
    plain = NodeProto()
    plain.CopyFrom(node)
    plain.name = node.output[0] if drawn else ""
    plain.ClearField("doc_string")
    plain.ClearField("metadata_props")
    for names in (plain.input, plain.output):
        names[:] = ["x" if name else "" for name in names]
    text: bytes = plain.SerializeToString(deterministic=True)
    return text


def _traced(x: Any) -> bool:
    return isinstance(x, Array) and x.known is None and x.base is None

