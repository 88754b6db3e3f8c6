"""Nodes of an ONNX model that are written as they were, in place of the nodes that they became.

The op `authored` stands for one; `front.authored` puts it where our nodes would be more.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper

from graphtool.exporters.forms import Declined
from graphtool.exporters.onnx.kit import Node, Ref, Writer, dtypes, form

# The opset from which on an operator means what it does in the newest one, where its attributes
# and inputs alone do not show that.
_SINCE = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "Resize": 11, "RoiAlign": 16,
          "GridSample": 20, "GroupNormalization": 21, "AveragePool": 19, "TopK": 11, "PRelu": 7,
          "BatchNormalization": 15, "Dropout": 13, "Attention": 24}
# attributes that have become inputs since, with the number of the input
_INPUTS = {"Split": {"split": 1}, "Squeeze": {"axes": 1}, "Unsqueeze": {"axes": 1},
           "Pad": {"pads": 1, "value": 2}, "DFT": {"axis": 2}, **{f"Reduce{kind}": {"axes": 1}
           for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
                        "SumSquare")}}
_RENAMED = {"Scatter": "ScatterElements"}
_OTHERS = frozenset({"com.microsoft", "com.microsoft.nchwc"})


def stays(text: bytes) -> bool:
    """Whether a node stays even where passes could evaluate it: runtimes find their kernels for
    integers by these operators, and a weight that is not integers is four times as large."""
    return NodeProto.FromString(text).op_type in ("QuantizeLinear", "DequantizeLinear")


@cache
def modern(text: bytes, opset: int, newest: int) -> tuple[NodeProto, dict[int, Any]] | None:
    """A node of this opset as the newest one has it, with the constants that become its inputs;
    None if its meaning may have changed. A node of a later opset stays as it is."""
    node = NodeProto.FromString(text)
    if node.domain in _OTHERS:
        return node, {}
    if node.domain not in ("", "ai.onnx"):
        return (node, {}) if _schema(node.op_type, opset, node.domain) else None
    if opset > newest:
        return node, {}
    if opset < _SINCE.get(node.op_type, 1) or _schema(node.op_type, opset) is None:
        return None
    node.op_type = _RENAMED.get(node.op_type, node.op_type)
    schema, constants = _schema(node.op_type, newest), dict[int, Any]()
    if schema is None or schema.deprecated:
        return None
    for a in list(node.attribute):
        at = _INPUTS.get(node.op_type, {}).get(a.name)
        if at is not None and a.name not in schema.attributes:
            constants[at] = helper.get_attribute_value(a)
            node.attribute.remove(a)
    names = {a.name for a in node.attribute}
    if node.op_type == "Split" and 1 not in constants and len(node.input) < 2 and not names & {
            "num_outputs"}:
        node.attribute.append(helper.make_attribute("num_outputs", len(node.output)))
        names.add("num_outputs")
    count = max([len(node.input), *(at + 1 for at in constants)])
    fits = schema.min_input <= count <= schema.max_input and names <= set(schema.attributes)
    needed = {name for name, a in schema.attributes.items() if a.required}
    return (node, constants) if fits and needed <= names else None


@cache
def _schema(name: str, opset: int, domain: str = "") -> Any:
    try:
        return onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None


@form("authored")
def authored(w: Writer, node: Node, *operands: Ref | None) -> Any:
    """The node as it was, with our names of its operands and results."""
    found = modern(node.attrs["text"], node.attrs["opset"], w.shared.opset)
    if found is None:
        raise Declined("it means another thing in the opset that is written")
    proto, constants = NodeProto(), found[1]
    proto.CopyFrom(found[0])
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    w.shared.domains[domain] = max(node.attrs["opset"], w.shared.domains.get(domain, 1))
    names = [x.name if isinstance(x, Ref) else "" for x in operands]
    for at, value in sorted(constants.items()):
        names += [""] * (at + 1 - len(names))
        real = isinstance(value, float)
        names[at] = w.array(np.asarray(value, operands[0].dtype.numpy), operands[0].dtype) \
            if real and operands[0] is not None else w.array(value, dtypes.int64)
    outputs = [w.shared.name(f"{w.hint}.{proto.op_type}") if name else "" for name in proto.output]
    for field, text in ((proto.input, names), (proto.output, outputs)):
        del field[:]
        field.extend(text)
    proto.name = ""
    w.nodes.append(proto)
    return tuple(name for name in outputs if name)
