"""Function expansion: model-local functions, and the function bodies of operators that onnx defines
by others.

A function is expanded at its call; the names inside it are prefixed by the call's output name.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from graphtool.errors import InputError
from graphtool.front import REFUSED, Refused
from graphtool.importers.limits import Limits
from graphtool.importers.onnx.driver import reader
from graphtool.importers.onnx.driver.context import Frame, Session
from graphtool.importers.onnx.driver.node_order import reads, subgraphs, title
from graphtool.importers.onnx.driver.registry import HANDLERS, find
from graphtool.importers.onnx.driver.schemas import schema, version_of

Key = tuple[str, str, str]
_DEPTH = 32


def table(model: Any) -> dict[Key, Any]:
    """The model's own functions by (domain, name, overload).

    Raises InputError GT1012 for a function that is defined twice.
    """
    out: dict[Key, Any] = {}
    for f in model.functions:
        key = (f.domain, f.name, getattr(f, "overload", ""))
        if key in out:
            raise InputError("GT1012", f"the function {f.name!r} is defined twice",
                             where=f"function {f.name}")
        out[key] = f
    return out


def full_name(node: Any) -> str:
    """The operator's name, with its domain in front unless that is `ai.onnx`."""
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def all_reads(node: Any) -> list[str]:
    """The names that a node reads, in its subgraphs too."""
    return reads(node)


def expanded(model: Any) -> int:
    """How many nodes the model has once its functions are expanded: of an If the larger branch, of
    a loop one iteration. Each function is counted once, so that this takes no time.

    Raises InputError GT1013 for functions nested too deep.
    """
    return _expanded(model.graph.node, table(model), {}, 0)


def _expanded(nodes: Sequence[Any], local: Mapping[Key, Any], known: dict[Key, int],
              depth: int) -> int:
    total = len(nodes)
    for n in nodes:
        key = (n.domain, n.op_type, getattr(n, "overload", ""))
        if key in local and key not in known:  # a function that calls itself is never known
            _check_depth(depth, local[key], n)
            known[key] = _expanded(local[key].node, local, known, depth + 1)
        inner = [_expanded(g.node, local, known, depth) for g in subgraphs(n)]
        total += known.get(key, 0) + (max(inner, default=0) if n.op_type == "If" else sum(inner))
    return total


def _check_depth(depth: int, body: Any, node: Any) -> None:
    if depth >= _DEPTH:
        raise InputError("GT1013", f"the function {body.name!r} calls itself, or functions are "
                                   f"nested more than {_DEPTH} deep", where=title(node))


# ---- what nothing implements -------------------------------------------------------------------

def missing(model: Any, opsets: Mapping[str, int]) -> Iterator[tuple[str, str, str]]:
    """Yields (name, reason, place) of each node, nested ones included, without handler and body."""
    local = table(model)
    yield from _missing(model.graph.node, opsets, local, set())


def _missing(nodes: Sequence[Any], opsets: Mapping[str, int], local: Mapping[Key, Any],
             seen: set[Key]) -> Iterator[tuple[str, str, str]]:
    for n in nodes:
        key = (n.domain, n.op_type, getattr(n, "overload", ""))
        domain = "" if n.domain == "ai.onnx" else n.domain
        version = version_of(n, opsets) if domain or domain in opsets else 0
        if key in local:
            if key not in seen:
                seen.add(key)
                inner = {"" if r.domain == "ai.onnx" else r.domain: r.version
                         for r in local[key].opset_import}
                yield from _missing(local[key].node, inner or opsets, local, seen)
        elif version < 1:
            raise InputError("GT1003", "the model does not say which version of ai.onnx it uses",
                             where=title(n), hint="add opset_import for the empty domain")
        elif lacks(n, domain, version):
            yield full_name(n), _why(domain, n.op_type, version), title(n)
        for g in subgraphs(n):
            yield from _missing(g.node, opsets, local, seen)


def lacks(node: Any, domain: str, version: int) -> bool:
    """Whether the node's operator has neither a handler nor a function body."""
    return find(domain, node.op_type, version) is None and not _has_body(node, domain, version)


def _has_body(node: Any, domain: str, version: int) -> bool:
    s = schema(domain, node.op_type, version)
    return s is not None and (s.has_function or s.has_context_dependent_function)


_LAYOUTS = dict.fromkeys(
    ("com.microsoft.nchwc", "com.ms.internal.nhwc"),
    "in a memory layout of the machine that onnxruntime wrote the model on: save it with "
    "ORT_ENABLE_EXTENDED, or import the model it was made from")


