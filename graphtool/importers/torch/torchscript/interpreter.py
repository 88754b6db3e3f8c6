"""Runs the code of scripted modules node by node, so that torch.export sees each call.

Numbers stay Python's or torch's symbolic ones, so open sizes stay open. A branch or a loop that
depends on a tensor's value becomes torch's own op for it (control.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from graphtool.errors import GraphtoolError, Unsupported, UnsupportedError
from graphtool.importers.torch.driver.captured import CallPlace
from graphtool.importers.torch.driver.provenance import describe, failure
from graphtool.importers.torch.torchscript import control, plain
from graphtool.importers.torch.torchscript.control import Env
from graphtool.importers.torch.torchscript.plain import NotSupported
from graphtool.importers.torch.torchscript.supported import place_of, told


class Interpreter:
    """Runs methods and functions of one compilation unit. `places` is filled with the place of
    each call, by the file name that its frame has in torch's stack."""

    def __init__(self, unit: Any, places: dict[str, CallPlace]) -> None:
        self.unit, self.places = unit, places
        self.lifted: Mapping[int, torch.Tensor] = {}  # inside a region: its own copies of weights
        self.callers: tuple[str, ...] = ()  # one frame of a stack for each call around
        self.frames: dict[Any, Callable[..., Any]] = {}

    def method(self, module: Any, name: str, args: Sequence[Any]) -> Any:
        """The result of a method of a module; arguments left out take their defaults."""
        method = module.script._get_method(name)
        given = [a.default_value for a in method.schema.arguments[len(args) + 1:]]
        return self.graph(method.graph, (module, *args, *given), module, name)

    def graph(self, graph: Any, args: Sequence[Any], module: Any, name: str) -> Any:
        """The result of a graph, whose lines are told as those of the method `name`."""
        env = {v.debugName(): x for v, x in zip(graph.inputs(), args, strict=True)}
        results = self.block(graph, env, module, name)
        return results[0] if len(results) == 1 else tuple(results)

    def block(self, block: Any, env: Env, module: Any, name: str) -> list[Any]:
        """The values that a block returns; `env` has those around it, and gets its own."""
        for node in block.nodes():
            results = self._frame(node, module, name)(self._node, node, env, module, name)
            for v, x in zip(node.outputs(), results, strict=True):
                env[v.debugName()] = x
        return [env[v.debugName()] for v in outputs(block)]

    def tensor(self, x: Any) -> Any:
        """A weight, or inside a region the region's own copy of it."""
        return self.lifted.get(id(x), x)

    def _node(self, node: Any, env: Env, module: Any, name: str) -> tuple[Any, ...]:
        try:
            return self._results(node, env, module, name)
        except GraphtoolError:
            raise
        except NotSupported as reason:
            raise self.refused(node, module, name, str(reason)) from None
        except Exception as error:  # of torch, or what the model itself raises
            failed = failure(error, "torch.export", "")
            failed.where = told(self.place(node, module, name))
            raise failed from error

    def _results(self, node: Any, env: Env, module: Any, name: str) -> tuple[Any, ...]:
        kind = node.kind()
        match kind:
            case "prim::If":
                return control.branch(self, node, env, module, name)
            case "prim::Loop":
                return control.loop(self, node, env, module, name)
            case "prim::Constant":
                return (_constant(node.output()),)
            case "prim::GetAttr":
                return (self._attribute(env[node.inputsAt(0).debugName()], node.s("name"), node,
                                        module, name),)
        args = [env[v.debugName()] for v in node.inputs()]
        match kind:
            case "prim::CallMethod":
                with self._called_by(node, module, name):
                    return _as_tuple(node, self.method(args[0], node.s("name"), args[1:]))
            case "prim::CallFunction":
                function = self.unit.find_function(args[0])
                with self._called_by(node, module, name):
                    return _as_tuple(node, self.graph(function.graph, args[1:], module,
                                                      function.name))
            case "prim::SetAttr":
                return self._set(args[0], node.s("name"), args[1], node, module, name)
        return _as_tuple(node, plain.call(node, args))

    def _attribute(self, owner: Any, key: str, node: Any, module: Any, name: str) -> Any:
        if key in owner._modules:
            return owner._modules[key]
        for table in (owner._parameters, owner._buffers):
            if key in table:
                return self.tensor(table[key])
        value = owner.script.getattr(key)
        if isinstance(value, torch._C.ScriptObject):
            raise self.refused(node, module, name, f"the attribute {key} is an object of a class, "
                                              "which is not supported")
        return value

    def _set(self, owner: Any, key: str, value: Any, node: Any, module: Any,
             name: str) -> tuple[Any, ...]:
        old = owner._buffers.get(key)
        if old is None or not isinstance(value, torch.Tensor) or old.shape != value.shape:
            raise self.refused(node, module, name,
                               f"it changes the attribute {key}, which is not a buffer; only a "
                               "buffer of one shape is supported as state")
        self.tensor(old).copy_(value)
        return ()

    def place(self, node: Any, module: Any, name: str) -> CallPlace:
        """The place of a node of the method `name`, below its callers."""
        return place_of(node, module, name, self.callers)

    @contextmanager
    def _called_by(self, node: Any, module: Any, name: str) -> Iterator[None]:
        before = self.callers
        self.callers = (*before, *place_of(node, module, name).stack.splitlines(keepends=False))
        try:
            yield
        finally:
            self.callers = before

    def refused(self, node: Any, module: Any, name: str, reason: str) -> UnsupportedError:
        """The error for a node that cannot be run, with its line."""
        place = describe(self.place(node, module, name))
        return UnsupportedError("GT1101", "1 unsupported call in the scripted module", (
            Unsupported(node.kind().replace("::", "."), reason, (place,)),))

    def _frame(self, node: Any, module: Any, name: str) -> Callable[..., Any]:
        """A function that calls another function, in a file that stands for the node's place: torch
        records the stack, and the place is found by the file's name."""
        if node.kind() in ("prim::Constant", "prim::GetAttr", "prim::CallMethod",
                           "prim::CallFunction"):
            return _plain
        key = id(module), name, node.sourceRange(), self.callers
        if key not in self.frames:
            file = f"<fx ts{len(self.frames)}>"
            self.places[file] = self.place(node, module, name)
            scope: dict[str, Any] = {}
            exec(compile("def forward(run, *args):\n    return run(*args)\n", file, "exec"), scope)
            self.frames[key] = scope["forward"]
        return self.frames[key]


def _plain(run: Callable[..., Any], *args: Any) -> Any:
    return run(*args)


def outputs(block: Any) -> list[Any]:
    """The values that a graph or an inner block returns."""
    return list(block.outputs() if hasattr(block, "outputs") else block.returnNode().inputs())


def _constant(value: Any) -> Any:
    """A constant; of a function its qualified name, of an integer tensor of rank 0 the number: a
    trace has such tensors where it computes with sizes."""
    if value.type().kind() == "FunctionType":
        return value.type().annotation_str
    constant = value.toIValue()
    if isinstance(constant, torch.Tensor) and constant.ndim == 0 and constant.dtype == torch.int64:
        with _disable_current_modes():  # or torch would record the reading
            return constant.item()
    return constant


def _as_tuple(node: Any, x: Any) -> tuple[Any, ...]:
    count = node.outputsSize()
    if count == 1:
        return (x,)
    return () if count == 0 else tuple(x)
