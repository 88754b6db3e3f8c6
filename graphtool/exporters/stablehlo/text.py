"""The words of MLIR text: names, strings, types, attributes, numbers and arrays; and locations,
collected in aliases behind the module."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.escaping import mlir_string
from graphtool.io.weights import Weight
from graphtool.ir.graph import Location, TensorType
from graphtool.symbolic import Dim

ELIDED = "dense_resource<__elided__>"
_FEW = 32  # numbers up to which an array is written as numbers, not as bytes
_OTHER = re.compile(r"[^A-Za-z0-9_$.-]")


def identifier(wish: str) -> str:
    """A name as MLIR allows it behind % and @: other characters become `_`."""
    name = _OTHER.sub("_", wish)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"


def _key(name: str) -> str:
    return name if name == identifier(name) else mlir_string(name)


def tensor(t: TensorType) -> str:
    """`tensor<?x4xf32>`; an open size is `?`."""
    dims = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in t.shape)
    return f"tensor<{dims}{t.dtype.mlir}>"


def signature(operands: Sequence[TensorType], results: Sequence[TensorType]) -> str:
    """`(tensor<f32>) -> tensor<f32>`, several results in parentheses."""
    outs = ", ".join(map(tensor, results))
    given = ", ".join(map(tensor, operands))
    return f"({given}) -> " + (outs if len(results) == 1 else f"({outs})")


def ints(values: Iterable[Dim]) -> str:
    """`[1, 2]`."""
    return f"[{', '.join(map(str, values))}]"


def array(values: Sequence[Any]) -> str:
    """`array<i64: 1, 2>`."""
    return f"array<i64: {', '.join(map(str, values))}>" if values else "array<i64>"


def pairs(values: Sequence[Sequence[Any]]) -> str:
    """`dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>`."""
    rows = ", ".join(ints(v) for v in values)
    return f"dense<{f'[{rows}]' if rows else ''}> : tensor<{len(values)}x2xi64>"


def number(x: Any, dtype: DType) -> str:
    """One element of an array as MLIR reads it; NaN and infinities by their bits."""
    if dtype.kind == "bool":
        return str(bool(x)).lower()
    if dtype.is_integer:
        return str(int(x))
    value = float(x)
    if not math.isfinite(value):
        bits = np.asarray(x, dtype.numpy).reshape(1).view(f"u{dtype.bytes}")[0]
        return f"0x{int(bits):0{2 * dtype.bytes}X}"
    short = str(np.asarray(x, dtype.numpy)[()])  # the shortest that is read as the same number
    same = dtype.numpy.type(float(short)) == np.asarray(x, dtype.numpy)[()]
    return decimal(float(short) if same else value)


def decimal(value: float) -> str:
    """A finite float with a point, as MLIR wants it: `1.0e-05`."""
    digits, e, exponent = repr(value).partition("e")
    return f"{digits if '.' in digits else f'{digits}.0'}{e}{exponent}"


def dense(w: Weight, elide: bool = False) -> str:
    """`dense<…>` of an array: one number if all are equal, few numbers as lists, else bytes."""
    if w.size > _FEW and elide:
        return ELIDED
    x = w.source
    if not w.size:
        return "dense<>"
    flat = x.reshape(-1)
    raw = flat.view(f"u{w.dtype.bytes}")  # NaN equals itself, and −0 is not 0
    if (raw == raw[0]).all():
        return f"dense<{number(flat[0], w.dtype)}>"
    if w.size <= _FEW or w.dtype.kind == "bool" or w.dtype.is_packed:
        return f"dense<{_nested(x, w.dtype)}>"
    return f'dense<"0x{np.ascontiguousarray(x).tobytes().hex().upper()}">'


def _nested(x: Any, dtype: DType) -> str:
    return (f"[{', '.join(_nested(row, dtype) for row in x)}]" if x.ndim
            else number(x[()], dtype))


def attribute(x: Any) -> str:
    """A JSON value as an attribute: `1 : i64`, `0.5 : f64`, `"text"`, lists and dictionaries."""
    match x:
        case bool():
            return str(x).lower()
        case int():
            return f"{x} : i64"
        case float():
            return f"{decimal(x)} : f64"
        case str():
            return mlir_string(x)
        case dict():
            return "{" + ", ".join(f"{_key(k)} = {attribute(v)}" for k, v in x.items()) + "}"
        case _:
            return f"[{', '.join(map(attribute, x))}]"


# ---- locations ----------------------------------------------------------------------------------

_LINE = re.compile(r"(?P<file>\S.*):(?P<line>\d+)(?: (?P<function>.*))?")


class LocationAliases:
    """The table of aliases `#loc1`, filled as lines refer to it."""

    def __init__(self, locations: Mapping[str, Location]) -> None:
        self.locations = locations
        self.aliases: dict[str, str] = {}

    def text(self, key: str) -> str:
        """The place of a node for a message; "" if it has none."""
        location = self.locations.get(key)
        return f"{location.at} {location.text}".strip() if location else ""

    def suffix(self, key: str) -> str:
        """` loc(#loc1)` behind an operation; "" for a node without a place."""
        location = self.locations.get(key)
        if location is None:
            return ""
        text = _location(location.at)
        if text not in self.aliases:
            self.aliases[text] = f"#loc{len(self.aliases) + 1}"
        return f" loc({self.aliases[text]})"

    def definitions(self) -> list[str]:
        """The lines that define the aliases."""
        return [f"{alias} = loc({text})" for text, alias in self.aliases.items()]


def _location(at: str) -> str:
    """`"MLP.forward"("mlp.py":9:0)` for `mlp.py:9 MLP.forward`; anything else is a name."""
    match = _LINE.fullmatch(at)
    if match is None:
        return mlir_string(at)
    line = f'{mlir_string(match["file"])}:{match["line"]}:0'
    return f'{mlir_string(match["function"])}({line})' if match["function"] else line
