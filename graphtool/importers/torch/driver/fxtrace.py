"""A torch.fx symbolic trace as a module for torch.export: it runs the traced nodes in order.

Each node runs from a code object with the node's name as its file name. The stack that export
records therefore names the traced node, and so the module path and the line in the user's code.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import fx, nn
from torch.fx import traceback

from graphtool.errors import UnsupportedError
from graphtool.importers.torch.driver.captured import CallPlace
from graphtool.importers.torch.driver.grad_modes import data_replaced
from graphtool.importers.torch.driver.live import GRADIENT, place
from graphtool.importers.torch.driver.provenance import failure

_GRADIENTS = "graphtool.gradients"  # whether they were on when a node was traced


class _Value(fx.Proxy):  # type: ignore[misc]
    """A traced value that can be written to: fx has no `x[i] = y`, keeps `x.data = y` to itself,
    and takes `x += y` for `x = x + y`, which leaves the memory alone that views of x share."""

    def __getattr__(self, name: str) -> _Attribute:
        return _Attribute(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "data":
            raise data_replaced()
        if name in ("real", "imag"):
            self.tracer.create_proxy("call_function", setattr, (self, name, value), {})
        else:
            super().__setattr__(name, value)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, key, value), {})


def _in_place(function: Callable[[Any, Any], Any]) -> Callable[[_Value, Any], Any]:
    def call(self: _Value, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, other), {})
    return call


for _name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "iand",
              "ior", "ixor", "ilshift", "irshift"):
    setattr(_Value, f"__{_name}__", _in_place(getattr(operator, _name)))


class _Attribute(fx.proxy.Attribute, _Value):  # type: ignore[misc]
    """An attribute of a traced value, such as `x.T`."""

    __getattr__ = _Value.__getattr__


class _Tracer(fx.Tracer):  # type: ignore[misc]
    record_stack_traces = True

    def proxy(self, node: fx.Node) -> _Value:
        return _Value(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        """Creates the node with its module stack and its source line: fx keeps those only if
        `preserve_node_meta` is off."""
        with traceback.preserve_node_meta(False):
            node = super().create_node(*args, **kwargs)
        if node.stack_trace:  # up to the call of this method
            node.stack_trace = node.stack_trace.rpartition(f'File "{__file__}"')[0].rstrip()
        if custom := traceback.current_meta.get("custom"):
            node.meta["custom"] = dict(custom)
        # they are off inside an autograd.Function, whose backward is another matter
        node.meta[_GRADIENTS] = torch.is_grad_enabled() or GRADIENT in node.meta.get("custom", {})
        return node


def traced(model: nn.Module, count: int, torch_dir: str) -> Replay:
    """The trace of a call with `count` arguments; the other parameters keep their defaults.

    Raises UnsupportedError GT1102, which names the line that torch.fx cannot trace.
    """
    tracer = _Tracer()
    try:
        graph = tracer.trace(model, concrete_args=_defaults(model, count))
    except UnsupportedError:
        raise
    except Exception as error:  # whatever the user's model raises is reported with its line
        raise failure(error, "torch.fx", torch_dir) from error
    return Replay(fx.GraphModule(tracer.root, graph), type(model).__name__)


def _defaults(model: nn.Module, count: int) -> dict[str, Any]:
    parameters = list(inspect.signature(model.forward).parameters.values())[count:]
    return {p.name: p.default for p in parameters if p.default is not p.empty}


class Replay(nn.Module):  # type: ignore[misc]
    """Runs a traced module; it has the submodules and parameters of that module by name."""

    def __init__(self, module: fx.GraphModule, owner: str) -> None:
        super().__init__()
        for name, child in module.named_children():
            self.add_module(name, child)
        for name, p in module.named_parameters(recurse=False):
            self.register_parameter(name, p)
        for name, b in module.named_buffers(recurse=False):
            self.register_buffer(name, b)
        self.training = module.training
        object.__setattr__(self, "traced_nodes", tuple(module.graph.nodes))
        # past nn.Module's __setattr__, which would trip over a child of the same name
        object.__setattr__(self, "_graphtool_run", _Interpreter(module).run)
        object.__setattr__(self, "_graphtool_places", {
            _file(n): _within(place(n), owner) for n in module.graph.nodes
            if n.op.startswith("call_")})
        for n in module.graph.nodes:  # or export would take its stack for that of the replay
            n.meta.pop("stack_trace", None)
            n.meta.pop("nn_module_stack", None)

    def forward(self, *args: Any) -> Any:
        """Runs the traced nodes on the arguments."""
        return self._graphtool_run(*args)


def places_of(model: nn.Module) -> dict[str, CallPlace]:
    """File name of a replayed node → its place in the user's code; empty for models that run as
    they are."""
    places: dict[str, CallPlace] = getattr(model, "_graphtool_places", {})
    return places


def _within(place: CallPlace, owner: str) -> CallPlace:
    """The place with `owner` as its class if it has none: fx leaves out the root module."""
    return place if place.owner else replace(place, owner=owner)


class _Interpreter(fx.Interpreter):  # type: ignore[misc]
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        """As in fx, but `x.data`, which export cannot trace, becomes `x.detach()`."""
        if target is getattr and args[1:] == ("data",) and isinstance(args[0], torch.Tensor):
            return args[0].detach()
        return super().call_function(target, args, kwargs)

    def run_node(self, n: fx.Node) -> Any:
        off = n.op.startswith("call_") and not n.meta.get(_GRADIENTS, True)
        with torch.no_grad() if off else nullcontext():
            return _frame(_file(n))(super().run_node, n)


def _file(node: fx.Node) -> str:
    return f"<fx {node.name}>"


def _frame(name: str) -> Callable[..., Any]:
    """forward(run, n) = run(n); a stack shows it as `forward` in a file of the given name."""
    scope: dict[str, Any] = {}
    exec(compile("def forward(run, n):\n    return run(n)\n", name, "exec"), scope)
    forward: Callable[..., Any] = scope["forward"]
    return forward
