"""The tokens of a text, a position in them, and the steps that all parts of the parser take. A
fault is named by its line and column, from 1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from graphtool.errors import InputError
from graphtool.importers.stablehlo.text.tree import MlirType, Origin, Signature, read_kind

# ---- tokens -------------------------------------------------------------------------------------

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
        if text[at] == '"' and (end := text.find('"', at + 1)) > 0 and text.find("\\", at, end) < 0:
            out.append(Token("string", text[at:end + 1], at))  # it may be the bytes of a weight
            at = end + 1
            continue
        m = match(text, at)
        if m is None:
            raise fault(text, at, f"{text[at]!r} begins no token")
        kind, end = str(m.lastgroup), m.end()
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
    matches = _RESOURCE.finditer(text, start) if start >= 0 else ()
    return {m[1].strip('"'): b"0x" + m[2][_ALIGNMENT:].encode() for m in matches}


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


# ---- a position in the tokens -------------------------------------------------------------------

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}


class Reader:
    """Reads tokens in order. `aliases` has the attributes that were given a name, `origins` the
    locations."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.at = text, tokens(text), 0
        self.aliases: dict[str, Any] = {}
        self.resources = resources(text)
        self.origins: dict[str, Origin] = {}

    @property
    def token(self) -> Token:
        """The next token, which stays."""
        return self.tokens[self.at]

    def ahead(self, n: int) -> Token:
        """The token n places further on."""
        return self.tokens[min(self.at + n, len(self.tokens) - 1)]

    def next(self) -> Token:
        """The next token. Raises InputError GT1302 at the end of the text."""
        t = self.tokens[self.at]
        if t.kind == END:
            raise self.fault("the text ends here", t)
        self.at += 1
        return t

    def back(self) -> None:
        """Go back by one token."""
        self.at -= 1

    def peek(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or words."""
        t = self.tokens[self.at]
        return t.text in texts and t.kind not in ("string", END)

    def take(self, *texts: str) -> bool:
        """`peek`, and go on if it is."""
        present = self.peek(*texts)
        self.at += present
        return present

    def expect(self, *texts: str) -> Token:
        """The next token, one of these. Raises InputError GT1302 for any other."""
        if not self.peek(*texts):
            raise self.fault(f"{listed(texts)} is expected", self.token)
        return self.next()

    def kind_expected(self, kind: str, what: str) -> str:
        """The text of the next token, which must be of this kind."""
        if self.token.kind != kind:
            raise self.fault(f"{what} is expected", self.token)
        return self.next().text

    def whole(self, what: str) -> int:
        """The whole number of the next token."""
        at, text = self.token, self.kind_expected("number", what)
        try:
            return int(text)
        except ValueError:  # 1e9, 0x1, or thousands of digits
            raise self.fault(f"{what} is expected", at) from None

    def fault(self, message: str, at: Token | int, code: str = "GT1302",
              hint: str = "") -> InputError:
        """The error for a fault at a token or an offset, to be raised."""
        if isinstance(at, Token):
            instead = f", found {at.text[:40]!r}" if at.text else ", found the end of the text"
            return fault(self.text, at.at, message + (instead if "expected" in message else ""),
                         code, hint)
        return fault(self.text, at, message, code, hint)

    def skip(self, opening: str) -> None:
        """Go behind the bracket that closes the next one."""
        start = self.expect(opening)
        depth = [_PAIRS[opening]]
        while depth:
            t = self.token
            if t.kind == END:
                raise self.fault(f"{opening!r} is not closed", start.at)
            self.at += 1
            if t.kind == "sign" and t.text in _PAIRS:
                depth.append(_PAIRS[t.text])
            elif t.kind == "sign" and t.text == depth[-1]:
                depth.pop()

    # ---- types ---------------------------------------------------------------------------------

    def kind_of(self, t: Token) -> MlirType:
        """The type that a token says. Raises InputError GT1302 for a shape that is none."""
        kind = read_kind(t.text)
        if t.text.startswith("tensor<") and (kind.shape is None or kind.element[:1] in ("", "x")):
            raise self.fault(f"{t.text[:60]!r} is not a type of a tensor", t.at)
        return kind

    def kind(self) -> MlirType:
        """A type: a token of its own, or a word such as `f32`."""
        t = self.next()
        if t.kind not in ("type", "word"):
            raise self.fault("a type is expected", t)
        return self.kind_of(t)

    def kinds(self) -> tuple[MlirType, ...]:
        """`(t, t)`, `()` or one type."""
        if not self.take("("):
            return (self.kind(),)
        out: list[MlirType] = []
        while not self.take(")"):
            out.append(self.kind())
            if not self.take(","):
                self.expect(")")
                break
        return tuple(out)

    def signature(self, results: int) -> Signature:
        """What stands behind the colon: `(t, t) -> t`, `t -> t`, or types of which the last are
        those of the results."""
        if self.peek("("):
            operands = self.kinds()
            self.expect("->")
            return Signature(operands, self.kinds())
        listed_kinds = [self.kind()]
        while self.take(","):
            listed_kinds.append(self.kind())
        if self.take("->"):
            return Signature(tuple(listed_kinds), self.kinds())
        if not results:
            return Signature(tuple(listed_kinds), ())
        return Signature((), tuple(listed_kinds[len(listed_kinds) - results:]))

    # ---- locations -----------------------------------------------------------------------------

    def location(self) -> Origin | None:
        """`loc(…)` behind an operation, if it is there."""
        if not self.peek("loc"):
            return None
        self.next()
        self.expect("(")
        out = self._origin()
        self.expect(")")
        return out

    def _origin(self) -> Origin:
        t = self.next()
        match t.kind, t.text:
            case "alias", name:
                return Origin("alias", name)
            case "string", quoted:
                name = unquoted(quoted)
                if self.take(":"):
                    line = self.whole("a line")
                    while self.peek(":", "to") or self.token.kind == "number":
                        self.next()
                    return Origin("file", name, line)
                if self.take("("):
                    inner = self._origin()
                    self.expect(")")
                    return Origin("name", name, 0, (inner,))
                return Origin("name", name)
            case "word", "callsite":
                self.expect("(")
                callee = self._origin()
                self.expect("at")
                caller = self._origin()
                self.expect(")")
                return Origin("call", "", 0, (callee, caller))
            case "word", "fused":
                if self.peek("<"):
                    self.skip("<")
                self.expect("[")
                parts = [self._origin()]
                while self.take(","):
                    parts.append(self._origin())
                self.expect("]")
                return Origin("fused", "", 0, tuple(parts))
            case "word", "unknown":
                return Origin("fused")
        raise self.fault("a location is expected", t)
