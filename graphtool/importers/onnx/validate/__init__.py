"""Checks a ModelProto against the ONNX specification, before any of it is imported.

The facts about operators come from the schemas of the `onnx` package; no runtime is asked. What
depends on the types of values is checked while the nodes are run (`driver.operand_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphtool.errors import InputError
from graphtool.importers.limits import Strictness
from graphtool.importers.onnx.driver import functions
from graphtool.importers.onnx.driver.node_order import graph_title, subgraphs
from graphtool.importers.onnx.driver.schemas import plain_domain
from graphtool.importers.onnx.validate.scopes import (
    CheckRules,
    Used,
    check_function,
    check_graph,
    check_ir_version,
    opsets,
)

__all__ = ["check_model"]


def check_model(model: Any, strictness: Strictness) -> dict[str, int]:
    """The model's opset versions by domain, after every part of the model has been checked.

    Raises InputError GT10xx for the first violation that `strictness` does not take, with its
    place.
    """
    where = graph_title(model.graph)
    check_ir_version(model, where, strictness)
    used = set(_operators(model.graph.node))
    versions = opsets(model.opset_import, used, where, strictness)
    local = functions.table(model)
    for f in model.functions:
        declared = opsets(f.opset_import, set(_operators(f.node)), f"function {f.name}",
                          strictness) if f.opset_import else versions
        check_function(f, CheckRules(declared, local, strictness, function=f.name))
    if not model.graph.output:
        raise InputError("GT1002", "the graph has no outputs", where=where)
    check_graph(model.graph, CheckRules(versions, local, strictness), where)
    return versions


def _operators(nodes: Iterable[Any]) -> Iterator[Used]:
    for n in nodes:
        yield plain_domain(n.domain), n.op_type
        for g in subgraphs(n):
            yield from _operators(g.node)
