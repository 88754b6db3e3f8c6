"""Checks what a model declares: the versions of the file format and of its operators, and the
names of graphs and functions, each defined once and before it is visible."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx
from onnx import helper

from graphtool import dtypes
from graphtool.errors import InputError
from graphtool.importers.limits import Strictness
from graphtool.importers.onnx.driver.functions import Key
from graphtool.importers.onnx.driver.node_order import ordered, subgraphs, title
from graphtool.importers.onnx.driver.schemas import operator, plain_domain
from graphtool.importers.onnx.validate import nodes
from graphtool.importers.onnx.validate.tensors import check_sparse, check_tensor

_DEPTH = 64


@dataclass(frozen=True)
class CheckRules:
    """What holds at one place: opset versions, local functions, the function's own attributes."""

    opsets: Mapping[str, int]
    local: Mapping[Key, Any]
    strictness: Strictness
    function: str = ""
    parameters: Sequence[str] = field(default=())
    depth: int = 0


@dataclass(frozen=True)
class _Around:
    """The names visible from outside: those defined before, and all of them."""

    before: Container[str] = frozenset()
    whole: Container[str] = frozenset()


@dataclass(frozen=True)
class _Scope:
    """The names of one graph and those visible from outside it. Nothing is copied, so a graph
    inside costs no more for the names around it."""

    names: set[str]
    outside: Container[str]

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.outside


def check_graph(graph: Any, rules: CheckRules, where: str, around: _Around | None = None) -> None:
    """Check a graph, its nodes and the graphs inside them.

    Raises InputError GT1010 to GT1018 for names and nodes, GT1004 and GT1005 for tensors.
    """
    main = around is None
    around = around or _Around()
    defined: set[str] = set()
    for v in graph.input:
        _define(v.name, "input", defined, where)
        if main:
            _check_type(v, where)
    held: set[str] = set()
    for t in (*graph.initializer, *graph.sparse_initializer):
        _initializer(t, held, where)
    if main:
        _check_defaults(graph, where)
    defined |= held
    _check_nodes(graph.node, defined, around, rules, where)
    defined_later = defined | {name for n in graph.node for name in n.output if name}
    listed: set[str] = set()
    for name in (v.name for v in graph.output):
        if name not in defined_later and name not in around.whole:
            raise InputError("GT1011", f"no node, input or initializer defines the output "
                                       f"{name!r}", where=where)
        if main and name in listed:
            raise InputError("GT1012", f"the output {name!r} is listed twice", where=where)
        listed.add(name)


def check_function(f: Any, rules: CheckRules) -> None:
    """Check a model-local function: parameters, nodes, outputs. Raises as `check_graph`."""
    where = f"function {f.name}"
    defined: set[str] = set()
    for name in f.input:
        _define(name, "input", defined, where)
    parameters = [*f.attribute, *(a.name for a in f.attribute_proto)]
    nodes.check_attributes(f.attribute_proto, where, ())
    inner = replace(rules, parameters=parameters)
    _check_nodes(f.node, defined, _Around(), inner, where)
    defined_later = defined | {name for n in f.node for name in n.output if name}
    for name in f.output:
        if name not in defined_later:
            raise InputError("GT1011", f"no node, input or initializer defines the output "
                                       f"{name!r}", where=where)


def _define(name: str, what: str, defined: set[str], where: str) -> None:
    if not name or name in defined:
        raise InputError("GT1012", f"the {what} {name!r} is defined twice" if name else
                         f"an {what} has no name", where=where)
    defined.add(name)


def _initializer(t: Any, defined: set[str], where: str) -> None:
    sparse = hasattr(t, "values")
    _define(t.values.name if sparse else t.name, "initializer", defined, where)
    (check_sparse if sparse else check_tensor)(t, where)


def _check_type(info: Any, where: str) -> None:
    """Check that an input has a type, of known elements."""
    if info.type.WhichOneof("value") is None:
        raise InputError("GT1012", f"the input {info.name!r} has no type", where=where)
    if info.type.WhichOneof("value") == "tensor_type":
        number = info.type.tensor_type.elem_type
        if number not in dtypes.BY_ONNX and number not in (14, 15):  # complex: refused later
            raise InputError("GT1004", f"the input {info.name!r} has the unknown element type "
                                       f"{number}", where=where)


def _check_defaults(graph: Any, where: str) -> None:
    """Check that an initializer has the type and shape of the input whose default it is."""
    types = {v.name: v.type.tensor_type for v in graph.input
             if v.type.WhichOneof("value") == "tensor_type"}
    for t in graph.initializer:
        if t.name not in types:
            continue
        if types[t.name].elem_type != t.data_type:
            raise InputError("GT1019", f"the initializer {t.name!r} has another element type than "
                                       "the input of its name", where=where)
        dims = types[t.name].shape.dim if types[t.name].HasField("shape") else None
        if dims is not None and (len(dims) != len(t.dims) or any(
                d.dim_value > 0 and d.dim_value != n for d, n in zip(dims, t.dims, strict=True))):
            raise InputError("GT1019", f"the initializer {t.name!r} has another shape than the "
                                       "input of its name", where=where)


