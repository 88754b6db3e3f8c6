"""The attributes of ops: what an op declares, and the attributes of a call in complete form."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphtool.errors import InputError, near


@dataclass(frozen=True)
class Attr:
    """One attribute of an op as its `infer` declares it."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        """Whether the attribute has no default, so that every node must give it."""
        return self.default is inspect.Parameter.empty


def complete(op: str, schema: Mapping[str, Attr], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes in declared order with defaults filled in. Lists become tuples; integers
    become floats where the op declares a float.

    Raises InputError GT0402 for an attribute that the op lacks, GT0403 for one without a value.
    """
    for name in attrs:
        if name not in schema:
            raise InputError("GT0402", f"{op} has no attribute {name!r}",
                             hint=near(name, schema, f"it has {', '.join(schema) or 'none'}"))
    out = {}
    for name, a in schema.items():
        if name in attrs:
            out[name] = as_float(attrs[name]) if a.annotation is float else _frozen(attrs[name])
        elif a.required:
            raise InputError("GT0403", f"{op} needs the attribute {name!r}")
        else:
            out[name] = a.default
    return out


def as_float(x: Any) -> Any:
    """A number as a float, as files have it; an integer that no float equals stays an integer."""
    return float(x) if isinstance(x, int) and float(x) == x else x


def _frozen(x: Any) -> Any:
    return tuple(_frozen(i) for i in x) if isinstance(x, (list, tuple)) else x
