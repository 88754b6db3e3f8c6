"""What decides about gradients while a model is captured, as annotations of the captured nodes.

torch.export keeps `no_grad` and `set_grad_enabled` as graphs of their own until it decomposes
them, and forgets the rest: `detach` becomes an alias, `inference_mode` and the backward of an
`autograd.Function` leave no trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx
from torch.autograd.grad_mode import inference_mode
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import traceback

from graphtool.errors import Unsupported, UnsupportedError
from graphtool.importers.torch.driver.captured import ALIAS, DECOMPOSED, STOPPED
from graphtool.importers.torch.driver.live import GRADIENT, target_name

_DETACHES = {"aten.detach", "aten.detach_", "aten.detach_copy"}


@contextmanager
def watched() -> Iterator[None]:
    """Within the block, calls of a user's `autograd.Function` are annotated, `inference_mode` acts
    as `no_grad`, `x.data` as `x.detach()`; a hook of a tensor is refused, and a change of a
    parameter's `requires_grad`.

    Gradients are on at the start of the block, also if the caller has switched them off.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())
        stack.enter_context(_replaced(torch.autograd.Function, "apply", classmethod(_applied)))
        stack.enter_context(_replaced(inference_mode, "__enter__", _enter))
        stack.enter_context(_replaced(inference_mode, "__exit__", _leave))
        stack.enter_context(_replaced(torch.Tensor, "register_hook", _hooked))
        stack.enter_context(_replaced(torch.Tensor, "data", property(_data, _set_data)))
        stack.enter_context(_replaced(torch.Tensor, "requires_grad", property(
            _REQUIRES.__get__, _set_requires)))
        stack.enter_context(_replaced(torch.Tensor, "requires_grad_", _requires))
        stack.enter_context(_replaced(torch.nn.Module, "requires_grad_", _all_require))
        yield


@contextmanager
def _replaced(owner: type, name: str, new: Any) -> Iterator[None]:
    missing = object()
    original = owner.__dict__.get(name, missing)
    setattr(owner, name, new)
    try:
        yield
    finally:
        if original is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, original)


_apply: Callable[..., Any] = torch.autograd.Function.__dict__["apply"].__func__


def _applied(function: Any, *args: Any, **kwargs: Any) -> Any:
    if function.__module__.partition(".")[0] == "torch":
        return _apply(function, *args, **kwargs)
    reason = f"the backward of the autograd.Function {function.__qualname__} is not captured"
    with traceback.annotate({GRADIENT: reason}):
        return _apply(function, *args, **kwargs)


def _enter(mode: Any) -> None:
    mode._graphtool_before = torch.is_grad_enabled()
    torch.set_grad_enabled(mode._graphtool_before and not mode.mode)


def _leave(mode: Any, *_: object) -> None:
    torch.set_grad_enabled(mode._graphtool_before)


_DATA = torch._C.TensorBase.data


def _data(tensor: torch.Tensor) -> torch.Tensor:
    """`x.data`; in the user's code `x.detach()`, since export cannot trace the former."""
    data: torch.Tensor = tensor.detach() if _in_model() else _DATA.__get__(tensor)
    return data


def data_replaced() -> UnsupportedError:
    """The error GT1102 of an assignment to `x.data`."""
    return UnsupportedError("GT1102", "a tensor's data is replaced in forward", (
        Unsupported("x.data = …", "capture does not see the new value"),),
        hint="use a new variable, or x.copy_(…)")


def _set_data(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if _in_model():
        raise data_replaced()
    _DATA.__set__(tensor, value)


_REQUIRES = torch._C.TensorBase.requires_grad
_require, _require_all = torch._C.TensorBase.requires_grad_, torch.nn.Module.requires_grad_


def _set_requires(tensor: torch.Tensor, flag: bool) -> None:
    if _in_model():
        _unchanged([tensor], flag)
    _REQUIRES.__set__(tensor, flag)


def _requires(tensor: torch.Tensor, requires_grad: bool = True) -> torch.Tensor:
    if _in_model():
        _unchanged([tensor], requires_grad)
    return _require(tensor, requires_grad)


def _all_require(module: torch.nn.Module, requires_grad: bool = True) -> torch.nn.Module:
    if _in_model():
        _unchanged(module.parameters(), requires_grad)
    return _require_all(module, requires_grad)


def _unchanged(tensors: Iterable[torch.Tensor], flag: bool) -> None:
    """Refuses a new `requires_grad` for a parameter: the graph has one for all of its calls."""
    if any(isinstance(t, torch.nn.Parameter) and _REQUIRES.__get__(t) != flag for t in tensors):
        raise UnsupportedError("GT1102", "requires_grad of a parameter changes in forward", (
            Unsupported(f"requires_grad = {flag}", "capture does not see which calls it is for"),),
            hint="set it before the export; in forward use p.detach() or torch.no_grad()")


def _in_model() -> bool:
    """Whether the user's code makes the access during an export; torch's own code is unaffected."""
    module = str(sys._getframe(2).f_globals.get("__name__", ""))
    return torch.compiler.is_exporting() and module.partition(".")[0] != "torch"


def _hooked(tensor: torch.Tensor, hook: Any) -> Any:
    name = getattr(hook, "__qualname__", type(hook).__name__)
    raise UnsupportedError("GT1102", "a hook changes a gradient during capture", (
        Unsupported(f"register_hook({name})", "capture does not see what a hook does"),),
        hint="compute it in forward, or register no hook on the model that is exported")


def hooked(model: torch.nn.Module) -> list[str]:
    """The paths of the model's parameters and modules that have a backward hook."""
    parameters = [n for n, p in model.named_parameters()
                  if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None)]
    modules = [n or type(m).__name__ for n, m in model.named_modules()
               if m._backward_hooks or m._backward_pre_hooks]
    return parameters + modules


