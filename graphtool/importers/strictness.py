"""How strict an import is: what a model may do against its specification, and still be taken."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphtool.errors import InputError


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
