"""`Writer`, a list of lines with indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines of text at the current depth; one level of depth is four spaces."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.place: tuple[str, int] | None = None  # the model's line for which the next ones stand
        self.places: list[tuple[str, int] | None] = []

    def line(self, text: str = "") -> None:
        """Append one line at the current depth; an empty line has no indentation."""
        self.lines.append("    " * self.depth + text if text else "")
        self.places.append(self.place)

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write `head`, indent what the `with` body writes, then write `tail`."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1
        self.line(tail)

    @contextmanager
    def standing_for(self, place: tuple[str, int] | None) -> Iterator[None]:
        """What the `with` body writes stands for this file and line of the model's source."""
        self.place = place
        yield
        self.place = None

    def text(self) -> str:
        """All lines so far as one text that ends with a newline."""
        return "\n".join(self.lines) + "\n"
