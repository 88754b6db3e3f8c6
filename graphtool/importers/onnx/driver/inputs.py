"""Types of graph inputs, the symbols that stand for their open dimensions, and the tensors that
make up an input that is a sequence or optional, as the command line gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any

from graphtool.dtypes import dtype
from graphtool.errors import InputError, UsageError, listed, near
from graphtool.front import Refused
from graphtool.front.assumptions import Bounds, SizeKnowledge
from graphtool.importers.onnx.driver.reader import element_type
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim, Symbol, symbols
from graphtool.symbolic.parse import parse

Range = tuple[int, int | None]
Number = bool | int | float
Parts = TensorType | Number | Sequence["Parts"] | None
"""What an input is made of: a sequence or an optional of tensors, or nothing; a tensor of one
number, which is then no input."""
_UNKNOWN = ("", "?", "-1", "None")  # written where a size is not known, for each its own
_SIGNS = re.compile(r"[-+*/%(),\s]+")


class Inputs:
    """The symbols defined so far; `dynamic` gives bounds by name."""

    def __init__(self, dynamic: Mapping[str, Bounds], knowledge: SizeKnowledge) -> None:
        self.dynamic: dict[str, Range] = {name: (row[0], row[1]) for name, row in dynamic.items()
                                          if not isinstance(row, str)}
        self.knowledge = knowledge
        self.symbols: dict[str, Symbol] = {}
        self.named: dict[str, Dim] = {}
        self.computed: set[str] = set()  # sizes that nodes define
        self.settled: dict[str, set[int]] = {}
        self.unnamed = 0
        for name, (lo, hi) in self.dynamic.items():
            if lo < 0 or (hi is not None and hi < lo):
                raise UsageError("GT1030", f"the bounds {lo}..{hi} of {name!r} allow no size",
                                 hint="the first number is 0 or more and not above the second")

    def check_names(self, given: Iterable[str]) -> None:
        """Refuse what was `given` by --dynamic if the model has no such open size.

        Raises UsageError GT1104."""
        known = list(dict.fromkeys((*self.named, *self.symbols, *self.computed)))
        for key in given:
            if key not in known:
                raise UsageError("GT1104", f"there is no open size {key!r}", hint=near(
                    key, known, f"they are {listed(known)}") if known else
                    "all sizes of the model are fixed")

    def type(self, info: Any) -> TensorType:
        """The type of a graph input; an optional tensor has the type of its tensor.

        Raises Refused for sequences, maps and unknown ranks.
        """
        proto = info.type
        if proto.WhichOneof("value") == "optional_type":
            proto = proto.optional_type.elem_type
        kind = proto.WhichOneof("value")
        if kind != "tensor_type":
            raise Refused(f"an input of kind {(kind or 'unknown').removesuffix('_type')}, not a "
                          "tensor: import it with what it is made of, as in --inputs "
                          f"'{info.name}:(f32[4],f32[5])' (in Python, `made_of`)")
        tensor = proto.tensor_type
        row = element_type(tensor.elem_type)
        if not tensor.HasField("shape"):
            raise Refused("the model does not give the rank of this input; declare its shape in "
                          "the model")
        return TensorType(row, tuple(self.dim(d, info.name) for d in tensor.shape.dim))

    def dim(self, d: Any, where: str) -> Dim:
        """One dimension of an input: its number, its named symbol, or a new symbol."""
        match d.WhichOneof("value"):
            case "dim_value":
                if d.dim_value < 0:
                    return self.fresh()
                return int(d.dim_value)
            case "dim_param" if d.dim_param not in _UNKNOWN:
                return self.name(d.dim_param)
            case _:
                return self.fresh()

    def settle(self, proto: Any, parts: Parts) -> None:
        """Record the numbers that `parts` gives for named dimensions of a sequence or optional
        type."""
        match proto.WhichOneof("value"):
            case "sequence_type":
                for part in parts if isinstance(parts, Sequence) else ():
                    self.settle(proto.sequence_type.elem_type, part)
            case "optional_type":
                self.settle(proto.optional_type.elem_type, parts)
            case "tensor_type" if isinstance(parts, TensorType):
                for d, n in zip(proto.tensor_type.shape.dim, parts.shape, strict=False):
                    if d.dim_param and isinstance(n, int):
                        self.settled.setdefault(d.dim_param, set()).add(n)

    def use_settled(self) -> None:
        """Replace each named dimension that has one recorded number by that number."""
        self.named |= {name: n for name, (n, *more) in self.settled.items() if not more}

    def free_name(self, stem: str) -> str:
        """A name from `stem` that no symbol has, and reserves it."""
        numbered = (f"{stem}{i}" for i in count(2))
        name = next(n for n in chain([stem], numbered)
                    if n not in self.symbols and n not in self.computed)
        self.computed.add(name)
        return name

    def fresh(self) -> Dim:
        """A new symbol for a dimension without a name: `dim0`, `dim1` and so on."""
        while True:
            name = f"dim{self.unnamed}"
            self.unnamed += 1
            if name not in self.symbols:
                return self._declare(name)

    def name(self, param: str) -> Dim:
        """The dimension of a dim_param: a symbol, or an expression over known symbols."""
        if param in self.named:
            return self.named[param]
        dim: Dim | None = None
        if _SIGNS.search(param.strip()):
            with suppress(InputError, ValueError, ZeroDivisionError):
                dim = parse(param, self.named)
        if dim is None:
            clean = _SIGNS.sub("_", param).strip("_") or "dim"
            while clean in self.symbols:
                clean += "_"
            dim = self._declare(clean, param)
        self.named[param] = dim
        return dim

    def _declare(self, name: str, param: str = "") -> Dim:
        bounds = self.dynamic.get(param or name, self.dynamic.get(name))
        if bounds is None:
            self.knowledge.untold.add(name)
        dim = self.knowledge.facts.size(name, *(bounds or (0, None)))
        for s in symbols(dim):
            self.symbols[s.name] = s
        return dim


def declared_shapes(graph: Any) -> dict[str, tuple[int, ...]]:
    """The shape of each value whose dimensions the model declares as numbers."""
    return {name: tuple(d for d in dims if d is not None)
            for name, dims in declared_dims(graph).items() if None not in dims}


def declared_dims(graph: Any) -> dict[str, tuple[int | None, ...]]:
    """The dimensions of each value whose rank the model declares; None for a dimension that is no
    number."""
    out = {}
    for info in (*graph.value_info, *graph.output):
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
            out[info.name] = tuple(
                d.dim_value if d.WhichOneof("value") == "dim_value" and d.dim_value >= 0 else None
                for d in tensor.shape.dim)
    return out


# ---- sequences and optionals --------------------------------------------------------------------

_SPEC = re.compile(r"(?P<name>.+):(?P<parts>none|\w+\[[\d,\s]*\]|\(.*\))", re.DOTALL)
_FIXED = re.compile(r"(?P<name>.+)=(?P<number>true|false|-?\d+(\.\d+)?([eE][-+]?\d+)?)", re.DOTALL)
_TENSOR = re.compile(r"\s*(?P<type>\w+)\s*\[(?P<dims>[\d,\s]*)\]\s*")
_DEEPEST = 8


def read_parts(specs: Sequence[str]) -> dict[str, Parts]:
    """The parts by input name.

    A spec is `NAME:(f32[4],f32[5])` for a sequence, `NAME:f32[4]` or `NAME:none` for an optional,
    `NAME=2` for a tensor. Raises UsageError GT1031 for any other text.
    """
    out: dict[str, Parts] = {}
    for text in specs:
        if match := _SPEC.fullmatch(text.strip()):
            out[match["name"]] = _parts(match["parts"], text, 0)
        elif match := _FIXED.fullmatch(text.strip()):
            out[match["name"]] = json.loads(match["number"])
        else:
            raise _unreadable(text)
    return out


def _parts(source: str, text: str, depth: int) -> Parts:
    source = source.strip()
    if source == "none":
        return None
    if source.startswith("(") and source.endswith(")") and depth < _DEEPEST:
        return tuple(_parts(s, text, depth + 1) for s in _split(source[1:-1]))
    match = _TENSOR.fullmatch(source)
    dims = [d.strip() for d in match["dims"].split(",")] if match else []
    if match is None or (dims != [""] and "" in dims):
        raise _unreadable(text)
    return TensorType(dtype(match["type"]), tuple(int(d) for d in dims if d))


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
                           "optional, NAME=2 for a tensor that is always 2")
