"""Splits MLIR text into tokens, and says where a fault stands: line and column, from 1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from graphtool.errors import InputError

_NAME = r"[A-Za-z0-9_$.\-]+"
_TOKEN = re.compile(rf"""
      (?P<space>(?:\s+|//[^\n]*)+)
    | (?P<resources>\{{-\#)
    | (?P<type>(?:tensor|tuple|memref|vector|complex)<|![A-Za-z_][\w.]*)
    | (?P<value>%{_NAME}(?:\#\d+)?)
    | (?P<symbol>@(?:"(?:[^"\\]|\\.)*"|{_NAME}))
    | (?P<block>\^{_NAME})
    | (?P<alias>\#{_NAME})
    | (?P<string>"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?))
    | (?P<word>[A-Za-z_][\w.$]*)
    | (?P<sign>->|[()\[\]{{}}<>,:=*+?/|-])
    """, re.VERBOSE)
_ESCAPE = re.compile(rb'\\(?:([0-9A-Fa-f]{2})|(["\\nt]))')
_PLAIN = {b"n": b"\n", b"t": b"\t"}


class Token(NamedTuple):
    """One token; `at` is its offset in the text."""

    kind: str
    text: str
    at: int


END = "end"


def tokens(text: str) -> list[Token]:
    """All tokens, with one of kind `end` behind the last. A type such as `tensor<2xf32>` is one.

    Raises InputError GT1302 for a character that no token begins with. What stands between `{-#`
    and `#-}` is left out: `resources` reads it.
    """
    out: list[Token] = []
    at, match = 0, _TOKEN.match
    while at < len(text):
        found = match(text, at)
        if found is None:
            raise fault(text, at, f"{text[at]!r} begins no token")
        kind, end = str(found.lastgroup), found.end()
        if kind == "resources":
            kind, end = "space", text.find("#-}", at) + 3
            if end < 3:
                raise fault(text, at, "'{-#' is not closed by '#-}'")
        if kind == "type":
            if text[end:end + 1] == "<":
                end += 1
            end = _closing(text, end) if text[end - 1] == "<" else end
        if kind != "space":
            out.append(Token(kind, text[at:end], at))
        at = end
    out.append(Token(END, "", len(text)))
    return out


_RESOURCE = re.compile(r'([\w.$-]+|"(?:[^"\\]|\\.)*")\s*:\s*"0x([0-9A-Fa-f]*)"')
_ALIGNMENT = 8  # digits of a number in front of the bytes, which says how they are aligned


def resources(text: str) -> dict[str, bytes]:
    """The arrays behind a program, by name: the digits of their bytes, with 0x in front."""
    start = text.rfind("{-#")
    found = _RESOURCE.finditer(text, start) if start >= 0 else ()
    return {m[1].strip('"'): b"0x" + m[2][_ALIGNMENT:].encode() for m in found}


def _closing(text: str, at: int) -> int:
    """The offset behind the `>` that closes what was opened before `at`."""
    depth = 1
    for i in range(at, min(len(text), at + 100_000)):
        depth += (text[i] == "<") - (text[i] == ">" and text[i - 1] != "-")
        if not depth:
            return i + 1
    raise fault(text, at, "a type is not closed by '>'")


def fault(text: str, at: int, message: str, code: str = "GT1302", hint: str = "") -> InputError:
    """The error for a fault at an offset, with line, column and the line's text, to be raised."""
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    shown = text[start:text.find("\n", at) if "\n" in text[at:] else len(text)].strip()
    where = f"line {line}, column {at - start + 1}"
    return InputError(code, message, hint=hint,
                      where=(where, shown[:120]))


def unquoted(text: str) -> str:
    """What a string literal means: its escapes, two hexadecimal digits among them, replaced."""
    return raw(text).decode("utf-8", "replace")


def raw(text: str) -> bytes:
    """The bytes of a string literal."""
    body = text[1:-1].encode()
    return _ESCAPE.sub(lambda m: bytes.fromhex(m[1].decode()) if m[1] else _PLAIN.get(m[2], m[2]),
                       body) if b"\\" in body else body


def listed(kinds: Iterable[str]) -> str:
    """Words joined for a message: `'(' or '['`."""
    return " or ".join(f"'{k}'" for k in kinds)
