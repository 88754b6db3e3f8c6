"""The backend interface of the onnx package, for the evaluator and for compiled C."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.dtypes import of_numpy, string
from graphtool.errors import UsageError
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver.inputs import Parts
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.text import value_names
from graphtool.native import runtime
from graphtool.ops.random import state_of
from graphtool.target import detect

Array = np.ndarray[Any, Any]
Run = Callable[[dict[str, Array]], dict[str, Array]]


class GraphtoolRep(BackendRep):  # type: ignore[misc]
    """A prepared model. Outputs are a tuple in the model's order."""

    def __init__(self, inputs: Sequence[str], run: Run, folder: Path | None = None) -> None:
        """`folder` holds the compiled code and is deleted with the object."""
        self.inputs, self.call = tuple(inputs), run
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs as a tuple; `inputs` are arrays in the model's order or a mapping by name."""
        given = dict(inputs) if isinstance(inputs, dict) else dict(
            zip(self.inputs, map(np.asarray, inputs), strict=True))
        return tuple(self.call(given).values())


class PartedRep(BackendRep):  # type: ignore[misc]
    """A model with sequences or optionals as inputs or outputs. It is imported once for each
    combination of part counts and types of its inputs."""

    def __init__(self, model: ModelProto, mode: str) -> None:
        self.model, self.mode = model, mode
        held = {t.name for t in model.graph.initializer}
        self.inputs = tuple(v.name for v in model.graph.input if v.name not in held)
        self.prepared: dict[str, GraphtoolRep] = {}

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs as a tuple; `inputs` are values in the model's order or a mapping by name."""
        given = dict(inputs) if isinstance(inputs, dict) else dict(
            zip(self.inputs, inputs, strict=True))
        kinds = {v.name: v.type.WhichOneof("value") for v in self.model.graph.input}
        made_of = {k: parts_of(x) for k, x in given.items() if kinds[k] != "tensor_type"}
        rep = self.prepared.get(repr(made_of))
        if rep is None:
            module = import_model(self.model, made_of=made_of)
            rep = self.prepared[repr(made_of)] = _prepared(module, self.mode)
        flat = {k: x for name, x in given.items() for k, x in flattened(name, x)}
        outputs = rep.call(flat)
        return tuple(_gathered(v, outputs) for v in self.model.graph.output)


def parts_of(x: Any) -> Parts:
    """The tensor types of the parts of a list, an array or None."""
    if isinstance(x, (list, tuple)):
        return tuple(map(parts_of, x))
    x = None if x is None else np.asarray(x)
    if x is None or (x.ndim == 0 and x.dtype == object and x[()] is None):
        return None
    return TensorType(string if x.dtype == object else of_numpy(x.dtype), x.shape)


def flattened(name: str, x: Any) -> list[tuple[str, Array]]:
    """The arrays of a value under the names that the importer gives them."""
    if isinstance(x, (list, tuple)):
        return [row for i, item in enumerate(x) for row in flattened(f"{name}.{i}", item)]
    return [] if parts_of(x) is None else [(name, np.asarray(x))]


def _gathered(info: Any, values: dict[str, Array]) -> Any:
    """An output of the model from the arrays that it consists of."""
    if info.name in values:
        return values[info.name]
    rows = [x for k, x in values.items() if re.fullmatch(re.escape(info.name) + r"\.\d+", k)]
    optional = info.type.WhichOneof("value") == "optional_type"
    return None if optional and not rows else rows


class GraphtoolBackend(Backend):  # type: ignore[misc]
    """`prepare(model, device, mode="eval" | "c")`."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", mode: str = "eval",
                **_: Any) -> GraphtoolRep | PartedRep:
        """Import the model, and compile it with mode="c". Raises UsageError GT3061, GT3062."""
        if not cls.supports_device(device):
            raise UsageError("GT3061", f"there is no device {device!r}", hint="CPU")
        if mode not in ("eval", "c"):
            raise UsageError("GT3062", f"unknown mode {mode!r}", hint="eval or c")
        kinds = {v.type.WhichOneof("value") for v in (*model.graph.input, *model.graph.output)}
        if kinds - {"tensor_type"}:
            return PartedRep(model, mode)
        return _prepared(import_model(model), mode)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True for "CPU" and "CPU:0"."""
        return device.split(":")[0] == "CPU"


def _prepared(module: Module, mode: str) -> GraphtoolRep:
    return _evaluated(module) if mode == "eval" else _compiled(module)


def random_state(module: Module) -> dict[str, Array]:
    """The initial state of random operators; the onnx interface has no input for it."""
    names = value_names(module.graph)
    return {names[module.graph.inputs[i]]: state_of(0) for _, i in module.donations}


def _evaluated(module: Module) -> GraphtoolRep:
    names, state = value_names(module.graph), random_state(module)
    return GraphtoolRep([n for v in module.graph.inputs if (n := names[v]) not in state],
                        lambda xs: _without(interp.run(module, {**state, **xs}), state))


def _without(results: dict[str, Array], state: dict[str, Array]) -> dict[str, Array]:
    """The model's outputs; outputs that the import added are left out."""
    return {n: x for n, x in results.items() if n not in state}


def _compiled(module: Module) -> GraphtoolRep:
    folder = Path(tempfile.mkdtemp(prefix="graphtool-onnx-"))
    target = detect()
    optimised = passes.run(module, supply={"target": target})
    model = runtime.load(build(optimised, folder / "build", target=target))
    state = random_state(module)
    return GraphtoolRep([p.name for p in model.inputs if p.name not in state],
                        lambda xs: _without(dict(model.run({**state, **xs})), state), folder)


prepare = GraphtoolBackend.prepare
run_model = GraphtoolBackend.run_model
run_node = GraphtoolBackend.run_node
supports_device = GraphtoolBackend.supports_device
