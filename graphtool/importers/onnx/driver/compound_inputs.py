"""Reads from the command line which tensors the sequences and optionals among the inputs hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphtool.dtypes import dtype
from graphtool.errors import UsageError
from graphtool.importers.onnx.driver.inputs import Parts
from graphtool.ir.graph import TensorType

_SPEC = re.compile(r"(?P<name>.+):(?P<parts>none|\w+\[[\d,\s]*\]|\(.*\))", re.DOTALL)
_TENSOR = re.compile(r"\s*(?P<type>\w+)\s*\[(?P<dims>[\d,\s]*)\]\s*")
_DEEPEST = 8


def read_parts(specs: Sequence[str]) -> dict[str, Parts]:
    """The parts by input name.

    A spec is `NAME:(f32[4],f32[5])` for a sequence, `NAME:f32[4]` or `NAME:none` for an optional.
    Raises UsageError GT1031 for any other text.
    """
    out: dict[str, Parts] = {}
    for text in specs:
        found = _SPEC.fullmatch(text.strip())
        if found is None:
            raise _unreadable(text)
        out[found["name"]] = _parts(found["parts"], text, 0)
    return out


def _parts(source: str, text: str, depth: int) -> Parts:
    source = source.strip()
    if source == "none":
        return None
    if source.startswith("(") and source.endswith(")") and depth < _DEEPEST:
        return tuple(_parts(s, text, depth + 1) for s in _split(source[1:-1]))
    found = _TENSOR.fullmatch(source)
    dims = [d.strip() for d in found["dims"].split(",")] if found else []
    if found is None or (dims != [""] and "" in dims):
        raise _unreadable(text)
    return TensorType(dtype(found["type"]), tuple(int(d) for d in dims if d))


def _split(source: str) -> list[str]:
    """The parts of the text between commas outside brackets; no parts for an empty text."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(source):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(source[start:i])
            start = i + 1
    last = source[start:]
    return [*parts, last] if last.strip() else parts


def _unreadable(text: str) -> UsageError:
    return UsageError("GT1031", f"cannot read what {text!r} is made of",
                      hint="NAME:(f32[4],f32[5]) for a sequence, NAME:f32[4] or NAME:none for an "
                           "optional")
