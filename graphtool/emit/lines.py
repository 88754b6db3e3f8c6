"""`Writer`, a list of lines with indentation, and functions that escape foreign text for C."""

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


def c_string(text: str) -> str:
    """A C string literal of the text's UTF-8 bytes; nothing in it can end the literal."""
    out = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        if char in '"\\?':  # ? so that no trigraph forms
            out.append("\\" + char)
        elif 32 <= byte < 127:
            out.append(char)
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def c_comment(text: str, limit: int = 160) -> str:
    """The text made safe inside a comment: printable ASCII that neither ends nor nests it."""
    safe = "".join(c if 32 <= ord(c) < 127 and c != "\\" else "?" for c in text)
    safe = safe.replace("*/", "* /").replace("/*", "/ *")
    return safe if len(safe) <= limit else safe[:limit - 4] + " ..."
