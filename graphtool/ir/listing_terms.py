"""The parts of a line of the listing, read character by character: words, types, data of constants,
values of attributes. A `Scanner` knows the position of a fault."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from graphtool.errors import InputError
from graphtool.io import files
from graphtool.ir.listing import FILL
from graphtool.ir.text import BARE, LITERALS, PLACE
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
            string: str = json.loads(match[0]) if match else ""
            string.encode()
        except ValueError as error:
            raise self.fault(f"not a string: {error}", start) from None
        if match is None:
            raise self.fault("a string without its end")
        return string

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


_TYPE = re.compile(rf'\w+\[(?:[^][\n"#]|{STRING})*\]')
_DATA = re.compile(r"sha256:[0-9a-f]+|base64:[A-Za-z0-9+/=]*")
_KEY = re.compile(r"([A-Za-z_]\w*)[ \t]*=")
_PARAMETER = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d{1,19})\s*")
_PLAN = re.compile(r"(\w+)\{([^{}\n]*)\}")
_EXPRESSION = re.compile(rf'(?:[^(),\n"#]|{STRING})+')

Row = dict[str, Any]


def tensor_type(scan: Scanner) -> str:
    """The text of a type; its sizes are parsed later."""
    match = scan.match(_TYPE)
    if match is None:
        raise scan.fault("expected a type", hint="as in f32[batch,3,224,224] or f32[]")
    return match[0]


def data(scan: Scanner, type: str) -> Row:
    """A constant's data: elements in brackets, one element for all, or a reference."""
    if match := scan.match(_DATA):
        return {"data": match[0]}
    start = scan.at
    if scan.take("["):
        elements = []
        while not scan.take("]"):
            elements.append(element(scan))
            scan.comma("]", "an element")
        return {"value": elements}
    one = element(scan)
    sizes = [d.strip() for d in type.partition("[")[2][:-1].split(",") if d]
    if not all(d.isdecimal() and len(d) < 20 for d in sizes):
        raise scan.fault("one element for all is allowed only where all sizes are numbers", start)
    count = math.prod(map(int, sizes))
    if count > FILL:
        raise scan.fault(f"one element for more than {FILL}", start)
    return {"value": [one] * count}


def element(scan: Scanner) -> Any:
    """One element of a constant, as JSON has it."""
    if scan.sees('"'):
        return scan.string()
    start = scan.at
    literal = scan.literal()
    if literal is None or literal[0] is None:
        raise scan.fault("expected a number, true, false or a string", start)
    return _tagged(literal[0])


def origin(scan: Scanner) -> Row:
    """`of block1.conv, block1.bn at digits.py:33`: the author's names, and the source line."""
    row: Row = {"of": names(scan)} if scan.word("of") else {}
    return row | ({"at": key(scan)} if scan.word("at") else {})


def key(scan: Scanner) -> str:
    """The key of a location, bare or in quotes."""
    if scan.sees('"'):
        return scan.string()
    match = scan.match(PLACE)
    if match is None:
        raise scan.fault("expected the key of a location")
    return match[0]


def arguments(scan: Scanner) -> tuple[list[Any], Row]:
    """Operands, then attributes, up to the closing bracket."""
    inputs: list[Any] = []
    attrs: Row = {}
    while not scan.take(")"):
        scan.skip()
        start = scan.at
        if match := scan.match(_KEY):
            if match[1] in attrs:
                raise scan.fault(f"the attribute {match[1]!r} is given twice", start)
            attrs[match[1]] = attribute(scan)
        elif attrs:
            raise scan.fault("an operand after an attribute")
        elif literal := scan.literal():
            x = _tagged(literal[0])
            inputs.append({"value": x} if isinstance(x, str) else x)
        else:
            inputs.append(scan.name("an operand or an attribute"))
        scan.comma(")", "an operand or an attribute")
    return inputs, attrs


def attribute(scan: Scanner) -> Any:
    """A literal, a string, a tuple, a plan, the name of a type, or a size such as `2*batch + 1`.

    A string that stands alone is no size; the size of a dim whose name needs quotes has brackets,
    `("a b")`.
    """
    scan.skip()
    start = scan.at
    if scan.sees('"'):
        string = scan.string()
        return string if scan.sees(",") or scan.sees(")") else expression(scan, start)
    if (literal := scan.literal()) and (scan.sees(",") or scan.sees(")")):
        return _tagged(literal[0])
    scan.at = start
    if match := scan.match(_PLAN):
        return _plan(scan, match)
    if scan.take("("):
        scan.open()
        items, comma = [], False
        while not scan.take(")"):
            items.append(attribute(scan))
            comma = scan.sees(",")
            scan.comma(")", "an item of a tuple")
        scan.close()
        if comma or len(items) != 1 or not isinstance(items[0], (int, str)):
            return items
    return expression(scan, start)


def _plan(scan: Scanner, match: re.Match[str]) -> Row:
    """The plan of a kernel, `winograd{tile=4,group=28}`."""
    pairs = [_PARAMETER.fullmatch(p) for p in match[2].split(",")] if match[2] else []
    if None in pairs:
        raise scan.fault("expected names and numbers", match.start(2), "winograd{tile=4,group=28}")
    return {"kind": match[1], **{p[1]: int(p[2]) for p in pairs if p}}


def choice(scan: Scanner) -> Row:
    """`"product{m=8}" cost "gemm{nv=2}" 1.2, "gemm{nv=1}" 1.9`."""
    row: Row = {"site": scan.name("what is computed"), "by": scan.name("cost or tuned"), "us": {}}
    while not row["us"] or scan.take(","):
        plan = scan.name("a plan")
        literal = scan.literal()
        if literal is None or type(literal[0]) not in (int, float):
            raise scan.fault("expected microseconds")
        row["us"][plan] = literal[0]
    return row


def expression(scan: Scanner, start: int) -> str:
    """The text of a size, or one word, from `start`; the position may be behind `start`."""
    level = 0
    scan.at = start
    while scan.at < len(scan.source):
        if match := _EXPRESSION.match(scan.source, scan.at):
            scan.at = match.end()
            continue
        c = scan.source[scan.at]
        if c not in "()," or (level == 0 and c != "("):
            break
        level += (c == "(") - (c == ")")
        scan.at += 1
    text = scan.source[start:scan.at].strip()
    if not text or level:
        raise scan.fault("expected a value: a number, a string, a tuple, a type or a size")
    return text


def names(scan: Scanner) -> list[str]:
    """Names with commas up to the end of the line; none if the line has no more text."""
    scan.skip()
    if scan.at == len(scan.source) or scan.source[scan.at] == "\n":
        return []
    result = [scan.name("a value")]
    while scan.take(","):
        result.append(scan.name("a value"))
    return result


def _tagged(x: Any) -> Any:
    """A scalar as JSON has it: NaN and infinities as text."""
    return files.tagged_float(x) if isinstance(x, float) else x
