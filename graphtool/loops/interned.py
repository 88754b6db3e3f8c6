"""Hash-consing: equal records are one object, so they can be compared by `is` and hashed by
identity.

A table by record therefore visits each record once, however often it is used.
"""

from __future__ import annotations

from numbers import Number
from threading import RLock
from typing import Any, TypeVar
from weakref import ref

T = TypeVar("T")


class _Held(ref[Any]):
    """A weak reference that knows its key in the table."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


# weak: an entry is removed when nothing else refers to its record
_MADE: dict[tuple[Any, ...], _Held] = {}
_LOCK = RLock()  # garbage collection may remove entries while one is added


def _drop(held: _Held) -> None:
    with _LOCK:
        if _MADE.get(held.key) is held:  # not a record that was made later
            del _MADE[held.key]


class Interned(type):
    """The metaclass of interned records: frozen dataclasses with a slot for weak references."""

    def __call__(cls: type[T], *args: Any, **fields: Any) -> T:
        names = cls.__match_args__  # type: ignore[attr-defined]
        if fields or len(args) < len(names):
            new = type.__call__(cls, *args, **fields)
            args = tuple([getattr(new, name) for name in names])
        key = cls.key(args)  # type: ignore[attr-defined]
        held = _MADE.get(key)
        existing = None if held is None else held()
        return _make(cls, key, args) if existing is None else existing  # type: ignore[no-any-return]

    def key(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """A key that only equal records share."""
        return (cls, *args)


class InternedNumber(Interned):
    """The same for a record that holds numbers: 1, 1.0 and True differ, and so do 0.0 and -0.0;
    NaN equals itself."""

    def key(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The class and the arguments, where equal numbers of different types are different."""
        return (cls, *map(_exact, args))


def _exact(x: Any) -> Any:
    kind = type(x)
    if kind is tuple:
        return tuple(map(_exact, x))
    return (kind, repr(x)) if kind is not int and isinstance(x, Number) else x


def _make(cls: type, key: tuple[Any, ...], args: tuple[Any, ...]) -> Any:
    with _LOCK:
        held = _MADE.get(key)
        new = None if held is None else held()  # another thread may have made it first
        if new is None:
            new = type.__call__(cls, *args)
            entry = _MADE[key] = _Held(new, _drop)
            entry.key = key
        return new
