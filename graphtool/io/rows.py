"""Dataclasses out of JSON values, checked by their annotations.

For what a deployed model reads: it needs no package but numpy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Row = TypeVar("Row")


class RowError(ValueError):
    """A value that does not fit; the message says where: `expected int at $.dims[0].min`."""


def decode(raw: Any, kind: type[Row], where: str = "$") -> Row:
    """`raw` as a dataclass `kind`, whose fields are of bool, int, float, str, None, such classes,
    list, tuple and dict of these, or unions of them.

    Raises RowError for an unknown or a missing field, and for a value of another type.
    """
    if not isinstance(raw, dict):
        raise RowError(f"expected an object at {where}")
    hints, required = _declared(kind)  # type: ignore[arg-type]
    for name in raw.keys() - hints.keys():
        raise RowError(f"unknown field {name!r} at {where}")
    for name in required:
        if name not in raw:
            raise RowError(f"missing field {name!r} at {where}")
    return kind(**{name: _value(x, hints[name], f"{where}.{name}") for name, x in raw.items()})


@cache
def _declared(kind: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The types of all fields, and the names of those without a default."""
    return get_type_hints(kind), tuple(
        f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


def _value(x: Any, kind: Any, where: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if kind in (str, bool, int, type(None)) and type(x) is kind:
        return x
    if kind is float and type(x) in (int, float):
        return float(x)
    if origin is UnionType:
        return _either(x, parts, where)
    if origin is list and isinstance(x, list):
        return [_value(v, parts[0], f"{where}[{i}]") for i, v in enumerate(x)]
    if origin is tuple and isinstance(x, (list, tuple)) and len(x) == len(parts):
        return tuple(_value(v, p, f"{where}[{i}]")
                     for i, (v, p) in enumerate(zip(x, parts, strict=True)))
    if origin is dict and isinstance(x, dict):
        return {k: _value(v, parts[1], f"{where}.{k}") for k, v in x.items()}
    if hasattr(kind, "__dataclass_fields__"):
        return decode(x, kind, where)
    raise RowError(f"expected {getattr(kind, '__name__', kind)} at {where}")


def _either(x: Any, kinds: Iterable[Any], where: str) -> Any:
    fault: RowError | None = None
    for kind in kinds:
        try:
            return _value(x, kind, where)
        except RowError as error:  # the deepest says most: `expected int at $.a.b`
            fault = error if fault is None or len(str(error)) > len(str(fault)) else fault
    raise fault or RowError(f"no type fits at {where}")
