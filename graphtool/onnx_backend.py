"""ONNX's own backend interface over the evaluator and over compiled C."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

import graphtool.ops  # noqa: F401  (fills the registry)
from graphtool import interp, passes, runtime
from graphtool.build import build
from graphtool.errors import UsageError
from graphtool.importers.onnx import import_model
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names
from graphtool.target import detect

Array = np.ndarray[Any, Any]
Run = Callable[[dict[str, Array]], dict[str, Array]]


class GraphtoolRep(BackendRep):  # type: ignore[misc]
    """A prepared model. Outputs come as a tuple in the model's order."""

    def __init__(self, inputs: Sequence[str], run: Run, folder: Path | None = None) -> None:
        """`folder` holds the compiled code and goes with the object."""
        self.inputs, self.call = tuple(inputs), run
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def run(self, inputs: Any, **_: Any) -> tuple[Array, ...]:
        """`inputs` are arrays in the model's order, or a mapping by name."""
        given = dict(inputs) if isinstance(inputs, dict) else dict(
            zip(self.inputs, map(np.asarray, inputs), strict=True))
        return tuple(self.call(given).values())


class GraphtoolBackend(Backend):  # type: ignore[misc]
    """`prepare(model, device, mode="eval" | "c")`."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", mode: str = "eval",
                **_: Any) -> GraphtoolRep:
        """Import the model, and compile it with mode="c". Raises UsageError GT3061, GT3062."""
        if not cls.supports_device(device):
            raise UsageError("GT3061", f"there is no device {device!r}", hint="CPU")
        module = import_model(model)
        match mode:
            case "eval":
                return _evaluated(module)
            case "c":
                return _compiled(module)
            case _:
                raise UsageError("GT3062", f"unknown mode {mode!r}", hint="eval or c")

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


def _evaluated(module: Module) -> GraphtoolRep:
    names = value_names(module.graph)
    return GraphtoolRep([names[v] for v in module.graph.inputs],
                        lambda xs: interp.run(module, xs))


def _compiled(module: Module) -> GraphtoolRep:
    folder = Path(tempfile.mkdtemp(prefix="graphtool-onnx-"))
    target = detect()
    optimised = passes.run(module, supply={"target": target})
    model = runtime.load(build(optimised, folder / "build", target=target))
    return GraphtoolRep([p.name for p in model.inputs], lambda xs: dict(model.run(xs)), folder)


prepare = GraphtoolBackend.prepare
run_model = GraphtoolBackend.run_model
run_node = GraphtoolBackend.run_node
supports_device = GraphtoolBackend.supports_device
