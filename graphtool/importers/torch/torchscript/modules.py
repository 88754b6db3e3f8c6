"""A scripted module as a plain module, which torch.export can capture: the same tree, the same
names.

torch itself loads the archive: its reader of TorchScript parses the code as text, and knows no
Python objects. `forward` then interprets that code, so that sizes stay symbolic.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import nn

from graphtool.errors import InputError
from graphtool.importers.torch.driver.captured import CallPlace
from graphtool.importers.torch.torchscript.interpreter import Interpreter
from graphtool.importers.torch.torchscript.supported import check_calls

_Memo = dict[Any, torch.Tensor]


def load(path: Path) -> torch.jit.ScriptModule:
    """The module of a TorchScript archive, on the CPU. Raises InputError GT1211 if torch cannot
    read it."""
    unit = torch._C.CompilationUnit()
    try:
        scripted = torch._C.import_ir_module(unit, str(path), torch.device("cpu"), {}, False)
        module = torch.jit._recursive.wrap_cpp_module(scripted)
    except Exception as error:  # of torch's reader, in C++
        said = next((s.strip() for s in str(error).splitlines() if s.strip()), "")
        raise InputError("GT1211", f"torch cannot read the archive: {said[:300]}",
                         where=str(path)) from error
    object.__setattr__(module, "_graphtool_unit", unit)
    return module


class Scripted(nn.Module):  # type: ignore[misc]
    """A scripted module with its parameters, buffers and children as those of a plain module."""

    def __init__(self, script: torch.jit.ScriptModule, memo: _Memo | None = None,
                 path: str = "", owner: str = "",
                 classes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__()
        memo = {} if memo is None else memo
        set_ = object.__setattr__  # past nn.Module, which would take the module for a child
        set_(self, "script", script._c)
        set_(self, "path", path)
        type_name = str(script._c._type().qualified_name())  # those of torch are not the user's
        owner = owner if type_name.startswith("__torch__.torch.") else type_name.rpartition(".")[2]
        classes = (*classes, (path, type_name.rpartition(".")[2])) if path else ()
        set_(self, "owner", owner)
        set_(self, "classes", classes)
        for name, child in script.named_children():
            self._modules[name] = Scripted(child, memo, f"{path}.{name}" if path else name,
                                           owner, classes)
        for name, p in script._parameters.items():
            self._parameters[name] = None if p is None else _once(p, memo, parameter=True)
        for name, b in script._buffers.items():
            self._buffers[name] = None if b is None else _once(b, memo)


class ModulePlaces(dict[str, CallPlace]):
    """A dict that torch.export leaves alone: plain ones are copied."""


class ScriptReplay(nn.Module):  # type: ignore[misc]
    """The root of a scripted module: runs its `forward`."""

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__()
        if not script._c._has_method("forward"):
            raise InputError("GT1211", "the scripted module has no forward",
                             hint="graphtool imports what forward computes")
        root = Scripted(script)
        unit = getattr(script, "_graphtool_unit", torch.jit._state._python_cu)
        check_calls(root, unit)
        for table in ("_modules", "_parameters", "_buffers"):
            getattr(self, table).update(getattr(root, table))
        self.training = getattr(script, "training", False)  # torch.jit.freeze drops it
        places = ModulePlaces()
        object.__setattr__(self, "_graphtool_places", places)
        object.__setattr__(root, "_modules", self._modules)
        object.__setattr__(root, "_parameters", self._parameters)
        object.__setattr__(root, "_buffers", self._buffers)
        run = Interpreter(unit, places).method

        def forward(*args: Any) -> Any:
            return run(root, "forward", args)
        forward.__signature__ = signature(script)  # type: ignore[attr-defined]
        object.__setattr__(self, "forward", forward)


def signature(script: torch.jit.ScriptModule) -> inspect.Signature:
    """The parameters of `forward` as Python's own record of them."""
    kind, empty = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    arguments = script._c._get_method("forward").schema.arguments[1:]
    return inspect.Signature([inspect.Parameter(
        a.name, kind, default=a.default_value if a.has_default_value() else empty)
        for a in arguments])


def described(script: torch.jit.ScriptModule) -> str:
    """The parameters of `forward` with their types: `x: Tensor, k: int`."""
    arguments = script._c._get_method("forward").schema.arguments[1:]
    return ", ".join(f"{a.name}: {a.type}" for a in arguments)


def _once(t: torch.Tensor, memo: _Memo, parameter: bool = False) -> torch.Tensor:
    """The tensor, or the earlier tensor on the same memory: tied weights stay tied."""
    key = (t.data_ptr(), t.storage_offset(), t.shape, t.stride(), t.dtype, parameter) if (
        t.layout is torch.strided and t.numel()) else id(t)
    if key not in memo:
        data = t.detach()
        trained = parameter and t.requires_grad
        memo[key] = nn.Parameter(data, requires_grad=trained) if parameter else data
    return memo[key]
