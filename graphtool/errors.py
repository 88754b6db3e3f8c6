"""The error tree. Every error has a code, and says what was expected, what was found, and where.

    GraphtoolError
    ├── UsageError         exit 2   the command line or an argument is wrong
    ├── InputError         exit 3   a file or a value that came in is bad
    │   ├── TypeMismatch            operands that do not fit an operation
    │   │   └── Undecided           operands that fit for some sizes only
    │   └── UndecidedOrder          sizes that are in order for some inputs only
    ├── UnsupportedError   exit 4   the model needs what this tool does not have; lists everything
    ├── PluginError        exit 3   a function of a plug-in failed
    ├── CompilerError      exit 5   the C compiler is missing or failed
    └── InternalError      exit 70  a fault of graphtool itself
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from graphtool.escaping import line


class GraphtoolError(Exception):
    """The base class. `code` is `GTnnnn`; `where` is the place of the fault, one line or several,
    which are kept as one text; `hint` says what to do."""

    exit_code = 70

    def __init__(self, code: str, message: str, *, where: str | Iterable[str] = "",
                 hint: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint
        places = (where,) if isinstance(where, str) else where
        self.where = "\n".join(line(place) for place in places if place)

    def within(self, *places: str) -> None:
        """Say that the fault is also in these places, the outermost first. Each becomes one line,
        whatever the name of a node has in it."""
        lines = [*map(line, filter(None, places)), *filter(None, [self.where])]
        self.where = "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        lines += [f"  at {text}" for text in self.where.split("\n") if self.where]
        lines += [f"  help: {text}" for text in self.hint.split("\n") if self.hint]
        return "\n".join(map(line, lines))


class UsageError(GraphtoolError):
    """The command line or an argument is wrong."""

    exit_code = 2


class InputError(GraphtoolError):
    """A file or an input value is bad."""

    exit_code = 3


class TypeMismatch(InputError):
    """Operands that do not fit an operation; raised by `infer`."""


class Undecided(TypeMismatch):
    """Sizes that an operation needs to be equal, and that are so for some inputs only: `pairs`."""

    def __init__(self, code: str, message: str, pairs: Iterable[tuple[Any, Any]] = (), *,
                 where: str | Iterable[str] = "", hint: str = "") -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.pairs = tuple(pairs)


class UndecidedOrder(InputError):
    """Two sizes, where the first is larger for some inputs only, where an operation must know:
    `pairs`."""

    def __init__(self, code: str, message: str, pairs: Iterable[tuple[Any, Any]] = (), *,
                 where: str = "", hint: str = "") -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.pairs = tuple(pairs)


class Signal(Exception):
    """Base of exceptions that decline or are collected. Their callers catch them; they are no
    faults."""


class PluginError(GraphtoolError):
    """A function of a plug-in failed. No InputError: nobody who tries something may pass over it.
    """

    exit_code = 3


@dataclass(frozen=True)
class Unsupported:
    """One thing that is not supported: its name (`aten.fft_fft`), the reason, and each place
    where it occurs."""

    name: str
    reason: str
    places: tuple[str, ...] = ()


class UnsupportedError(GraphtoolError):
    """Everything that is not supported, in one error: `items` with counts and places."""

    exit_code = 4

    def __init__(self, code: str, message: str, items: tuple[Unsupported, ...] = (),
                 *, where: str | Iterable[str] = "", hint: str = "") -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.items = items

    def __str__(self) -> str:
        rows = [text for i in self.items for text in (
            f"  {len(i.places) or 1} × {i.name}: {i.reason}",
            *(f"      {p}" for p in i.places[:5]),
            *([f"      and {len(i.places) - 5} more"] if len(i.places) > 5 else []))]
        return "\n".join([super().__str__(), *map(line, rows)])


class CompilerError(GraphtoolError):
    """The C compiler is missing or failed."""

    exit_code = 5


class InternalError(GraphtoolError):
    """A fault of graphtool itself."""

    exit_code = 70


SHORT = 4  # letters: of so few, one in the wrong place is much


def near(given: object, known: Iterable[str], otherwise: str) -> str:
    """A hint for an unknown name: the known name that is most like it, then `otherwise`. `given`
    may be any value that a file holds in place of a name."""
    from difflib import get_close_matches
    names = {name.lower(): name for name in known}
    word = str(given).lower()
    like = get_close_matches(word, names, 1, 0.7 if len(word) > SHORT else 0.6)
    return f"did you mean {names[like[0]]!r}?\n{otherwise}" if like else otherwise


def one_of(word: object, known: Iterable[str], also: str = "") -> str:
    """A hint for an unknown name: the known name that is most like it, and all known names."""
    names = list(known)
    return near(word, names, f"one of {', '.join(map(line, names))}{also}")


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names separated by commas, escaped; if there are more than `most`, the first ones and the
    total number."""
    lines = [line(name) for name in names]
    if len(lines) <= most:
        return ", ".join(lines) or "none"
    return f"{', '.join(lines[:most])}, … ({len(lines)} in all)"
