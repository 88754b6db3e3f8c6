"""What an import may do: the time and memory it takes before it is refused, and how far a model may
leave its specification and still be taken."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from graphtool.errors import InputError, UsageError

_NUMBERS = ("nodes", "bytes", "seconds")


@dataclass(frozen=True)
class Limits:
    """`nodes` that an import runs, functions and loops unrolled; `bytes` of one array that it or
    its check makes; `seconds` that the import takes, and each run of its check: a file cannot take
    the machine down. `strict` is what `Strictness` says."""

    nodes: int = 1_000_000
    bytes: int = 1 << 33
    seconds: int = 300
    strict: bool | None = None

    def check_nodes(self, count: int, where: str) -> None:
        """Raises InputError GT1022 if more nodes than allowed were run."""
        if count > self.nodes:
            raise InputError("GT1022", f"the model has more than {self.nodes} nodes, with its "
                                       "functions and loops unrolled", where=where,
                             hint="if that is meant: --limit nodes=NUMBER")

    def check_seconds(self, start: float, where: str) -> None:
        """Raises InputError GT1022 if more time than allowed has passed since `start`."""
        if time.monotonic() - start > self.seconds:
            raise InputError("GT1022", f"the import takes more than {self.seconds} seconds",
                             where=where, hint="if that is meant: --limit seconds=NUMBER")

    def check_bytes(self, count: int, what: str, where: str) -> None:
        """Raises InputError GT1022 if an array is larger than allowed."""
        if count > self.bytes:
            raise InputError("GT1022", f"{what} takes {count} bytes, the limit is {self.bytes}",
                             where=where, hint="if that is meant: --limit bytes=NUMBER")


def read_limits(texts: Sequence[str], strict: bool | None = None) -> Limits:
    """The limits of `--limit nodes=5000000` and the like. Raises UsageError GT3029."""
    numbers: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in _NUMBERS or not (number.isascii() and number.isdigit()):
            raise UsageError("GT3029", f"--limit {text!r} is not NAME=NUMBER",
                             hint=f"the names are {', '.join(_NUMBERS)}")
        numbers[name] = int(number)
    return Limits(**numbers, strict=strict)


# ---- strictness ---------------------------------------------------------------------------------

@dataclass
class Strictness:
    """`strict` is True to refuse every violation, None to take those whose meaning is clear, False
    to take also those whose meaning can be guessed. What was taken is in `taken`: the places of
    each warning, by its text."""

    strict: bool | None = None
    taken: dict[str, list[str]] = field(default_factory=dict)

    def clear(self, error: InputError, read: str) -> None:
        """Take a violation that has one meaning, `read`; raises the error if this is strict."""
        if self.strict:
            raise error
        self._take(error, read)

    def guessed(self, error: InputError, read: str) -> None:
        """Take a violation that may have the meaning `read`; raises the error unless lenient."""
        if self.strict is not False:
            error.hint = "\n".join(s for s in (error.hint, f"with --lenient: {read}") if s)
            raise error
        self._take(error, read)

    @property
    def warnings(self) -> list[str]:
        """Each warning as a line, with the number of places and the first of them."""
        return [f"{text} ({places[0]}{f' and {n} more' if (n := len(set(places)) - 1) else ''})"
                for text, places in self.taken.items()]

    def _take(self, error: InputError, read: str) -> None:
        place = (error.where.splitlines() or [""])[0]
        self.taken.setdefault(f"{error.message}: {read}", []).append(place)
