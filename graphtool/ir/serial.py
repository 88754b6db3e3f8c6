"""`NAME.graph.json`: the module as canonical JSON, one node a line. Read ∘ write is the identity.

Constants of up to a few elements stand inline, larger ones by sha256 in a safetensors file beside.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from graphtool.errors import InputError, InternalError
from graphtool.io import files, weights
from graphtool.io.weights import Weight
from graphtool.ir.decode import module_of, parse
from graphtool.ir.encode import INLINE, dumps, inline
from graphtool.ir.graph import Graph, Module
from graphtool.ir.records import GraphFile
from graphtool.ir.verify import verify_module

__all__ = ["INLINE", "GraphFile", "collect_all", "collect_weights", "dumps", "load", "loads",
           "save"]


def save(module: Module, path: Path) -> None:
    """Write `path` and, if it has large constants, the `.safetensors` file of the same stem."""
    side = files.beside(path, ".safetensors")
    large = collect_weights(module.graph) + [
        w for w in module.initial.values() if not inline(w)]
    if large:
        with files.atomic(side) as file:
            weights.save(large, file)
    files.write_bytes(path, dumps(module, side.name if large else "").encode())


def collect_weights(graph: Graph) -> list[Weight]:
    """The constants, regions included, that are too large to stand inline."""
    return [w for w in collect_all(graph) if not inline(w)]


def collect_all(graph: Graph) -> list[Weight]:
    """Every constant of the graph and its regions."""
    found = [n.attrs["data"] for n in graph.nodes if n.op.name == "constant"]
    for node in graph.nodes:
        for a in node.attrs.values():
            if isinstance(a, Graph):
                found += collect_all(a)
    return found


def load(path: Path, check: bool = True) -> Module:
    """Read a graph file and map its weights. Raises InputError GT033x to GT035x.

    A file may be anyone's: with `check` its types are inferred anew, and must agree.
    """
    file = parse(files.read_bytes(path), str(path))
    store: Mapping[str, Weight] = {}
    if file.weights:
        if "/" in file.weights or "\\" in file.weights or file.weights in (".", ".."):
            raise InputError("GT0343", f"the weights file {file.weights!r} is not beside the graph",
                             where=str(path))
        store = weights.load(path.with_name(file.weights))
    module = module_of(file, store, str(path))
    return _checked(module, str(path)) if check else module


def loads(data: bytes | str, where: str = "-") -> Module:
    """Read a graph whose constants stand in the text itself, and check it."""
    return _checked(module_of(parse(data, where), {}, where), where)


def _checked(module: Module, where: str) -> Module:
    try:
        verify_module(module)
    except InternalError as error:  # so says the verifier of what a pass made; this came in
        raise InputError("GT0355", error.message, where=f"{where}\n{error.where}") from error
    except InputError as error:
        error.where = f"{where}\n{error.where}"
        raise
    return module
