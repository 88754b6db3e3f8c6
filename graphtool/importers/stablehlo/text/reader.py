"""A position in the tokens of a text, and the steps that all parts of the parser take."""

from __future__ import annotations

from typing import Any

from graphtool.errors import InputError
from graphtool.importers.stablehlo.text.lexer import (
    END,
    Token,
    fault,
    listed,
    resources,
    tokens,
    unquoted,
)
from graphtool.importers.stablehlo.text.tree import Origin
from graphtool.importers.stablehlo.text.types import Kind, Signature, read_kind

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
        found = self.peek(*texts)
        self.at += found
        return found

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

    def fault(self, message: str, at: Token | int, code: str = "GT1302",
              hint: str = "") -> InputError:
        """The error for a fault at a token or an offset, to be raised."""
        if isinstance(at, Token):
            found = f", found {at.text[:40]!r}" if at.text else ", found the end of the text"
            return fault(self.text, at.at, message + (found if "expected" in message else ""),
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

    def kind_of(self, t: Token) -> Kind:
        """The type that a token says. Raises InputError GT1302 for a shape that is none."""
        kind = read_kind(t.text)
        if t.text.startswith("tensor<") and (kind.shape is None or kind.element[:1] in ("", "x")):
            raise self.fault(f"{t.text[:60]!r} is not a type of a tensor", t.at)
        return kind

    def kind(self) -> Kind:
        """A type: a token of its own, or a word such as `f32`."""
        t = self.next()
        if t.kind not in ("type", "word"):
            raise self.fault("a type is expected", t)
        return self.kind_of(t)

    def kinds(self) -> tuple[Kind, ...]:
        """`(t, t)`, `()` or one type."""
        if not self.take("("):
            return (self.kind(),)
        out: list[Kind] = []
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
                    line = int(self.kind_expected("number", "a line"))
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
