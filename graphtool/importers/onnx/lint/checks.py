"""The checks that a rule of a profile can name. Each yields what violates it, in a model's scopes.

A check reads nothing but what the file states: no types are inferred and no sizes computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from onnx import TensorProto, numpy_helper

from graphtool.errors import InputError
from graphtool.importers.limits import Strictness
from graphtool.importers.onnx.driver.functions import full_name
from graphtool.importers.onnx.driver.node_order import graph_title, reads, subgraphs, title
from graphtool.importers.onnx.driver.schemas import plain_domain, schema
from graphtool.importers.onnx.lint.profile import Rule
from graphtool.importers.onnx.validate import check_model


@dataclass(frozen=True)
class Violation:
    """What violates a rule: the name of a node or value, why, and the graph or function that it is
    in if that is not the model's own graph."""

    name: str
    message: str
    at: str = ""


@dataclass(frozen=True)
class Scope:
    """The nodes of one graph or function of a model.

    `inputs` and `outputs` are names; `types` has the stated type of each value, those of the scopes
    around included; `typed` is False for a function, whose values get their types where it is
    called. `versions` are opsets by domain.
    """

    title: str
    nodes: tuple[Any, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    types: Mapping[str, Any]
    constants: Mapping[str, Any]
    sparse: tuple[str, ...]
    versions: Mapping[str, int]
    typed: bool = True

    def violation(self, name: str, message: str) -> Violation:
        """A violation in this scope."""
        return Violation(name, message, self.title)

    def values(self) -> Iterator[str]:
        """The names of all values that this scope defines, initializers excepted."""
        given = (n for n in self.inputs if n not in self.constants)
        return chain(given, (name for n in self.nodes for name in n.output if name))

    def element_type(self, name: str) -> int:
        """The stated element type of a value; 0 where none is stated."""
        if name in self.constants:
            return int(self.constants[name].data_type)
        stated = self.types.get(name)
        return int(stated.tensor_type.elem_type) if stated is not None else 0


@dataclass(frozen=True)
class Subject:
    """A model to be checked, and its scopes."""

    model: Any
    scopes: tuple[Scope, ...]


Check = Callable[[Subject, Rule], Iterator[Violation]]
Violations = Iterator[Violation]


# ---- scopes -------------------------------------------------------------------------------------

def subject(model: Any) -> Subject:
    """The scopes of a model: its graph, the graphs in its nodes, its functions."""
    versions = _versions(model.opset_import)
    scopes = list(_scopes(model.graph, "", {}, {}, versions))
    for f in model.functions:
        own = _versions(f.opset_import) if f.opset_import else versions
        where = f"function {f.name}"
        scopes.append(Scope(where, tuple(f.node), tuple(f.input), tuple(f.output), {}, {}, (), own,
                            typed=False))
        for inner in _inner(f.node):
            scopes += _scopes(inner, f"{graph_title(inner)} of {where}", {}, {}, own)
    return Subject(model, tuple(scopes))


def _versions(imports: Iterable[Any]) -> dict[str, int]:
    return {plain_domain(row.domain): row.version for row in imports}


def _inner(nodes: Iterable[Any]) -> Iterator[Any]:
    return (g for n in nodes for g in subgraphs(n))


def _scopes(graph: Any, where: str, types: Mapping[str, Any], constants: Mapping[str, Any],
            versions: Mapping[str, int]) -> Iterator[Scope]:
    infos = chain(graph.input, graph.value_info, graph.output)
    types = {**types, **{v.name: v.type for v in infos if v.HasField("type")}}
    constants = {**constants, **{t.name: t for t in graph.initializer}}
    yield Scope(where, tuple(graph.node), tuple(v.name for v in graph.input),
                tuple(v.name for v in graph.output), types, constants,
                tuple(t.values.name for t in graph.sparse_initializer), versions)
    for inner in _inner(graph.node):
        yield from _scopes(inner, graph_title(inner), types, constants, versions)


# ---- the file -----------------------------------------------------------------------------------

def valid(s: Subject, rule: Rule) -> Violations:
    """The model is valid ONNX; the first violation is told."""
    try:
        check_model(s.model, Strictness(strict=True))
    except InputError as error:
        name, *around = error.where.splitlines() or [graph_title(s.model.graph)]
        yield Violation(name, error.message, ", ".join(around))


def versions_stated(s: Subject, rule: Rule) -> Violations:
    """Each domain of operators that is used has exactly one version."""
    for row in [s.model, *s.model.functions]:
        domains = [plain_domain(r.domain) for r in row.opset_import]
        for domain in dict.fromkeys(d for d in domains if domains.count(d) > 1):
            yield Violation(domain or "ai.onnx", "two versions of this domain are stated",
                            f"function {row.name}" if row is not s.model else "")
    for scope in s.scopes:
        for n in scope.nodes:
            if plain_domain(n.domain) not in scope.versions:
                yield scope.violation(title(n), "no version is stated of the domain "
                                                f"{n.domain or 'ai.onnx'}")


# ---- types --------------------------------------------------------------------------------------

def dense(s: Subject, rule: Rule) -> Violations:
    """No tensor is sparse."""
    for scope in s.scopes:
        for name in scope.sparse:
            yield scope.violation(name, "a sparse initializer")
        for n in scope.nodes:
            for a in n.attribute:
                if a.type in (a.SPARSE_TENSOR, a.SPARSE_TENSORS):
                    yield scope.violation(title(n), f"the attribute {a.name} is a sparse tensor")
        for name in scope.values():
            if scope.types.get(name) and scope.types[name].HasField("sparse_tensor_type"):
                yield scope.violation(name, "a value of a sparse type")


def types_stated(s: Subject, rule: Rule) -> Violations:
    """Each value of a graph states its element type, and a number or a name for each size."""
    for scope in s.scopes:
        for name in scope.values() if scope.typed else ():
            stated = scope.types.get(name)
            fault = "no type is stated" if stated is None else _unstated(stated)
            if fault:
                yield scope.violation(name, fault)


def _unstated(stated: Any) -> str:
    """What a type leaves open, in words; "" if nothing."""
    kind = stated.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        return _unstated(getattr(stated, kind).elem_type)
    if kind == "map_type":
        return _unstated(stated.map_type.value_type)
    if kind is None:
        return "no type is stated"
    tensor = getattr(stated, kind)
    if not tensor.elem_type:
        return "no element type is stated"
    if not tensor.HasField("shape"):
        return "no shape is stated"
    unknown = [i for i, d in enumerate(tensor.shape.dim) if not d.WhichOneof("value")]
    return f"size {unknown[0]} has neither number nor name" if unknown else ""


def sizes_fixed(s: Subject, rule: Rule) -> Violations:
    """Each size that is stated is a number."""
    for scope in s.scopes:
        for name in scope.values():
            stated = scope.types.get(name)
            dims = stated.tensor_type.shape.dim if stated is not None else ()
            names = [d.dim_param for d in dims if d.dim_param]
            if names:
                yield scope.violation(name, f"the size {names[0]} is no number")


def types_agree(s: Subject, rule: Rule) -> Violations:
    """The named inputs and attributes of operators (`Pow.Y`) have the type of the first input, so
    that no operator converts numbers."""
    for scope in s.scopes:
        for n in scope.nodes:
            wanted = [name.partition(".")[2] for name in rule.names
                      if name.startswith(f"{full_name(n)}.")]
            first = scope.element_type(n.input[0]) if wanted and n.input else 0
            for parameter in wanted if first else ():
                other = _type_of(scope, n, parameter)
                if other not in (0, first):
                    yield scope.violation(title(n), f"{parameter} is {_named(other)}, the first "
                                                    f"input is {_named(first)}")


def _type_of(scope: Scope, node: Any, parameter: str) -> int:
    """The element type of an input, or the one that an attribute names; 0 if it is not stated."""
    known = schema(plain_domain(node.domain), node.op_type,
                   scope.versions.get(plain_domain(node.domain), 0))
    if known is None:
        return 0
    for a in node.attribute:
        if a.name == parameter:
            return int(a.i)
    if parameter in known.attributes:
        return int(known.attributes[parameter].default_value.i)
    formal = [p.name for p in known.inputs]
    at = formal.index(parameter) if parameter in formal else len(node.input)
    return scope.element_type(node.input[at]) if at < len(node.input) else 0


def _named(number: int) -> str:
    try:
        return str(TensorProto.DataType.Name(number).lower())
    except ValueError:
        return f"type {number}"


# ---- operators ----------------------------------------------------------------------------------

def operators_allowed(s: Subject, rule: Rule) -> Violations:
    """Each operator is one of the named ones, or a function of the model."""
    own = {(f.domain, f.name) for f in s.model.functions}
    for scope in s.scopes:
        for n in scope.nodes:
            if full_name(n) not in rule.names and (n.domain, n.op_type) not in own:
                yield scope.violation(title(n), f"{full_name(n)} is not in the list of operators")


def operators_forbidden(s: Subject, rule: Rule) -> Violations:
    """No operator is one of the named ones."""
    for scope in s.scopes:
        for n in scope.nodes:
            if full_name(n) in rule.names:
                yield scope.violation(title(n), f"{full_name(n)} is used")


def inference(s: Subject, rule: Rule) -> Violations:
    """The model has no training part, and no node is in training mode; the named operators are
    those of training."""
    if len(s.model.training_info):
        yield Violation(graph_title(s.model.graph), "the model has a part for training")
    yield from operators_forbidden(s, rule)
    for scope in s.scopes:
        for n in scope.nodes:
            if _trains(n, scope):
                yield scope.violation(title(n), f"{n.op_type} is, or may be, in training mode")


def _trains(node: Any, scope: Scope) -> bool:
    if any(a.name == "training_mode" and a.i for a in node.attribute):
        return True
    if node.op_type != "Dropout" or plain_domain(node.domain) or not any(node.input[2:3]):
        return False
    mode = scope.constants.get(node.input[2])
    return mode is None or bool(numpy_helper.to_array(mode).any())


def attributes_stated(s: Subject, rule: Rule) -> Violations:
    """No attribute with a default is left out: those whose default the operator's schema states,
    and the named ones, whose default only the text of the specification states."""
    for scope in s.scopes:
        for n in scope.nodes:
            domain = plain_domain(n.domain)
            known = schema(domain, n.op_type, scope.versions.get(domain, 0))
            given = {a.name for a in n.attribute}
            missing = [] if known is None else [
                k for k, a in sorted(known.attributes.items()) if k not in given
                and not a.required and (a.default_value.type or k in rule.names)]
            if missing:
                yield scope.violation(title(n), f"left to the default: {', '.join(missing)}")


# ---- the graph ----------------------------------------------------------------------------------

def results_used(s: Subject, rule: Rule) -> Violations:
    """Each output of each node is read by a node, or is an output of its graph."""
    for scope in s.scopes:
        used = {name for n in scope.nodes for name in reads(n)} | set(scope.outputs)
        for n in scope.nodes:
            for name in n.output:
                if name and name not in used:
                    yield scope.violation(title(n), f"nothing reads its output {name}")


def inputs_used(s: Subject, rule: Rule) -> Violations:
    """Each input of the model is read by a node."""
    scope = s.scopes[0]
    used = {name for n in scope.nodes for name in reads(n)}
    for name in scope.inputs:
        if name not in used:
            yield scope.violation(name, "no node reads this input")


CHECKS: dict[str, Check] = {
    "valid": valid, "versions-stated": versions_stated, "dense": dense,
    "types-stated": types_stated, "sizes-fixed": sizes_fixed, "types-agree": types_agree,
    "operators-allowed": operators_allowed, "operators-forbidden": operators_forbidden,
    "inference": inference, "attributes-stated": attributes_stated, "results-used": results_used,
    "inputs-used": inputs_used}
