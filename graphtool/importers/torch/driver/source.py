"""Runs Python source that defines a model, and finds the model and its sample inputs in it.

A file is loaded under a private name, so that it shadows nothing. Its faults are reported with
their line, not with a traceback.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram

from graphtool.errors import GraphtoolError, InputError, listed, near
from graphtool.importers.torch.driver.call_arguments import Arguments, placed
from graphtool.importers.torch.driver.live import tensor
from graphtool.importers.torch.driver.samples import Spec, read_spec, sample
from graphtool.importers.torch.driver.user_lines import root_of, user_line

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
    which is a tensor, a tuple of them, or a dict of those that forward takes by name.

    Raises InputError GT1111 to GT1114 where the source fails, lacks the name, gives something
    else than an nn.Module, or offers no inputs.
    """
    place, _, attribute = source.rpartition(":")
    module = _guarded(f"loading {place}", lambda: _module(place))
    made = module
    for part in attribute.split("."):
        if not hasattr(made, part):
            known = [n for n, x in vars(module).items() if not n.startswith("_")
                     and getattr(x, "__module__", "") == module.__name__]
            raise InputError("GT1112", f"{place} has no {attribute!r}",
                             hint=near(part, known, f"it has {listed(known, 20)}"))
        made = getattr(made, part)
    model = _guarded(f"calling {attribute}()", lambda: _model(made))
    if not isinstance(model, (nn.Module, ExportedProgram)):
        raise InputError("GT1113", f"{source} is {type(model).__name__}, an nn.Module or a "
                                   "function that returns one is expected")
    wanted = [read_spec(s) for s in specs]
    if wanted:
        return Loaded(model, tuple(tensor(x) for x in sample(wanted)), {}, _names(wanted))
    return Loaded(model, *_inputs(module, place, model), [])


def _names(specs: list[Spec]) -> list[str]:
    return [s.name or f"input_{i}" for i, s in enumerate(specs)] if any(
        s.name for s in specs) else []


def _module(place: str) -> ModuleType:
    """The module of a file (a path ending in .py) or of a dotted name."""
    if not place.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise InputError("GT1111", f"there is no file {place}")
    name = f"_graphtool_source_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("GT1111", f"{place} is not Python source")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and friends look their module up
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)  # so that the file finds its neighbours, as under `python FILE`
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _model(made: Any) -> Any:
    if isinstance(made, type) and issubclass(made, nn.Module):
        return made().eval()
    plain = callable(made) and not isinstance(made, (nn.Module, ExportedProgram))
    return made() if plain else made


def _inputs(module: ModuleType, place: str, model: nn.Module | ExportedProgram) -> Arguments:
    function = getattr(module, "inputs", None)
    if not callable(function):
        if isinstance(model, ExportedProgram) and model.example_inputs is not None:
            args, kwargs = model.example_inputs
            return tuple(args), dict(kwargs)
        raise InputError("GT1114", f"{place} offers no sample inputs",
                         hint="define inputs() in the file, returning a tuple of tensors; import, "
                              "build and emit also take --inputs 'x:f32[1,3,224,224]'")
    found = _guarded("calling inputs()", function)
    if isinstance(found, dict) and isinstance(model, nn.Module) and (
            found.keys() <= inspect.signature(model.forward).parameters.keys()):
        return placed(model, (), found)
    return tuple(found) if isinstance(found, (tuple, list)) else (found,), {}


def _guarded(doing: str, action: Callable[[], Any]) -> Any:
    """The action's result; what it raises becomes one error that names the user's line, and what
    it prints goes to stderr: a verb's stdout may be the graph."""
    try:
        with redirect_stdout(sys.stderr):
            return action()
    except GraphtoolError:
        raise
    except SyntaxError as error:
        place = f"{Path(error.filename or '').name}:{error.lineno}\n{(error.text or '').strip()}"
        raise InputError("GT1111", f"{doing}: {type(error).__name__}: {error.msg}",
                         where=place) from error
    except (Exception, SystemExit) as error:
        line, text = user_line(error, _TORCH)
        raise InputError("GT1111", f"{doing}: {type(error).__name__}: {error}",
                         where=f"{line}\n{text}".strip()) from error
