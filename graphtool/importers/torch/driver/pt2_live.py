"""Decomposes the graph of a `.pt2` archive by torch, which also removes in-place writes: for
programs that were saved without decomposition.

Every text that torch would evaluate is checked first. Weights come from pt2.py; the structures of
inputs and outputs are replaced by flat tuples; sample inputs and guards are not read.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch._export.serde import schema, serialize
from torch.export import ExportedProgram

from graphtool.importers.torch.driver.capture import decomposed, quiet, renamed
from graphtool.importers.torch.driver.captured import CapturedProgram, ComplexType
from graphtool.importers.torch.driver.exported import read as read_exported
from graphtool.importers.torch.driver.exprs import conditions
from graphtool.importers.torch.driver.live import tensor
from graphtool.importers.torch.driver.patches import fakes
from graphtool.importers.torch.driver.provenance import clean_path
from graphtool.io.weights import Weight

_TARGET = re.compile(
    r"torch\.ops\.(?!load)[a-z]\w*\.[A-Za-z_]\w*(\.[A-Za-z]\w*)?|torch\.sym_[a-z]\w*|"
    r"math\.(ceil|floor|trunc|sqrt|pow)|_operator\.(add|sub|mul|truediv|floordiv|mod|neg|pos|pow|"
    r"abs|eq|ne|lt|le|gt|ge|and_|or_|xor|not_|lshift|rshift|getitem)")
_CALLS = frozenset(re.findall(
    r"\w+",
    "Add Mul Pow Mod Abs Max Min Integer Float Rational Symbol Eq Ne Equality Unequality Ge Gt Le "
    "Lt GreaterThan StrictGreaterThan LessThan StrictLessThan And Or Not Piecewise Identity Where "
    "FloorDiv ModularIndexing PythonMod CleanDiv CeilToInt FloorToInt CeilDiv LShift RShift "
    "PowByNatural FloatPow FloatTrueDiv IntTrueDiv TruncToFloat TruncToInt RoundToInt RoundDecimal "
    "ToFloat"))
_PARTS = (ast.Expression, ast.Call, ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp, ast.Compare,
          ast.BoolOp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop, ast.Load, ast.keyword)
_TARGETS = (torch._ops.OpOverload, torch._ops.HigherOrderOperator, BuiltinFunctionType,
            FunctionType)  # the last for torch.sym_max and its like
_LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def functional(raw: Mapping[str, Any], weights: Mapping[str, Mapping[str, Weight]],
               plain: CapturedProgram) -> CapturedProgram | None:
    """The program after torch's decompositions, under the names of the `plain` reading.

    `weights` are those of the folders `weights` and `constants`. None if the archive has a text
    that torch must not evaluate, or if torch cannot read it.
    """
    if not all(map(_harmless, _strings(raw["graph_module"]))):
        return None
    try:
        with quiet(), fakes():
            exported = decomposed(_loaded(raw, weights, plain))
    except Exception:  # of torch's reader, on archives that it did not write: the plain one's
        return None    # refusal stands
    program = renamed(read_exported(exported, {}, {}, plain.meta, {}),
                      [s.key for s in plain.sources if s.kind == "user"])
    names = iter([s.key for s in plain.sinks if s.kind == "user"])
    return replace(program, sinks=tuple(
        replace(s, key=next(names, s.key)) if s.kind == "user" else s for s in program.sinks),
        conditions=conditions(raw.get("guards_code") or (), program))


def _loaded(raw: Mapping[str, Any], weights: Mapping[str, Mapping[str, Weight]],
            plain: CapturedProgram) -> ExportedProgram:
    shared: dict[Any, torch.Tensor] = {}  # tied weights stay tied
    kinds: dict[str, str] = {}
    for spec in raw["graph_module"]["signature"]["input_specs"]:
        (kind, body), = spec.items()
        if key := body.get(f"{kind}_name"):
            split = isinstance(plain.types.get(body["arg"]["name"]), ComplexType)
            kinds[key] = "complex" if split else kind
    trained = {s.key for s in plain.sources if s.trained and s.data is not None
               and s.data.dtype.is_float}
    state, constants = ({key: _tensor(w, kinds.get(key, ""), clean_path(key) in trained, shared)
                         for key, w in weights[folder].items()}
                        for folder in ("weights", "constants"))
    text = json.dumps({**raw, "graph_module": _flat(raw["graph_module"]), "guards_code": []})
    program = serialize._bytes_to_dataclass(schema.ExportedProgram, text.encode())
    loaded: ExportedProgram = serialize.ExportedProgramDeserializer().deserialize(
        program, state, constants, None)
    for node in loaded.graph.nodes:
        if node.op == "call_function" and not isinstance(node.target, _TARGETS):
            raise TypeError(f"{node.target} is no operator")
    return loaded


def _tensor(w: Weight, kind: str, trained: bool, shared: dict[Any, torch.Tensor]) -> torch.Tensor:
    at = w.source.ctypes.data, w.dtype.name, w.shape
    if at not in shared:
        data = tensor(w.source)
        shared[at] = torch.view_as_complex(data) if kind == "complex" else (
            torch.nn.Parameter(data, requires_grad=trained) if kind == "parameter" else data)
    return shared[at]


def _flat(module: Mapping[str, Any]) -> dict[str, Any]:
    """The module whose inputs and outputs are plain tuples: torch would look up other types, and
    import what they name."""
    signature = module["signature"]
    inputs = sum(1 for s in signature["input_specs"] if {"user_input", "constant_input"} & set(s))
    outputs = sum(1 for s in signature["output_specs"] if {"user_output", "loss_output"} & set(s))
    root = next(e for e in module["module_call_graph"] if e["fqn"] == "")
    given = _node("tuple", [_node("tuple", [_LEAF] * inputs), _node("dict", [], "[]")])
    flat = {**(root.get("signature") or {}), "in_spec": json.dumps([1, given]),
            "out_spec": json.dumps([1, _node("tuple", [_LEAF] * outputs)]),
            "forward_arg_names": None}
    graph = module["graph"]  # torch's reader wants a result of every call, its writer does not
    nodes = [n for n in graph["nodes"] if n["outputs"] or not n["target"].endswith(
        "wrap_with_set_grad_enabled")]
    return {**module, "graph": {**graph, "nodes": nodes}, "treespec_namedtuple_fields": {},
            "module_call_graph": [{**root, "signature": flat}]}


def _node(kind: str, children: list[Any], context: str = "null") -> dict[str, Any]:
    return {"type": f"builtins.{kind}", "context": context, "children_spec": children}


# ---- what torch would evaluate -----------------------------------------------------------------

def _strings(x: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text in the program that torch gives a meaning, with the name of its field."""
    if isinstance(x, dict):
        for k, v in x.items():
            yield from _strings(v, k)
    elif isinstance(x, list):
        for i in x:
            yield from _strings(i, key)
    elif isinstance(x, str) and key in ("expr_str", "target", "as_operator"):
        yield key, x


def _harmless(entry: tuple[str, str]) -> bool:
    key, text = entry
    return _is_size(text) if key == "expr_str" else bool(_TARGET.fullmatch(text))


def _is_size(text: str) -> bool:
    """Whether sympy, which evaluates it, would do no more than arithmetic on symbols."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                if name not in _CALLS:
                    return False
            case ast.Constant(value=str() as word):
                if not re.fullmatch(r"[a-z]{1,4}\d+", word):
                    return False
            case ast.Name(id=name):
                if name not in _CALLS and not re.fullmatch(r"[a-z]{1,4}\d+", name):
                    return False
            case _ if not isinstance(node, _PARTS):
                return False
    return True
