"""Attributes: numbers, strings, lists, dictionaries, arrays (`dense<…>`), fields (`#x<a = 1>`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphtool.importers.stablehlo.text.reader import Reader, Token, raw, unquoted
from graphtool.importers.stablehlo.text.tree import MlirType


@dataclass(frozen=True, slots=True)
class Dense:
    """The elements of an array as written: a number, nested lists, or bytes; `kind` is its type,
    None where the text gives it further behind."""

    elements: Any
    kind: MlirType | None = None


@dataclass(frozen=True, slots=True)
class Fields:
    """`#stablehlo.gather<offset_dims = [1], …>`; without names the parts in order."""

    name: str
    named: Mapping[str, Any]
    parts: tuple[Any, ...] = ()


class FunctionName(str):
    """The name of a function, written `@name`."""

    __slots__ = ()


def dictionary(r: Reader) -> dict[str, Any]:
    """`{a = 1 : i32, b}`: the values by name; a name alone is true."""
    out: dict[str, Any] = {}
    r.expect("{")
    while not r.take("}"):
        key = r.next()
        name = unquoted(key.text) if key.kind == "string" else key.text
        out[name] = value(r) if r.take("=") else True
        if not r.take(","):
            r.expect("}")
            break
    return out


def _number(r: Reader, t: Token) -> int | float:
    try:
        return int(t.text, 0) if t.text.lstrip("-")[:2] == "0x" or not any(
            c in t.text for c in ".eE") else float(t.text)
    except ValueError:  # 007, or thousands of digits
        raise r.fault("a number is expected", t) from None


def value(r: Reader, typed: bool = True) -> Any:
    """One attribute. Where it is `typed`, the type of a number may follow behind a colon."""
    t = r.next()
    match t.kind:
        case "number":
            out: Any = _number(r, t)
        case "string":
            out = unquoted(t.text)
        case "symbol":
            out = FunctionName(unquoted(t.text[1:]) if t.text[1] == '"' else t.text[1:])
        case "alias":
            out = _fields(r, t.text[1:]) if r.peek("<") else r.aliases.get(t.text, t.text)
        case "type":
            out = r.kind_of(t)
        case "word":
            out = _word(r, t.text)
        case _ if t.text == "[":
            out = _list(r, "]")
        case _ if t.text == "{":
            r.back()
            out = dictionary(r)
        case _ if t.text == "<":  # a form of another dialect, which nothing here reads
            r.back()
            r.skip("<")
            out = Fields("", {}, ())
        case _:
            raise r.fault("an attribute is expected", t)
    if typed and r.take(":"):
        kind = r.kind()
        if isinstance(out, Dense):
            out = Dense(out.elements, kind)
        elif isinstance(out, int) and kind.element[:1] in "fb" and not isinstance(out, bool):
            out = float(out)
    return out


def _word(r: Reader, word: str) -> Any:
    match word:
        case "true" | "false":
            return word == "true"
        case "dense":
            return Dense(_elements(r))
        case "dense_resource":
            return _resource(r)
        case "array":
            return _array(r)
        case "loc" if r.peek("("):
            r.skip("(")
            return None
        case _ if r.peek("<"):
            return _fields(r, word)
    return word


def _resource(r: Reader) -> Dense:
    """`dense_resource<name>`: an array that stands behind the program."""
    r.expect("<")
    name = r.next()
    r.expect(">")
    key = unquoted(name.text) if name.kind == "string" else name.text
    if key not in r.resources:
        raise r.fault(f"there is no resource {key!r} behind the program", name.at, "GT1304",
                      "the text was printed without its large arrays")
    return Dense(r.resources[key])


def _array(r: Reader) -> list[Any]:
    r.expect("<")
    r.next()  # the element type
    r.take(":")
    return _list(r, ">")


def _list(r: Reader, end: str) -> list[Any]:
    out: list[Any] = []
    while not r.take(end):
        out.append(value(r))
        if not r.take(","):
            r.expect(end)
            break
    return out


def _elements(r: Reader) -> Any:
    r.expect("<")
    if r.take(">"):
        return []
    out = _element(r)
    r.expect(">")
    return out


def _element(r: Reader) -> Any:
    t = r.next()
    match t.kind:
        case "number":
            return t.text
        case "string":
            return raw(t.text)
        case "word" if t.text in ("true", "false"):
            return t.text == "true"
        case _ if t.text in ("[", "("):
            end, out = {"[": "]", "(": ")"}[t.text], []
            while not r.take(end):
                out.append(_element(r))
                if not r.take(","):
                    r.expect(end)
                    break
            return tuple(out) if end == ")" else out
    raise r.fault("an element of an array is expected", t)


def _fields(r: Reader, name: str) -> Any:
    """`<a = 1, b = [2]>`, `<comparison_direction LT>` (the last word), or parts in order."""
    opened = r.at
    r.expect("<")
    named: dict[str, Any] = {}
    parts: list[Any] = []
    depth_safe = ("word", "number", "string")
    while not r.take(">"):
        t = r.token
        if t.kind == "word" and r.ahead(1).text == "=":
            r.next()
            r.next()
            named[t.text] = chained(r)
        elif t.kind in depth_safe or t.text == "[":
            parts.append(chained(r))
        else:  # a form of another dialect, which nothing here reads
            r.at = opened
            r.skip("<")
            return Fields(name, {}, ())
        r.take(",")
    if not named and parts and all(isinstance(p, str) for p in parts):
        return parts[-1]
    return Fields(name, named, tuple(parts))


def chained(r: Reader) -> Any:
    """One attribute, or several joined by `x` and `->`, as in `[b, f]x[i, o]->[b, f]`."""
    out = [value(r, typed=False)]
    while isinstance(out[0], list) and (r.take("x") or r.take("->")):
        out.append(value(r, typed=False))
    return out[0] if len(out) == 1 else tuple(out)