# operators of com.microsoft that are refused, and why
_REASONS: dict[str, str] = {
    **dict.fromkeys(
        ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"),
        "a search over a decoder: import the decoder itself, and run it by `generate`"),
    **dict.fromkeys(
        ("DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention"),
        "a step of a beam search over a cache that is written in place: import the decoder as it "
        "was before the search was fused with it"),
    **dict.fromkeys(
        ("PagedAttention", "SparsePagedAttention"),
        "its cache is in blocks that all sequences share and that it writes in place: export the "
        "model with a cache for each sequence (GroupQueryAttention)"),
    **dict.fromkeys(
        ("SparseAttention", "DynamicSparseAttention", "SparseAttentionIndexer",
         "PackedSparseAttentionIndexer", "PackedSparseAttentionIndexerMerge"),
        "it reads only chosen blocks of keys: export the model with dense attention"),
    **dict.fromkeys(
        ("LongformerAttention", "QOrderedAttention", "QOrderedLongformerAttention"),
        "a kernel of GPUs that onnxruntime's optimizer wrote: import the model it was made from"),
    "DecoderAttention": "computed flags decide what it reads: import the model it was made from",
}


def _why(domain: str, name: str, version: int) -> str:
    if (domain, name) in HANDLERS:
        return f"opset {version} is older than what is supported"
    if schema(domain, name, version) is not None:
        return "not supported yet"
    if domain == "com.microsoft" and name in _REASONS:
        return _REASONS[name]
    if domain in _LAYOUTS:
        return _LAYOUTS[domain]
    newest = onnx.defs.onnx_opset_version()
    return "no such operator" if domain == "" and version <= newest else "an unknown operator"


# ---- expansion ---------------------------------------------------------------------------------

def standard_body(node: Any, inputs: Sequence[Any], opsets: Mapping[str, int]) -> Any:
    """onnx's FunctionProto that defines the node's operator, or None."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    version = version_of(node, opsets)
    s = schema(domain, node.op_type, version)
    if s is None:
        return None
    if s.has_context_dependent_function:
        types = [_type_proto(x).SerializeToString() for x in inputs]
        since = max((v for v in s.context_dependent_function_opset_versions if v <= version),
                    default=None)
        if since is None:
            return None
        text = s.get_context_dependent_function_with_opset_version(
            since, node.SerializeToString(), types)
        body = onnx.FunctionProto()
        body.ParseFromString(text)
        return body
    return s.function_body if s.has_function else None


def _type_proto(x: Any) -> Any:
    if x is None or isinstance(x, tuple):
        return onnx.TypeProto()
    t = x.type
    return helper.make_tensor_type_proto(
        helper.np_dtype_to_tensor_dtype(t.dtype.numpy),
        [d if isinstance(d, int) else str(d) for d in t.shape])


def expand(importer: Session, body: Any, node: Any, inputs: Sequence[Any],
           frame: Frame) -> Sequence[Any]:
    """Run the nodes of a function at its call; returns its outputs.

    Omitted inputs are None, omitted attributes have the schema's defaults. Raises InputError GT1013
    for functions nested too deep, GT1014 for too many inputs.
    """
    _check_depth(frame.depth, body, node)
    if len(inputs) > len(body.input):
        raise InputError("GT1014", f"{body.name} takes {len(body.input)} inputs, {len(inputs)} "
                                   "given", where=title(node))
    attrs = {a.name: reader.attribute(a, importer.base_dir, importer.limits)
             for a in body.attribute_proto}
    attrs |= _schema_defaults(node, frame.opsets) | importer.attributes(node, frame)
    env: ChainMap[str, Any] = ChainMap()
    for i, name in enumerate(body.input):
        env[name] = inputs[i] if i < len(inputs) else None
    opsets = {"" if r.domain == "ai.onnx" else r.domain: r.version for r in body.opset_import}
    label = next((name for name in node.output if name), node.op_type)
    inner = Frame(env, {**frame.opsets, **opsets}, f"{frame.prefix}{label}.", attrs,
                  frame.depth + 1)
    importer.nodes(body.node, inner)
    results = [env.get(name) for name in body.output]
    if any(r is REFUSED for r in results):
        raise Refused("")
    return results


def _schema_defaults(node: Any, opsets: Mapping[str, int]) -> dict[str, Any]:
    """The attribute defaults of a standard operator, to which its body refers."""
    s = schema(node.domain, node.op_type, version_of(node, opsets))
    if s is None:
        return {}
    return {name: reader.attribute(a.default_value, None, Limits())
            for name, a in s.attributes.items() if a.default_value.type}
