"""Checks what a function of the API is called with, so that a mistake is an error with help; and
what several functions take: arrays, paths, and the words that an option may have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from os import PathLike
from typing import Any, Literal, TypeVar, cast

import numpy as np

from graphtool.api.by_hand import Graph
from graphtool.assume import Assumption
from graphtool.assume.tiers import Tier
from graphtool.compile.options import Choosing, Kernels, Pathlike, Precision
from graphtool.errors import UsageError
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import Rules
from graphtool.loops.program import Program
from graphtool.target import Target

F = TypeVar("F", bound=Callable[..., Any])

# what an annotation says, in words, and how a user comes by it
_KINDS: Mapping[str, tuple[type | tuple[type, ...], str, str]] = {
    "Module": (Module, "a graph", "graphtool.import_model(…) or graphtool.read(…) makes one"),
    "Program": (Program, "a program", "graphtool.lower_model makes one of a graph"),
    "Pathlike": ((str, PathLike), "a path", "a string or a pathlib.Path"),
    "Mapping[str, Array]": (Mapping, "arrays by name", 'as in {"x": array}'),
    "None": (type(None), "", "")}
__all__ = ["Array", "Assumption", "Capture", "Kernels", "Pathlike", "Precision", "goal", "rules"]
Array = np.ndarray[Any, Any]
Capture = Literal["export", "fx"]


def checked(function: F) -> F:
    """The function; it raises UsageError GT3164 for arguments that it does not take, and for a
    value that is no graph, program, path or mapping where the annotation asks for one; GT3109 for a
    graph by hand that is no module yet."""
    signature = inspect.signature(function)
    name = f"graphtool.{function.__name__}"

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            taken = ", ".join(signature.parameters)
            raise UsageError("GT3164", f"{name}: {error}", hint=f"it takes {taken}") from None
        for key, value in given.items():
            _check(name, key, str(signature.parameters[key].annotation), value)
        return function(*args, **kwargs)
    return cast(F, call)


def _check(name: str, key: str, annotation: str, value: object) -> None:
    kinds = [_KINDS.get(part) for part in annotation.split(" | ")]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds) or any(isinstance(value, kind) for kind, _, _ in known):
        return
    if isinstance(value, Graph):
        raise UsageError("GT3109", f"{name}: {key} is a Graph, which is not checked yet, not a "
                                   "module", hint="give what its module() returns")
    words = " or ".join(filter(None, (word for _, word, _ in known)))
    raise UsageError("GT3164", f"{name}: {key} is of type {type(value).__name__}, not {words}",
                     hint="; ".join(filter(None, (hint for _, _, hint in known))))


def rules(precision: Precision, kernels: Kernels, tuning: Pathlike | None,
          assume: Assumption = "finite", proofs: Tier = "tested") -> Rules:
    """Which kernels and rules may be chosen. Raises UsageError GT0633, GT0634, GT0635, GT0638,
    InputError GT0332."""
    return Choosing(precision=precision, kernels=kernels, tuning=tuning, assume=assume,
                    proofs=proofs).rules


def goal(name: str, machine: str | None = None, threads: int | None = None) -> Target:
    """The target called `name`, with the figures of a machine, for at most so many threads; `cpu`
    is this machine. Raises UsageError GT2101, GT2103, InputError GT2104."""
    return Choosing(target=name, machine=machine, threads=threads).goal
