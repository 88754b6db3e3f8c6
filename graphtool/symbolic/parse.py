"""Parses the text of a dimension by recursive descent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from graphtool.errors import InputError, listed
from graphtool.symbolic import Dim, floordiv, maximum, minimum, mod

STRING = r'"(?:[^"\\\n]|\\.)*"'  # in double quotes, with JSON's escapes
_TOKEN = re.compile(rf"\s*({STRING}|\d+|//|[-+*%(),]|[^\s\-+*/%(),]+)")
_DEPTH = 100
_DIGITS = 30


def parse(source: str, table: Mapping[str, Dim]) -> Dim:
    """The dimension whose text `symbolic.text` printed; `table` gives the symbols by name.

    Raises InputError GT0311 for anything but integers, known names, + - * // % min max and
    parentheses. Nothing is evaluated as Python.
    """
    return _Parser(source, table).parse()


def unquoted(name: str) -> str:
    """The name of a symbol from its text, bare or in quotes. Raises ValueError for quotes around
    what is no JSON string."""
    return str(json.loads(name)) if name.startswith('"') else name


class _Parser:
    def __init__(self, source: str, table: Mapping[str, Dim]) -> None:
        self.source, self.table = source, table
        self.tokens: list[str] = []
        self.at = self.depth = 0
        end = 0
        while end < len(source.rstrip()):
            match = _TOKEN.match(source, end)
            if match is None:
                raise self.fault()
            self.tokens.append(match[1])
            end = match.end()

    def fault(self) -> InputError:
        return InputError("GT0311", f"cannot read the dimension {self.source[:80]!r}",
                          hint=f"known symbols: {listed(self.table)}")

    def parse(self) -> Dim:
        value = self.sum()
        if self.at != len(self.tokens):
            raise self.fault()
        return value

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def need(self, token: str) -> None:
        if not self.take(token):
            raise self.fault()

    def sum(self) -> Dim:
        self.depth += 1
        if self.depth > _DEPTH:
            raise self.fault()
        value = -self.term() if self.take("-") else self.term()
        while self.peek() in ("+", "-"):
            if self.take("+"):
                value = value + self.term()
            else:
                self.need("-")
                value = value - self.term()
        self.depth -= 1
        return value

    def term(self) -> Dim:
        value = self.atom()
        while (op := self.peek()) in ("*", "//", "%"):
            self.at += 1
            right = self.atom()
            if op != "*" and isinstance(right, int) and right <= 0:
                raise self.fault()
            value = {"*": lambda a, b: a * b, "//": floordiv, "%": mod}[op](value, right)
        return value

    def atom(self) -> Dim:
        token = self.peek()
        self.at += 1
        if token == "(":
            value = self.sum()
            self.need(")")
            return value
        if token in ("min", "max") and self.take("("):
            first = self.sum()
            self.need(",")
            second = self.sum()
            self.need(")")
            return minimum(first, second) if token == "min" else maximum(first, second)
        if token.isdecimal() and len(token) <= _DIGITS:
            return int(token)
        try:
            return self.table[unquoted(token)]
        except (KeyError, ValueError):
            raise self.fault() from None
