"""Operations: the generic form `"a.b"(%x) <{…}> ({…}) : (t) -> t`, and the short forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.importers.stablehlo.text import attributes, pretty
from graphtool.importers.stablehlo.text.attributes import Dense
from graphtool.importers.stablehlo.text.reader import Reader, unquoted
from graphtool.importers.stablehlo.text.tree import (
    Argument,
    MlirType,
    Operation,
    Origin,
    Region,
    Signature,
)

_DEPTH = 100
_RETURNS = ("return", "func.return", "stablehlo.return")


class Parts:
    """What has been read of one operation."""

    def __init__(self, name: str, results: tuple[str, ...], at: int) -> None:
        self.name, self.results, self.at = name, results, at
        self.operands: list[str] = []
        self.attrs: dict[str, Any] = {}
        self.regions: list[Region] = []
        self.signature = Signature((), ())
        self.origin: Origin | None = None

    def done(self, origin: Origin | None) -> Operation:
        """The operation, with attributes under the names of the generic form."""
        return Operation(self.name, tuple(self.operands), pretty.flat(self.attrs),
                         tuple(self.regions), self.results, self.signature, self.at,
                         origin or self.origin)


def block(r: Reader, depth: int) -> tuple[Operation, ...]:
    """`{ operations }`, or the operations up to the `}` behind them."""
    if depth > _DEPTH:
        raise r.fault(f"regions are nested more than {_DEPTH} deep", r.token.at)
    out = []
    while not r.take("}"):
        out.append(operation(r, depth))
    return tuple(out)


def region(r: Reader, depth: int) -> Region:
    """`{ ^bb0(%a: t): operations }`."""
    r.expect("{")
    arguments: tuple[Argument, ...] = ()
    if r.token.kind == "block":
        r.next()
        arguments = block_arguments(r) if r.peek("(") else ()
        r.expect(":")
    body = block(r, depth + 1)
    return Region(arguments, body)


def block_arguments(r: Reader) -> tuple[Argument, ...]:
    """`(%a: t loc(…), %b: t)`, with attributes in braces where there are any."""
    r.expect("(")
    out = []
    while not r.take(")"):
        name = r.kind_expected("value", "an argument such as %arg0")
        r.expect(":")
        kind = r.kind()
        attrs = attributes.dictionary(r) if r.peek("{") else {}
        out.append(Argument(name, kind, attrs, r.location()))
        if not r.take(","):
            r.expect(")")
            break
    return tuple(out)


def operation(r: Reader, depth: int) -> Operation:
    """One operation with its results and its location."""
    start = r.token
    if start.kind == "block":
        raise r.fault("a region of several blocks is not read", start.at, "GT1304",
                      "JAX writes control flow as while, if and case")
    p = Parts("", _results(r), start.at)
    t = r.next()
    if t.kind == "string":
        p.name = unquoted(t.text)
        _generic(r, p, depth)
    elif t.kind == "word":
        p.name = t.text
        _SPECIAL.get(t.text, _short)(r, p, depth)
    else:
        raise r.fault("an operation is expected", t)
    if p.name in _RETURNS:
        p.name = "return"
    elif len(p.signature.results) != len(p.results) and (p.results or p.signature.results):
        if p.results:
            raise r.fault(f"{p.name} has {len(p.signature.results)} types of results, and "
                          f"{len(p.results)} names", start.at)
        p.results = tuple(f"%{start.at}#{i}" for i in range(len(p.signature.results)))
    return p.done(r.location())


def _results(r: Reader) -> tuple[str, ...]:
    """`%0 =`, `%0:2 =` or `%a, %b =`; nothing where the operation has no named results."""
    names: list[str] = []
    while r.token.kind == "value":
        name = r.next().text
        if r.take(":"):
            count = r.whole("a number of results")
            names += [f"{name}#{i}" for i in range(min(count, 10_000))]
        else:
            names.append(name)
        if not r.take(","):
            r.expect("=")
            break
    return tuple(names)


def _uses(r: Reader) -> list[str]:
    """`(%a, %b)`."""
    r.expect("(")
    out = []
    while not r.take(")"):
        out.append(r.kind_expected("value", "an operand such as %0"))
        if not r.take(","):
            r.expect(")")
            break
    return out


# ---- forms -------------------------------------------------------------------------------------

def _generic(r: Reader, p: Parts, depth: int) -> None:
    p.operands = _uses(r)
    if r.peek("["):
        raise r.fault("successors of an operation are not read", r.token.at, "GT1304")
    if r.take("<"):
        p.attrs.update(attributes.dictionary(r))
        r.expect(">")
    if r.take("("):
        p.regions.append(region(r, depth))
        while r.take(","):
            p.regions.append(region(r, depth))
        r.expect(")")
    if r.peek("{"):
        p.attrs.update(attributes.dictionary(r))
    r.expect(":")
    operands = r.kinds()
    r.expect("->")
    p.signature = Signature(operands, r.kinds())


def _short(r: Reader, p: Parts, depth: int) -> None:
    """Operands, `key = attribute`, words, a function's name and a dictionary, up to the types."""
    keys, words, value = {}, [], None
    while not r.peek(":"):
        t = r.token
        if t.kind == "value":
            p.operands.append(r.next().text)
        elif t.kind == "word" and r.ahead(1).text == "=":
            r.next()
            r.next()
            keys[t.text] = attributes.chained(r)
        elif t.text == "<" and p.name.startswith("sdy."):
            r.skip("<")  # a sharding
        elif t.text in ("dense", "dense_resource", "array") or t.kind in ("symbol", "string"):
            value = attributes.value(r, typed=False)
        elif t.kind == "word" and t.text != "loc" and "." not in t.text and (
                r.text.rfind("\n", p.at, t.at) < 0):
            words.append(r.next().text)
        elif t.text == "(":
            keys |= _arguments(r, p)
        elif t.text == "{":
            p.attrs.update(attributes.dictionary(r))
        elif not r.take(","):
            break
    p.attrs.update(pretty.named(p.name, keys, words, value))
    if r.take(":"):
        p.signature = r.signature(len(p.results))
        if p.name in _RETURNS:
            p.signature = Signature((), ())
    elif p.name not in _RETURNS:
        raise r.fault(f"the types of {p.name} are expected", r.token)
    if isinstance(value, Dense):
        kinds = p.signature.results or p.signature.operands
        p.attrs["value"] = Dense(value.elements, kinds[-1])


