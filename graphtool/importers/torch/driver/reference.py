"""What an import is compared with: torch's own run of the source on numpy arrays, and the import
of the same model by torch.fx, by torch.export, and by torch's export to ONNX."""

from __future__ import annotations

import copy
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from graphtool.errors import GraphtoolError, InputError, UnsupportedError
from graphtool.importers.onnx import import_onnx
from graphtool.importers.python_source import root_of
from graphtool.importers.torch import import_torch
from graphtool.importers.torch.driver.capture import quiet, unchecked
from graphtool.importers.torch.driver.fxtrace import traced
from graphtool.importers.torch.driver.live import DTYPES, array, target_name
from graphtool.importers.torch.driver.provenance import failure
from graphtool.importers.torch.driver.source import Loaded, load
from graphtool.io.weights import Array
from graphtool.ir.graph import Module

Run = Callable[[Sequence[Array], Mapping[str, Array]], tuple[list[Array], dict[str, Array]]]


def reference(source: str, specs: Sequence[str] = (),
              changed: Mapping[str, int | None] | None = None) -> Run:
    """A function from the inputs' arrays, in order, and old state by torch's name, to the outputs'
    arrays, in order, and the new state of the names in `changed`.

    These are inputs that the model writes to, with their place, and buffers, with None; a buffer
    that is not given has the model's value; a buffer that the model lacks is left out. Each call
    runs a fresh copy of the model. Raises InputError GT1116 where torch fails on the arrays.
    """
    loaded = load(source, specs)
    model = loaded.model if isinstance(loaded.model, nn.Module) else loaded.model.module()
    leaves, tree = pytree.tree_flatten((loaded.args, loaded.kwargs))

    def run(arrays: Sequence[Array], state: Mapping[str, Array]
            ) -> tuple[list[Array], dict[str, Array]]:
        given = iter(arrays)
        filled = [_tensor(next(given), x) if isinstance(x, torch.Tensor) else x for x in leaves]
        inputs = [x for x in filled if isinstance(x, torch.Tensor)]
        copied = copy.deepcopy(model)
        try:
            # stdout is for the verb's result; distributions check nothing in the graph either
            with torch.no_grad(), unchecked(), redirect_stdout(sys.stderr):
                for name, old in state.items():
                    if (x := _attribute(copied, name)) is not None:
                        x.copy_(_tensor(old, x))
                args, kwargs = pytree.tree_unflatten(filled, tree)
                outputs = copied(*args, **kwargs)
        except Exception as error:  # whatever the model's code raises
            raise InputError("GT1116", f"torch fails on these inputs: {error}",
                             where=source) from error
        after = {name: _attribute(copied, name) if at is None else inputs[at]
                 for name, at in (changed or {}).items()}
        return [array(x) if isinstance(x, torch.Tensor) else np.asarray(x)
                for x in pytree.tree_leaves(outputs) if x is not None], {
                    name: array(x) for name, x in after.items() if x is not None}
    return run


def _attribute(model: nn.Module, name: str) -> torch.Tensor | None:
    """The tensor of a name such as `blocks.0.bn.mean`, if the model has one."""
    value: Any = model
    for word in name.split("."):
        value = getattr(value, word, None)
    return value if isinstance(value, torch.Tensor) and value.dtype in DTYPES else None


def _tensor(x: Array, like: torch.Tensor) -> torch.Tensor:
    """The array as a tensor of the sample's type; numpy's bfloat16 and its kin go through bits."""
    data = np.array(x)
    if data.dtype.isbuiltin == 1:
        return torch.from_numpy(data).to(like.dtype)
    return torch.from_numpy(data.astype(np.float32)).to(like.dtype)


# ---- the same model imported in every way -------------------------------------------------------

WAYS = ("fx", "export", "onnx")


class CaptureResult(NamedTuple):
    """What a capture gave: our graph of it, or the error, and the counts of its own ops, under the
    names that the capture has for them, before they became ours."""

    graph: Module | GraphtoolError
    own: dict[str, int]


def captures(source: str, specs: Sequence[str] = ()
             ) -> tuple[dict[str, CaptureResult], list[Array]]:
    """({way: what it gave}, sample inputs).

    Raises the errors of `load` for a source that cannot be loaded.
    """
    loaded = load(source, specs)
    rest: dict[str, Any] = {"names": loaded.names, "kwargs": loaded.kwargs}
    ops: dict[str, dict[str, int]] = {way: {} for way in WAYS}
    takes: dict[str, Callable[[], Module]] = {
        "fx": lambda: import_torch(loaded.model, loaded.args, capture="fx", **rest),
        "export": lambda: import_torch(loaded.model, loaded.args, **rest),
        "onnx": lambda: _by_onnx(loaded, ops["onnx"])}
    arrays = [array(x) for x in pytree.tree_leaves((loaded.args, loaded.kwargs))
              if isinstance(x, torch.Tensor)]
    graphs = {way: _tried(takes[way]) for way in WAYS}
    for way, count in (("fx", _fx_ops), ("export", _export_ops)):
        if isinstance(graphs[way], Module):
            ops[way] = count(loaded)
    return {way: CaptureResult(graphs[way], ops[way]) for way in WAYS}, arrays


def _fx_ops(loaded: Loaded) -> dict[str, int]:
    """The calls of torch.fx's own trace: functions, methods, and modules by their class."""
    model: Any = loaded.model
    with quiet():
        graph = traced(model, len(loaded.args), root_of(torch.__file__)).traced_nodes
    return _counted(type(model.get_submodule(str(n.target))).__name__ if n.op == "call_module"
                    else _short(n.target) for n in graph if n.op.startswith("call_"))


def _export_ops(loaded: Loaded) -> dict[str, int]:
    """The calls of torch.export before any is decomposed."""
    with quiet():
        model = loaded.model
        program = model if isinstance(model, ExportedProgram) else torch.export.export(
            model, loaded.args, loaded.kwargs, strict=False)
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


def _by_onnx(loaded: Loaded, ops: dict[str, int]) -> Module:
    with tempfile.TemporaryDirectory(prefix="graphtool-captures-") as folder:
        path = Path(folder) / "model.onnx"
        try:
            with quiet(), torch.no_grad():
                program = torch.onnx.export(
                    loaded.model, loaded.args, str(path), kwargs=loaded.kwargs,
                    dynamo=True, verbose=False)
            ops |= _counted(n.op_type for n in program.model.graph)
        except ImportError as error:
            raise UnsupportedError("GT1121", f"torch cannot write ONNX: {error}",
                                   hint="pip install onnxscript") from error
        except Exception as error:  # whatever the user's model raises is reported with its line
            raise failure(error, "torch.onnx", root_of(torch.__file__)) from error
        return import_onnx(path)
