"""Imports one torch model in every way: by torch.fx, torch.export, and torch's export to ONNX."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from graphtool.errors import GraphtoolError, UnsupportedError
from graphtool.importers.onnx import import_onnx
from graphtool.importers.python_source import root_of
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.capture import quiet
from graphtool.importers.torch.driver.fxtrace import traced
from graphtool.importers.torch.driver.live import array, target_name
from graphtool.importers.torch.driver.source import Loaded, load
from graphtool.importers.torch.driver.user_lines import failure
from graphtool.io.weights import Array
from graphtool.ir.graph import Module

WAYS = ("fx", "export", "onnx")


class Captured(NamedTuple):
    """What a capture gave: our graph of it, or the error, and the counts of its own ops, under the
    names that the capture has for them, before they became ours."""

    graph: Module | GraphtoolError
    own: dict[str, int]


def captures(source: str, specs: Sequence[str] = ()) -> tuple[dict[str, Captured], list[Array]]:
    """({way: what it gave}, sample inputs).

    Raises the errors of `load` for a source that cannot be loaded.
    """
    made = load(source, specs)
    rest: dict[str, Any] = {"names": made.names, "kwargs": made.kwargs}
    own: dict[str, dict[str, int]] = {way: {} for way in WAYS}
    takes: dict[str, Callable[[], Module]] = {
        "fx": lambda: import_torch(made.model, made.args, capture="fx", **rest),
        "export": lambda: import_torch(made.model, made.args, **rest),
        "onnx": lambda: _by_onnx(made, own["onnx"])}
    arrays = [array(x) for x in pytree.tree_leaves((made.args, made.kwargs))
              if isinstance(x, torch.Tensor)]
    graphs = {way: _tried(takes[way]) for way in WAYS}
    for way, count in (("fx", _fx_ops), ("export", _export_ops)):
        if isinstance(graphs[way], Module):
            own[way] = count(made)
    return {way: Captured(graphs[way], own[way]) for way in WAYS}, arrays


def _fx_ops(made: Loaded) -> dict[str, int]:
    """The calls of torch.fx's own trace: functions, methods, and modules by their class."""
    model: Any = made.model
    with quiet():
        graph = traced(model, len(made.args), root_of(torch.__file__)).traced_nodes
    return _counted(type(model.get_submodule(str(n.target))).__name__ if n.op == "call_module"
                    else _short(n.target) for n in graph if n.op.startswith("call_"))


def _export_ops(made: Loaded) -> dict[str, int]:
    """The calls of torch.export before any is decomposed."""
    with quiet():
        program = made.model if isinstance(made.model, ExportedProgram) else torch.export.export(
            made.model, made.args, made.kwargs, strict=False)
    return _counted(_short(n.target) for n in program.graph.nodes if n.op == "call_function")


def _short(target: Any) -> str:
    """`aten.linear.default` as `aten.linear`; a function by its name, a method with a point."""
    if isinstance(target, str):
        return f".{target}"
    name = target_name(target) if isinstance(target, torch._ops.OpOverload) else ""
    return name.rpartition(".")[0] or str(getattr(target, "__name__", target))


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _tried(take: Callable[[], Module]) -> Module | GraphtoolError:
    try:
        return take()
    except GraphtoolError as error:
        return error


def _by_onnx(made: Loaded, own: dict[str, int]) -> Module:
    with tempfile.TemporaryDirectory(prefix="graphtool-captures-") as folder:
        path = Path(folder) / "model.onnx"
        try:
            with quiet(), torch.no_grad():
                program = torch.onnx.export(made.model, made.args, str(path), kwargs=made.kwargs,
                                            dynamo=True, verbose=False)
            own |= _counted(n.op_type for n in program.model.graph)
        except ImportError as error:
            raise UnsupportedError("GT1121", f"torch cannot write ONNX: {error}",
                                   hint="pip install onnxscript") from error
        except Exception as error:  # whatever the user's model raises is reported with its line
            raise failure(error, "torch.onnx", root_of(torch.__file__)) from error
        return import_onnx(path)