def _check_nodes(rows: Sequence[Any], defined: set[str], around: _Around, rules: CheckRules,
                 where: str) -> None:
    ordered(rows, _Scope(defined, around.whole))
    whole = _Scope(defined | {name for n in rows for name in n.output if name}, around.whole)
    before = _Scope(set(defined), around.before)
    for n in rows:
        place = f"{title(n)}\n{rules.function and f'function {rules.function}'}".rstrip()
        for name in n.output:
            if name and name in before:
                raise InputError("GT1012", f"the value {name!r} is defined twice", where=place)
        _check_node(n, rules, place)
        for label, g in _labelled(n) if len(n.attribute) else ():
            if rules.depth >= _DEPTH:
                raise InputError("GT1013", f"graphs are nested more than {_DEPTH} deep",
                                 where=place)
            inner = replace(rules, depth=rules.depth + 1)
            check_graph(g, inner, f"{label} of {place}", _Around(before, whole))
        before.names.update(name for name in n.output if name)


def _labelled(node: Any) -> Iterator[tuple[str, Any]]:
    graphs = subgraphs(node)
    labels = [a.name for a in node.attribute for _ in ([a.g] if a.type == a.GRAPH else a.graphs)]
    return zip(labels, graphs, strict=True)


def _check_node(n: Any, rules: CheckRules, where: str) -> None:
    nodes.check_attributes(n.attribute, where, rules.parameters)
    key = (n.domain, n.op_type, getattr(n, "overload", ""))
    if not n.op_type:
        raise InputError("GT1017", "a node has no operator", where=where)
    if key in rules.local:
        f = rules.local[key]
        if plain_domain(n.domain) not in rules.opsets:
            raise InputError("GT1003", "the model does not say which version of "
                                       f"{n.domain or 'ai.onnx'} it uses", where=where,
                             hint=f"add opset_import for {n.domain or 'ai.onnx'}")
        if len(n.input) > len(f.input):
            raise InputError("GT1014", f"{f.name} takes {len(f.input)} inputs, {len(n.input)} "
                                       "given", where=where)
        if len(n.output) > len(f.output):
            raise InputError("GT1016", f"{f.name} has {len(f.output)} outputs, the node names "
                                       f"{len(n.output)}", where=where)
        return
    operator = nodes.operator_of(n, rules.opsets.get(plain_domain(n.domain)), where,
                                 rules.strictness)
    if operator is not None:
        nodes.check_arity(n, operator, where)
        nodes.check_against(n, operator, where, rules.strictness)
        nodes.check_regions(n, where)


# ---- versions -----------------------------------------------------------------------------------

Used = tuple[str, str]  # the domain and the name of an operator

_NEWEST = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": helper.VERSION_TABLE[-1][3]}


def check_ir_version(model: Any, where: str, strictness: Strictness) -> None:
    """Check the version of the file format. Raises InputError GT1003 for an unknown one, where
    `strictness` does not take it."""
    if not 1 <= model.ir_version <= onnx.IR_VERSION:
        given = model.ir_version if model.HasField("ir_version") else "none"
        strictness.guessed(InputError(
            "GT1003", f"the model's ir_version is {given}, known are 1 to {onnx.IR_VERSION}",
            where=where, hint="export the model again, or install a newer `onnx`"),
            f"read as {onnx.IR_VERSION}")


def opsets(rows: Iterable[Any], used: Collection[Used], where: str,
           strictness: Strictness) -> dict[str, int]:
    """The opset version of each domain that the operators in `used` need.

    Raises InputError GT1003 if there is none, and, where `strictness` does not take it, for a
    domain with two versions and for a version that does not exist.
    """
    table: dict[str, int] = {}
    for row in rows:
        domain, shown = plain_domain(row.domain), row.domain or "ai.onnx"
        if table.get(domain, row.version) != row.version:
            error = InputError("GT1003", f"{shown} has two opset versions, {table[domain]} and "
                                         f"{row.version}", where=where)
            if all(operator(*use, table[domain]) == operator(*use, row.version)
                   for use in used if use[0] == domain):
                strictness.clear(error, "no operator of the model differs between them")
            else:
                strictness.guessed(error, "the last one counts")
        newest = _NEWEST.get(domain, row.version)
        unknown = InputError(
            "GT1003", f"the model uses opset {row.version} of {shown}, known are 1 to "
                      f"{_NEWEST.get(domain, 'any')}", where=where,
            hint="a newer `onnx` package may know it" if row.version > 0 else "")
        if row.version < 1:
            raise unknown
        if row.version > newest:
            strictness.guessed(unknown, f"read as opset {newest}")
        table[domain] = min(row.version, newest)
    if not table:
        raise InputError("GT1003", "the model does not say which opset it uses", where=where,
                         hint="add opset_import to the model; the meaning of operators needs it")
    return table
