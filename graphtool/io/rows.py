"""Dataclasses out of JSON values, checked by their annotations.

Deployed models use it, so it needs no package but numpy. It must be fast, because each load of a
model waits for it: a type is analysed once and becomes a reader, and the text of a place is made
only for an error.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import MISSING, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

Row = TypeVar("Row")
Reader = Callable[[Any], Any]
_PLAIN = (str, bool, int, NoneType)


class RowError(ValueError):
    """A value that does not fit; the message says where: `expected int at $.dims[0].min`."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{message} at ${place}")
        self.message, self.place = message, place

    def within(self, step: str) -> RowError:
        """The same fault, seen from one level further out: `.dims` or `[0]` leads to the value."""
        return RowError(self.message, step + self.place)


class _Expected(RowError):
    """A value that is not of the `kind` which is expected."""

    def __init__(self, kind: str, place: str = "") -> None:
        super().__init__(f"expected {kind}", place)
        self.kind = kind

    def within(self, step: str) -> RowError:
        return _Expected(self.kind, step + self.place)


def decode(raw: Any, kind: type[Row]) -> Row:
    """`raw` as a dataclass `kind`, whose fields are of bool, int, float, str, None, such classes,
    list, tuple and dict of these, or unions of them.

    Raises RowError for an unknown or a missing field, and for a value of another type.
    """
    return cast(Row, _reader(cast(Hashable, kind))(raw))


@cache
def _reader(kind: Any) -> Reader:
    """A function from a JSON value to a value of the type `kind`; it raises RowError."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _plain((kind,))
    if kind is float:
        return _float
    if origin is UnionType:
        return _plain(parts) if all(p in _PLAIN for p in parts) else _union(parts)
    if origin is list:
        return _list(_reader(parts[0]))
    if origin is tuple:
        return _tuple([_reader(p) for p in parts])
    if origin is dict:
        return _dict(_reader(parts[1]))
    return _row(kind)


def _plain(kinds: tuple[type, ...]) -> Reader:
    named = " or ".join("null" if k is NoneType else k.__name__ for k in kinds)

    def read(x: Any) -> Any:
        if type(x) in kinds:  # not isinstance: True is not an int here
            return x
        raise _Expected(named)
    return read


def _float(x: Any) -> float:
    if type(x) in (int, float):
        return float(x)
    raise _Expected("float")


def _union(kinds: tuple[Any, ...]) -> Reader:
    readers = [_reader(k) for k in sorted(kinds, key=lambda k: k not in _PLAIN)]

    def read(x: Any) -> Any:
        faults: list[RowError] = []
        for reader in readers:
            try:
                return reader(x)
            except RowError as error:
                faults.append(error)
        wrong = [f.kind for f in faults if isinstance(f, _Expected) and not f.place]
        if len(wrong) < len(faults):  # one was of the right kind: the deepest fault says most
            raise max((f for f in faults if f.place or not isinstance(f, _Expected)),
                      key=lambda f: len(f.place))
        raise _Expected(" or ".join(wrong))
    return read


def _list(item: Reader) -> Reader:
    def read(x: Any) -> list[Any]:
        if not isinstance(x, list):
            raise _Expected("list")
        items: list[Any] = []
        try:
            for value in x:
                items.append(item(value))
        except RowError as error:
            raise error.within(f"[{len(items)}]") from None
        return items
    return read


def _tuple(items: list[Reader]) -> Reader:
    def read(x: Any) -> tuple[Any, ...]:
        if not isinstance(x, (list, tuple)) or len(x) != len(items):
            raise _Expected(f"list of {len(items)}")
        values: list[Any] = []
        try:
            for item, value in zip(items, x, strict=True):
                values.append(item(value))
        except RowError as error:
            raise error.within(f"[{len(values)}]") from None
        return tuple(values)
    return read


def _dict(item: Reader) -> Reader:
    def read(x: Any) -> dict[str, Any]:
        if not isinstance(x, dict):
            raise _Expected("object")
        return _fields(dict.fromkeys(x, item), x)
    return read


def _row(kind: Any) -> Reader:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    required = [f.name for f in fields(kind)
                if f.default is MISSING and f.default_factory is MISSING]

    def read(x: Any) -> Any:
        if not isinstance(x, dict):
            raise _Expected("object")
        for name in x.keys() - readers.keys():
            raise RowError(f"unknown field {name!r}")
        for name in required:
            if name not in x:
                raise RowError(f"missing field {name!r}")
        return kind(**_fields(readers, x))
    return read


def _fields(readers: dict[str, Reader], x: dict[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in x.items():
        try:
            values[name] = readers[name](value)
        except RowError as error:
            raise error.within(f".{name}") from None
    return values