def is_decomposed(exported: ExportedProgram) -> bool:
    """Whether torch has decomposed the program, which loses where gradients were off."""
    return any(v.dialect == DECOMPOSED for v in exported.verifiers)


def annotate(exported: ExportedProgram) -> None:
    """Annotates the nodes of a program, before it is decomposed, at which gradients stop.

    In a program that is decomposed already, `alias` may be a detach: its gradient is unknown.
    Raises UnsupportedError GT1102 for in-place writes, with gradients off, into values that have
    one.
    """
    differentiable = {s.arg.name for s in exported.graph_signature.input_specs
                      if s.kind is InputKind.PARAMETER and _trained(exported, s.target)}
    faults = [name for module in exported.graph_module.modules()
              if isinstance(module, fx.GraphModule)
              for name in _annotate(module, is_decomposed(exported), differentiable)]
    if faults:
        raise UnsupportedError("GT1102", "values change in place where gradients are off", tuple(
            Unsupported(name, "the gradient would be that of the old value")
            for name in sorted(set(faults))),
            hint="use a new variable, or detach the tensor before")


def _annotate(module: fx.GraphModule, decomposed: bool,
              differentiable: set[str]) -> Iterator[str]:
    for node in module.graph.nodes:
        if node.op != "call_function":
            continue
        name = target_name(node.target).rpartition(".")[0]
        if name in _DETACHES:
            if name == "aten.detach_":  # which decomposing would drop; later calls read its result
                node.target = torch.ops.aten.detach.default
            _write(node, STOPPED)
        elif name == "aten.alias" and decomposed:
            _write(node, ALIAS)
        elif target_name(node.target).endswith("wrap_with_set_grad_enabled") and not node.args[0]:
            inner = getattr(module, node.args[1].target)
            unknown = {(x.meta.get("custom") or {}).get(GRADIENT, STOPPED)
                       for x in inner.graph.nodes}
            for x in (node, *inner.graph.nodes):  # a backward that is not seen is the stronger
                _write(x, next(iter(sorted(unknown - {STOPPED})), STOPPED))
            outside = dict(zip((p for p in inner.graph.nodes if p.op == "placeholder"),
                               node.args[2:], strict=True))
            yield from _writes(inner, outside, differentiable)
        elif _stopped_base(node):
            yield from _faults(node, {}, differentiable)


def _write(node: fx.Node, gradient: str) -> None:
    node.meta["custom"] = {**(node.meta.get("custom") or {}), GRADIENT: gradient}


def _writes(inner: fx.GraphModule, outside: dict[fx.Node, Any],
            differentiable: set[str]) -> Iterator[str]:
    for node in inner.graph.nodes:
        if _mutates(node):
            yield from _faults(node, outside, differentiable)


def _mutates(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and bool(schema.is_mutable)


def _stopped_base(node: fx.Node) -> bool:
    """Whether a call writes into a detached view of another tensor."""
    if not _mutates(node):
        return False
    at = node.args[0] if node.args else None
    while isinstance(at, fx.Node) and at.op == "call_function" and _is_view(at):
        if target_name(at.target).rpartition(".")[0] in _DETACHES:
            return True
        at = at.args[0]
    return False


def _faults(node: fx.Node, outside: dict[fx.Node, Any], differentiable: set[str]) -> list[str]:
    """The call's name if what it writes into has a gradient: a trained parameter, or computed."""
    at: Any = node.args[0] if node.args else None
    while isinstance(at, fx.Node) and at.op == "call_function" and (_is_view(at) or _mutates(at)):
        at = at.args[0]
    if isinstance(at, fx.Node) and at in outside:
        at = outside[at]
    elif outside:
        return []  # made where gradients are off
    while isinstance(at, fx.Node) and at.op == "call_function" and (_is_view(at) or _mutates(at)):
        at = at.args[0]
    if not isinstance(at, fx.Node) or (at.op == "placeholder" and at.name not in differentiable):
        return []
    value = at.meta.get("val")
    floats = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    return [target_name(node.target)] if floats and at.op != "get_attr" else []


def _is_view(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.is_mutable and bool(
        schema.arguments and schema.arguments[0].alias_info is not None)


def _trained(exported: ExportedProgram, name: str | None) -> bool:
    weight = exported.state_dict.get(name or "")
    return isinstance(weight, torch.Tensor) and weight.requires_grad