def _arguments(r: Reader, p: Parts) -> dict[str, Any]:
    """`(%a, %b, k = 3)`: operands are added, what has a key is returned."""
    keys = {}
    r.expect("(")
    while not r.take(")"):
        if r.token.kind == "word" and r.ahead(1).text == "=":
            key = r.next().text
            r.expect("=")
            keys[key] = attributes.chained(r)
        else:
            p.operands.append(r.kind_expected("value", "an operand such as %0"))
        if not r.take(","):
            r.expect(")")
            break
    return keys


def _slice(r: Reader, p: Parts, depth: int) -> None:
    """`%x [0:4, 1:9:2]`."""
    p.operands.append(r.kind_expected("value", "an operand such as %0"))
    rows: list[list[int]] = []
    r.expect("[")
    while not r.take("]"):
        row = [r.whole("a number")]
        while r.take(":"):
            row.append(r.whole("a number"))
        rows.append(row)
        if not r.take(","):
            r.expect("]")
            break
    _short(r, p, depth)
    if any(len(row) not in (2, 3) for row in rows):
        raise r.fault("a slice is start:limit or start:limit:stride on each axis", p.at)
    p.attrs |= {"start_indices": [row[0] for row in rows], "limit_indices": [r_[1] for r_ in rows],
                "strides": [row[2] if len(row) == 3 else 1 for row in rows]}


def _while(r: Reader, p: Parts, depth: int) -> None:
    """`(%a = %x, …) : types cond {…} do {…}`."""
    r.expect("(")
    names = []
    while not r.take(")"):
        names.append(r.kind_expected("value", "a carried value such as %iterArg"))
        r.expect("=")
        p.operands.append(r.kind_expected("value", "an operand such as %0"))
        if not r.take(","):
            r.expect(")")
            break
    kinds: list[MlirType] = []
    if r.take(":"):
        kinds.append(r.kind())
        while r.take(","):
            kinds.append(r.kind())
    if r.take("attributes"):
        p.attrs.update(attributes.dictionary(r))
    if len(kinds) != len(names):
        raise r.fault(f"the loop carries {len(names)} values, and has {len(kinds)} types", p.at)
    arguments = tuple(Argument(n, k) for n, k in zip(names, kinds, strict=True))
    for word in ("cond", "do"):
        r.expect(word)
        p.regions.append(Region(arguments, region(r, depth).operations))
    p.signature = Signature(tuple(kinds), tuple(kinds))


def _reduce(r: Reader, p: Parts, depth: int) -> None:
    """`(%x init: %i), (%y init: %j) applies op across dimensions = […]`, or with a reducer."""
    starts: list[str] = []
    while r.take("("):
        p.operands.append(r.kind_expected("value", "an operand such as %0"))
        r.expect("init")
        r.expect(":")
        starts.append(r.kind_expected("value", "a first value such as %cst"))
        r.expect(")")
        r.take(",")
    p.operands += starts
    applied = r.kind_expected("word", "an operation") if r.take("applies") else ""
    r.expect("across")
    r.expect("dimensions")
    r.expect("=")
    p.attrs["dimensions"] = attributes.value(r, typed=False)
    if r.peek("{"):
        p.attrs.update(attributes.dictionary(r))
    r.expect(":")
    p.signature = r.signature(len(starts))
    p.origin = r.location()
    scalars = [MlirType(k.element, ()) for k in p.signature.operands[:len(starts)]]
    if applied:
        names = ("%a", "%b")
        inner = Operation(applied, names, {}, (), ("%c",), Signature((), (scalars[0],)), p.at)
        last = Operation("return", ("%c",), {}, (), (), Signature((), ()), p.at)
        p.regions.append(Region(tuple(Argument(n, scalars[0]) for n in names), (inner, last)))
        return
    r.expect("reducer")
    pairs = []
    while r.peek("("):
        pairs.append(block_arguments(r))
    if any(len(pair) != 2 for pair in pairs):
        raise r.fault("a reducer takes pairs of arguments", p.at)
    body = region(r, depth)
    p.regions.append(Region((*(a for a, _ in pairs), *(b for _, b in pairs)), body.operations))


_SPECIAL: dict[str, Callable[[Reader, Parts, int], None]] = {
    "stablehlo.slice": _slice, "stablehlo.while": _while, "stablehlo.reduce": _reduce,
}
