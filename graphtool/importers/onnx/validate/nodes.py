"""Checks one node against the schema of its operator: version, inputs, outputs, attributes, and
the values that attributes choose from, which the schemas of `onnx` lack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import AttributeProto

from graphtool.errors import InputError, listed, near
from graphtool.importers.limits import Strictness
from graphtool.importers.onnx.driver.schemas import (
    FormalParameter,
    Operator,
    domains,
    operator,
    plain_domain,
    readable,
)
from graphtool.importers.onnx.validate.tensors import check_sparse, check_tensor

# ---- values that attributes choose from ---------------------------------------------------------

_AUTO_PAD = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_DIRECTIONS = ("forward", "reverse", "bidirectional")
_REDUCTIONS = ("none", "mean", "sum")
_SCATTERS = ("none", "add", "mul", "max", "min")
_AFTER = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_FLAG = (0, 1)

CHOICES: dict[tuple[str, str], tuple[str | int, ...]] = {
    **{(op, "auto_pad"): _AUTO_PAD for op in (
        "Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "MaxPool",
        "AveragePool", "LpPool")},
    **{(op, "direction"): _DIRECTIONS for op in ("RNN", "GRU", "LSTM")},
    **{(op, "reduction"): _REDUCTIONS for op in (
        "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")},
    **{(op, "reduction"): _SCATTERS for op in ("ScatterND", "ScatterElements")},
    **{(op, "post_transform"): _AFTER for op in (
        "LinearClassifier", "LinearRegressor", "SVMClassifier", "SVMRegressor",
        "TreeEnsembleClassifier", "TreeEnsembleRegressor")},
    **{(op, "aggregate_function"): ("AVERAGE", "SUM", "MIN", "MAX") for op in (
        "TreeEnsembleRegressor",)},
    ("BitShift", "direction"): ("LEFT", "RIGHT"),
    ("DepthToSpace", "mode"): ("DCR", "CRD"),
    ("Gelu", "approximate"): ("none", "tanh"),
    ("GridSample", "mode"): ("bilinear", "nearest", "bicubic", "linear", "cubic"),
    ("GridSample", "padding_mode"): ("zeros", "border", "reflection"),
    ("ImageDecoder", "pixel_format"): ("RGB", "BGR", "Grayscale"),
    ("MaxPool", "storage_order"): _FLAG,
    ("Normalizer", "norm"): ("MAX", "L1", "L2"),
    ("Pad", "mode"): ("constant", "reflect", "edge", "wrap"),
    ("Resize", "mode"): ("nearest", "linear", "cubic"),
    ("Resize", "coordinate_transformation_mode"): (
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize"),
    ("Resize", "nearest_mode"): (
        "round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"),
    ("Resize", "keep_aspect_ratio_policy"): ("stretch", "not_larger", "not_smaller"),
    ("RoiAlign", "mode"): ("avg", "max"),
    ("RoiAlign", "coordinate_transformation_mode"): ("half_pixel", "output_half_pixel"),
    ("StringNormalizer", "case_change_action"): ("LOWER", "UPPER", "NONE"),
    ("TensorScatter", "mode"): ("linear", "circular"),
    ("TfIdfVectorizer", "mode"): ("TF", "IDF", "TFIDF"),
    ("Upsample", "mode"): ("nearest", "linear", "bilinear"),
}
_FLAGS = frozenset({"keepdims", "ceil_mode", "count_include_pad", "transA", "transB", "exclusive",
                    "reverse", "largest", "sorted", "select_last_index", "noop_with_empty_axes",
                    "fmod", "saturate", "is_causal"})


def check_choice(op: str, a: Any, where: str) -> None:
    """Check the value of an attribute that has few allowed ones. Raises InputError GT1018."""
    if a.ref_attr_name:
        return
    allowed = CHOICES.get((op, a.name), _FLAG if a.name in _FLAGS and a.type == a.INT else None)
    if allowed is None or a.type not in (a.INT, a.STRING):
        return
    value = a.i if a.type == a.INT else a.s.decode("utf-8", "replace")
    if value not in allowed:
        raise InputError("GT1018", f"{op}.{a.name} cannot be {value!r}", where=where,
                         hint=f"it can be {', '.join(map(str, allowed))}")


# ---- one node -----------------------------------------------------------------------------------

_KINDS = AttributeProto.AttributeType
_FIELDS = {"f": _KINDS.FLOAT, "i": _KINDS.INT, "s": _KINDS.STRING, "t": _KINDS.TENSOR,
           "g": _KINDS.GRAPH, "floats": _KINDS.FLOATS, "ints": _KINDS.INTS,
           "strings": _KINDS.STRINGS, "tensors": _KINDS.TENSORS, "graphs": _KINDS.GRAPHS,
           "sparse_tensor": _KINDS.SPARSE_TENSOR, "sparse_tensors": _KINDS.SPARSE_TENSORS,
           "tp": _KINDS.TYPE_PROTO, "type_protos": _KINDS.TYPE_PROTOS}


def operator_of(node: Any, version: int | None, where: str,
                strictness: Strictness) -> Operator | None:
    """The node's operator; None if `onnx` does not know it at all.

    Raises InputError GT1003 for a domain without version, GT1017 for an operator that the declared
    opset does not have, where `strictness` does not take it.
    """
    domain, shown = plain_domain(node.domain), node.domain or "ai.onnx"
    if version is None:
        if domain in domains():
            raise InputError("GT1003", f"the model does not say which version of {shown} it uses",
                             where=where, hint=f"add opset_import for {shown}")
        return None
    newest = operator(domain, node.op_type, version)
    by = readable(domain, node.op_type, version)
    if by > version:
        strictness.clear(InputError(
            "GT1017", f"{node.op_type} is an operator since opset {by} of {shown}, the model uses "
                      f"opset {version}", where=where), f"read as in opset {by}")
    if newest is not None and newest.deprecated:
        strictness.guessed(InputError(
            "GT1017", f"{node.op_type} was removed in opset {newest.since} of {shown}, the model "
                      f"uses opset {version}", where=where), f"read as in opset {by}")
    return operator(domain, node.op_type, by)


def check_arity(node: Any, operator: Operator, where: str) -> None:
    """Check how many inputs and outputs the node has, and that no required one is left out.

    Raises InputError GT1014 for inputs, GT1016 for outputs.
    """
    _check_count("GT1014", "input", node.op_type, node.input, operator.inputs,
                 operator.input_counts, where)
    _check_count("GT1016", "output", node.op_type, node.output, operator.outputs,
                 operator.output_counts, where)


def _check_count(code: str, what: str, op: str, names: Sequence[str],
                 formal: Sequence[FormalParameter], counts: tuple[int, int], where: str) -> None:
    least, most = counts
    if not least <= len(names) <= most:
        bound = f"{least} {what}s at least" if len(names) < least else f"{most} {what}s at most"
        raise InputError(code, f"{op} has {bound}, the node names {len(names)}", where=where)
    for name, row in zip(names, formal, strict=False):
        if not name and row.required:
            raise InputError(code, f"the {what} {row.name} of {op} is required, the node leaves it "
                                   "out", where=where)
    if formal and formal[-1].many and code == "GT1014" and "" in names[len(formal) - 1:]:
        raise InputError(code, f"the node leaves out one of the {what}s {formal[-1].name} of {op}",
                         where=where)


_OWN_RESULTS = {"Loop": 1}  # results of a body that are not outputs of its node: the condition


def check_regions(node: Any, where: str) -> None:
    """Check that If, Loop and Scan have as many outputs as their subgraphs give, also those without
    a name.

    Raises InputError GT1016.
    """
    if node.op_type not in ("If", "Loop", "Scan") or plain_domain(node.domain):
        return
    for a in node.attribute:
        count = len(a.g.output) - _OWN_RESULTS.get(node.op_type, 0)
        if a.type == a.GRAPH and count != len(node.output):
            raise InputError("GT1016", f"the subgraph {a.name} gives {node.op_type} {count} "
                                       f"outputs, the node names {len(node.output)}", where=where)


def check_attributes(attributes: Sequence[Any], where: str, parameters: Sequence[str]) -> None:
    """Check that each attribute is given once, with one value of the type it states.

    `parameters` are the attributes of the function around it, to which a value may refer. Raises
    InputError GT1018 for a faulty attribute, GT1004 and GT1005 for a faulty tensor in it.
    """
    seen = set()
    for a in attributes:
        if not a.name or a.name in seen:
            raise InputError("GT1018", f"the attribute {a.name!r} is given twice" if a.name else
                             "an attribute has no name", where=where)
        seen.add(a.name)
        if a.ref_attr_name:
            if a.ref_attr_name not in parameters:
                raise InputError("GT1018", f"the attribute {a.name!r} refers to "
                                           f"{a.ref_attr_name!r}, which no function around it has",
                                 where=where)
            continue
        _check_value(a, where)


def _check_value(a: Any, where: str) -> None:
    filled = {_FIELDS[field.name] for field, _ in a.ListFields() if field.name in _FIELDS}
    if a.type not in _FIELDS.values() or filled - {a.type}:
        stated = _KINDS.Name(a.type) if a.type in _KINDS.values() else str(a.type)
        held = ", ".join(_KINDS.Name(k) for k in sorted(filled)) or "nothing"
        raise InputError("GT1018", f"the attribute {a.name!r} states the type {stated} and holds "
                                   f"{held}", where=where)
    place = f"attribute {a.name}\n{where}"
    for text in (a.s, *a.strings):
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError("GT1001", f"the text {text[:40]!r} is not UTF-8", where=place) \
                from error
    for t in ((a.t,) if a.type == a.TENSOR else a.tensors):
        check_tensor(t, place)
    for t in ((a.sparse_tensor,) if a.type == a.SPARSE_TENSOR else a.sparse_tensors):
        check_sparse(t, place)


def check_against(node: Any, operator: Operator, where: str, strictness: Strictness) -> None:
    """Check the node's attributes against the schema: known, of the right type, none missing.

    Raises InputError GT1018, where `strictness` does not take it.
    """
    for a in node.attribute:
        wanted = operator.attributes.get(a.name)
        if wanted is None:
            if a.name.startswith("__"):  # by convention a note of the tool that wrote the file
                continue
            strictness.guessed(InputError(
                "GT1018", f"{node.op_type} has no attribute {a.name!r} in opset {operator.since}",
                where=where, hint=near(a.name, operator.attributes,
                                       f"it has {listed(sorted(operator.attributes), 20)}")),
                "it counts as in newer opsets, or for nothing")
            continue
        if a.type != wanted:
            raise InputError("GT1018", f"{node.op_type}.{a.name} must be {_KINDS.Name(wanted)}, "
                                       f"got {_KINDS.Name(a.type)}", where=where)
        check_choice(node.op_type, a, where)
    given = {a.name for a in node.attribute} if operator.needed else set()
    missing = [name for name in operator.needed if name not in given]
    if missing:
        raise InputError("GT1018", f"{node.op_type} needs the attribute {missing[0]!r}",
                         where=where)
