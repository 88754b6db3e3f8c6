"""Finds a torch model or function, and its sample inputs, in Python source, which is run.

A pure function of tensors becomes a module, so that both are captured alike.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from graphtool.errors import InputError
from graphtool.importers.hints import TAKE_INPUTS
from graphtool.importers.python_source import attribute_of, guarded, module_of, root_of
from graphtool.importers.record import SAVED
from graphtool.importers.torch.driver.call_arguments import (
    Arguments,
    SampleInput,
    placed,
    read_spec,
    sample,
)
from graphtool.importers.torch.driver.live import tensor
from graphtool.importers.torch.torchscript import modules

# ---- functions as modules -----------------------------------------------------------------------

class FunctionModule(nn.Module):  # type: ignore[misc]
    """A module whose `forward` is a function; it has no weights: they are arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        object.__setattr__(self, "forward", function)


def takes_tensors(function: Callable[..., Any]) -> bool:
    """Whether a callable is such a function. One that can be called without arguments makes a
    model instead."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
               for p in parameters)


# ---- models in source ---------------------------------------------------------------------------

_TORCH = root_of(torch.__file__)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model, or a program of torch.export; its sample inputs by position and by name; the
    names that specs gave them."""

    model: nn.Module | ExportedProgram
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: list[str]


def load(source: str, specs: Sequence[str] = ()) -> Loaded:
    """The model and its sample inputs: those of the specs, else what inputs() in the file returns,
    or `inputs` is: a tensor, a tuple of them, or a dict of the arguments that forward takes by
    name.

    Raises InputError GT1111 to GT1114 where the source fails, lacks the name, gives something
    else than an nn.Module, or offers no inputs.
    """
    wanted = [read_spec(s) for s in specs]
    if source.endswith(SAVED):
        return _archived(source, wanted)
    place, _, attribute = source.rpartition(":")
    module = guarded(f"loading {place}", lambda: module_of(place), _TORCH)
    value = attribute_of(module, place, attribute)
    model = guarded(f"calling {attribute}()", lambda: _model(value), _TORCH)
    if not isinstance(model, (nn.Module, ExportedProgram)):
        raise InputError("GT1113", f"{source} is {type(model).__name__}, an nn.Module or a "
                                   "function that returns one is expected",
                         hint="inputs come apart from the model: by --inputs, or from inputs() in "
                              "the file" if isinstance(model, tuple) else "")
    if wanted:
        return Loaded(model, tuple(tensor(x) for x in sample(wanted)), {}, _names(wanted))
    return Loaded(model, *_inputs(module, place, model), [])


def _archived(source: str, wanted: list[SampleInput]) -> Loaded:
    """A TorchScript archive, which has no sample inputs of its own."""
    script = modules.load(Path(source))
    if not wanted:
        raise InputError("GT1114", f"{source} offers no sample inputs: its forward takes "
                         f"{modules.described(script)}",
                         hint=f"{TAKE_INPUTS}, for each tensor, in this order")
    return Loaded(script, tuple(tensor(x) for x in sample(wanted)), {}, _names(wanted))


def _names(specs: list[SampleInput]) -> list[str]:
    return [s.name or f"input_{i}" for i, s in enumerate(specs)] if any(
        s.name for s in specs) else []


def _model(value: Any) -> Any:
    if isinstance(value, type) and issubclass(value, nn.Module):
        return value().eval()
    plain = callable(value) and not isinstance(value, (nn.Module, ExportedProgram))
    if plain and takes_tensors(value):
        return FunctionModule(value)
    return value() if plain else value


def _inputs(module: ModuleType, place: str, model: nn.Module | ExportedProgram) -> Arguments:
    function: Any = getattr(module, "inputs", None)
    given = isinstance(function, (tuple, list, dict, torch.Tensor))  # by value
    if not given and not callable(function):
        if isinstance(model, ExportedProgram) and model.example_inputs is not None:
            args, kwargs = model.example_inputs
            return tuple(args), dict(kwargs)
        raise InputError("GT1114", f"{place} offers no sample inputs",
                         hint="define inputs() in the file, returning a tuple of tensors; or "
                              + TAKE_INPUTS)
    value = function if given else guarded("calling inputs()", function, _TORCH)
    if isinstance(value, dict) and isinstance(model, nn.Module) and (
            value.keys() <= inspect.signature(model.forward).parameters.keys()):
        return placed(model, (), value)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,), {}
