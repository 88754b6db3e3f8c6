"""The arguments that a model is called with: samples from specs such as `x:f32[1,3,224,224]`,
arguments by position and by name, and the names of graph inputs. The same specs give the same
numbers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from graphtool.dtypes import DType, dtype
from graphtool.errors import UsageError
from graphtool.io.weights import Array

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def placed(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Arguments:
    """(args, kwargs) with each named argument moved to its position, if it has one.

    Parameters in between take their defaults; keyword-only arguments stay named.
    """
    parameters = list(inspect.signature(model.forward).parameters.values())
    if not kwargs or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return args, dict(kwargs)
    later = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD][len(args):]
    last = max((i for i, p in enumerate(later) if p.name in kwargs), default=-1)
    between = later[:last + 1]
    if any(p.name not in kwargs and p.default is p.empty for p in between):
        return args, dict(kwargs)  # which Python will refuse, in its own words
    order = [p.name for p in parameters]
    taken = {p.name for p in between}
    rest = sorted((k for k in kwargs if k not in taken),  # as torch lists the dims of inputs
                  key=lambda k: order.index(k) if k in order else len(order))
    return ((*args, *(kwargs.get(p.name, p.default) for p in between)),
            {k: kwargs[k] for k in rest})


def input_names(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """forward's own parameter names, then those of `kwargs`; `*xs` gives `xs_0`, `xs_1`, …"""
    out: list[str] = []
    for p in inspect.signature(model.forward).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            out += [f"{p.name}_{i}" for i in range(len(args) - len(out))]
        elif p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and len(out) < len(args):
            out.append(p.name)
    return [*out, *kwargs]


def as_called(model: nn.Module, shapes: list[Any], kwargs: Mapping[str, Any]) -> Any:
    """torch's dynamic_shapes: one entry a parameter of forward, all that are left in that of
    `*xs`; by name as soon as something is only named."""
    parameters = list(inspect.signature(model.forward).parameters.values())
    count = len(shapes) - len(kwargs)
    by_position, by_name = shapes[:count], dict(zip(kwargs, shapes[count:], strict=True))
    kinds = [p.kind for p in parameters]
    fixed = kinds.index(inspect.Parameter.VAR_POSITIONAL) if (
        inspect.Parameter.VAR_POSITIONAL in kinds) else count
    rest = (tuple(by_position[fixed:]),) if fixed < count else ()
    entries = (*by_position[:fixed], *rest)
    if not by_name:
        return entries
    named = dict(zip((p.name for p in parameters), entries, strict=False))
    return named | {p.name: by_name[p.name] for p in parameters if p.name in by_name}


# ---- samples ------------------------------------------------------------------------------------

_SPEC = re.compile(r"\s*(?:(?P<name>[^:\[\]]+):)?\s*(?P<type>\w+)\s*\[(?P<dims>[\d,\s]*)\]\s*")
_ELEMENTS = 1 << 31


@dataclass(frozen=True, slots=True)
class SampleInput:
    """A sample input: its name ("" if none), element type and fixed sizes."""

    name: str
    dtype: DType
    shape: tuple[int, ...]


def read_spec(text: str) -> SampleInput:
    """Parses `name:type[sizes]`; raises UsageError GT1115 for a text that is no such spec."""
    match = _SPEC.fullmatch(text)
    dims = [d.strip() for d in match["dims"].split(",")] if match else []
    if match is None or (dims != [""] and "" in dims):
        raise UsageError("GT1115", f"cannot read the input {text!r}",
                         hint="NAME:TYPE[SIZES], such as x:f32[1,3,224,224]; a scalar is f32[]; "
                              "--dynamic gives the sizes that stay open")
    shape = tuple(int(d) for d in dims if d)
    if np.prod([float(d) for d in shape]) > _ELEMENTS:
        raise UsageError("GT1115", f"the input {text!r} is too large",
                         hint=f"{_ELEMENTS:,.0f} elements at most")
    return SampleInput((match["name"] or "").strip(), dtype(match["type"]), shape)


def sample(specs: Sequence[SampleInput], seed: int = 0) -> list[Array]:
    """Arrays: normal floats, random bools, and integers 0 or 1, which are valid indices."""
    rng = np.random.default_rng(seed)
    return [_array(rng, s) for s in specs]


def _array(rng: np.random.Generator, s: SampleInput) -> Array:
    if s.dtype.is_float:
        return np.asarray(rng.standard_normal(s.shape)).astype(s.dtype.numpy)
    return np.asarray(rng.integers(0, 2, s.shape)).astype(s.dtype.numpy)
