"""Reads a listing character by character: words, strings, numbers, and the position of a fault."""

from __future__ import annotations

import json
import re

from graphtool.errors import InputError
from graphtool.ir.text import BARE, LITERALS
from graphtool.symbolic.parse import STRING

_BLANK = re.compile(r"[ \t\r]+|#[^\n]*")
_STRING = re.compile(STRING)
_LITERAL = re.compile(r"(-?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)|true|false|none)"
                      r"(?=[\s,()\]]|$)")
_DEPTH = 50
_AROUND = 60  # characters shown on each side of a fault

Scalar = int | float | bool | None


class Scanner:
    """A position in a text. Within brackets, and after a comma, the end of a line is a blank."""

    def __init__(self, source: str, where: str) -> None:
        self.source, self.where = source, where
        self.at = self.depth = self.nesting = 0

    def fault(self, message: str, at: int | None = None, hint: str = "") -> InputError:
        """An InputError GT0357 with line, column and a mark below the position."""
        at = self.at if at is None else at
        return InputError("GT0357", message, where=self.place(at).split("\n"), hint=hint)

    def place(self, at: int) -> str:
        """`m.gt:3:14`, the text of that line (part of a long one) and a mark below the column."""
        start = self.source.rfind("\n", 0, at) + 1
        end = self.source.find("\n", at)
        line = self.source[start:end if end >= 0 else None]
        column = at - start
        first = max(0, column - _AROUND)
        shown = re.sub(r"[^\x20-\x7e]", lambda m: m[0] if m[0].isprintable() else " ",
                       line[first:column + _AROUND])
        row = self.source.count("\n", 0, at) + 1
        return f"{self.where}:{row}:{column + 1}\n{shown}\n{' ' * (column - first)}^"

    def skip(self, lines: bool = False) -> None:
        """Move past blanks and comments, and past line ends where they have no meaning."""
        while self.at < len(self.source):
            if match := _BLANK.match(self.source, self.at):
                self.at = match.end()
            elif self.source[self.at] == "\n" and (lines or self.depth):
                self.at += 1
            else:
                return

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of the pattern here, after blanks; the position moves behind it."""
        self.skip()
        if match := pattern.match(self.source, self.at):
            self.at = match.end()
        return match

    def sees(self, token: str) -> bool:
        """Whether `token` comes next after spaces and comments; the position stays before it."""
        self.skip()
        return self.source.startswith(token, self.at)

    def take(self, token: str) -> bool:
        """Whether `token` comes next; if so, the position moves behind it."""
        if not self.sees(token):
            return False
        self.at += len(token)
        self.depth += (token in ("(", "[")) - (token in (")", "]"))
        if token == ",":
            self.skip(lines=True)
        return True

    def need(self, token: str, after: str) -> None:
        """Read `token`. Raises InputError GT0357 if something else comes after `after`."""
        if not self.take(token):
            raise self.fault(f"expected {token!r} after {after}")

    def comma(self, closing: str, after: str) -> None:
        """Read a comma, unless the closing bracket is next. Raises InputError GT0357 if neither
        is."""
        if not self.sees(closing) and not self.take(","):
            raise self.fault(f"expected ',' or {closing!r} after {after}")

    def open(self) -> None:
        """Count one more level of nesting. Raises InputError GT0357 above a limit that protects
        Python's own stack."""
        self.nesting += 1
        if self.nesting > _DEPTH:
            raise self.fault(f"more than {_DEPTH} levels of nesting")

    def close(self) -> None:
        """Count one level of nesting less."""
        self.nesting -= 1

    def word(self, token: str) -> bool:
        """Whether this whole word comes next; if so, the position moves behind it."""
        self.skip()
        match = BARE.match(self.source, self.at)
        if match is None or match[0] != token:
            return False
        self.at = match.end()
        return True

    def name(self, what: str) -> str:
        """A name, bare or in quotes."""
        if self.sees('"'):
            return self.string()
        match = BARE.match(self.source, self.at)
        if match is None or match[0] in LITERALS:
            raise self.fault(f"expected {what}", hint="a name that is a number, a literal, or has "
                                                      "blanks or signs, needs double quotes")
        self.at = match.end()
        return match[0]

    def string(self) -> str:
        """A string in double quotes, with JSON's escapes."""
        start = self.at
        match = self.match(_STRING)
        try:
            found: str = json.loads(match[0]) if match else ""
            found.encode()
        except ValueError as error:
            raise self.fault(f"not a string: {error}", start) from None
        if match is None:
            raise self.fault("a string without its end")
        return found

    def literal(self) -> tuple[Scalar] | None:
        """A number, `true`, `false` or `none`, in a tuple of one; None for anything else."""
        start = self.at
        match = self.match(_LITERAL)
        if match is None:
            return None
        words: dict[str, Scalar] = {"true": True, "false": False, "none": None}
        token = match[1]
        if token in words:
            return (words[token],)
        try:
            return (int(token) if token.lstrip("-").isdecimal() else float(token),)
        except ValueError:  # Python reads no integer of thousands of digits
            raise self.fault("a number too long", start) from None

    def line_ends(self, after: str) -> None:
        """Raises InputError GT0357 if anything but a comment follows on this line."""
        self.skip()
        if self.at < len(self.source) and self.source[self.at] != "\n":
            raise self.fault(f"expected the end of the line after {after}")
