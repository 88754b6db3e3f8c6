"""Integers computed at run time, as dimensions: symbols that `size` nodes define.

Shape arithmetic is tried first, so that equal integers become the same dimension.
"""

from __future__ import annotations

import re
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.front import Front
from graphtool.importers.onnx.driver.inputs import Inputs
from graphtool.importers.onnx.driver.value_ranges import most_of
from graphtool.ir.graph import Node, Operand, Value
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, bounds, product, symbol

_LONGEST = 40  # letters of a value's name in its size's
EACH = 4  # so many nodes of the graph are allowed for each that the model may have
_DEPTH = 16  # nodes that are looked through


class Recorder(Front):
    """A builder that knows the model's symbols, and which computed integers are already sizes.

    `most` is how many nodes it takes: one node of the model may become millions.
    """

    repeats = False

    def __init__(self, symbols: Inputs, inside: bool = False, most: int | None = None) -> None:
        super().__init__(symbols.found, inside)
        self.most = most
        self.symbols = symbols
        self.bound: dict[tuple[Value, int], Dim] = {}

    def add(self, node: Node) -> None:
        """Append a node. Raises InputError GT1022 if it is one too many."""
        if self.most is not None and len(self.nodes) >= self.most:
            raise InputError("GT1022", f"the graph has more than {self.most} nodes",
                             where=self.where, hint="if that is meant: --limit nodes=NUMBER, "
                                                    f"which allows {EACH} for each")
        super().add(node)

    def fresh_stem(self) -> str:
        """The start of the name of a symbol for the node being built."""
        stem = re.sub(r"\W+", "_", self.prefix).strip("_") or "value"
        stem = stem[-_LONGEST:].lstrip("_") or "value"
        return f"v{stem}" if stem[0].isdigit() else stem

    def fresh(self, least: int | None, most: Dim | None) -> tuple[Dim, Dim | None]:
        """A new symbol named after the node being built, and its upper bound.

        `--dynamic` may narrow both bounds.
        """
        name = self.symbols.free_name(f"{self.fresh_stem()}_size")
        given = self.symbols.dynamic.get(name)
        if given is not None:
            least, most = given[0], given[1] if given[1] is not None else most
        return symbol(name, least, None if most is None else bounds(most)[1]), most


def fresh(like: Tracer, most: Dim | None) -> Dim:
    """A new size, to be defined by the node that is built next."""
    assert isinstance(like.builder, Recorder)
    return like.builder.fresh(0, most)[0]


def entry(x: Tracer, at: int, least: int | None = 0, most: Dim | None = None) -> Dim:
    """Element `at` of an integer tensor as a dimension between `least` and `most`."""
    builder = x.builder
    assert isinstance(builder, Recorder)
    known = resolved(x.value, at, builder)
    if known is not None:
        return known
    flat = o.reshape(x, shape=(product(x.shape),)) if x.ndim != 1 else x
    one = o.slice(flat, start=(at,), limit=(at + 1,), strides=(1,)) if product(x.shape) != 1 \
        else flat
    return bind(o.reshape(one, shape=()), least, most, (x.value, at))


def bind(scalar: Tracer, least: int | None = 0, most: Dim | None = None,
         key: tuple[Value, int] | None = None) -> Dim:
    """A computed scalar as a dimension between `least` and `most`."""
    builder = scalar.builder
    assert isinstance(builder, Recorder)
    known = resolved(scalar.value, 0, builder)
    if known is not None:
        return known
    if most is None:
        most = most_of(scalar.value, builder.made.get, lambda v, i: resolved(v, i, builder))
    size, most = builder.fresh(least, most)
    wide = scalar if scalar.dtype is dtypes.int64 else o.cast(scalar, dtype=dtypes.int64)
    o.size(wide, size=size, most=most)
    for k in (key, (scalar.value, 0), (wide.value, 0)):
        if k is not None:
            builder.bound[k] = size
    return size


# ---- what is known of it -----------------------------------------------------------------------

def resolved(x: Operand, at: int, builder: Recorder) -> Dim | None:
    """Element `at` of an integer value if the nodes before it determine it, else None."""
    return _resolved(x, at, builder, 0, {})


def _resolved(x: Operand, at: int, builder: Recorder, depth: int,
              seen: dict[tuple[Value, int, int], Dim | None]) -> Dim | None:
    if isinstance(x, int) and not isinstance(x, bool):
        return x
    if not isinstance(x, Value) or not x.type.dtype.is_integer or depth > _DEPTH:
        return None
    if (x, at) in builder.bound:
        return builder.bound[x, at]
    node = builder.made.get(x)
    look = None if node is None else _LOOK.get(node.op.name)
    if look is None:
        return None
    if (x, at, depth) not in seen:  # a value may be used twice at each level
        seen[x, at, depth] = look(node, at, lambda v, i: _resolved(v, i, builder, depth + 1, seen))
    return seen[x, at, depth]


def _through(node: Node, at: int, see: Any) -> Dim | None:
    return see(node.inputs[0], at)  # type: ignore[no-any-return]


def _constant(node: Node, at: int, see: Any) -> Dim | None:
    return int(node.attrs["data"].source.reshape(-1)[at])


def _part(node: Node, at: int, see: Any) -> Dim | None:
    if len(node.attrs["start"]) != 1 or not isinstance(node.attrs["start"][0], int):
        return None
    return see(  # type: ignore[no-any-return]
        node.inputs[0], node.attrs["start"][0] + at * node.attrs["strides"][0])


def _joined(node: Node, at: int, see: Any) -> Dim | None:
    if node.outputs[0].type.rank != 1:
        return None
    for x in node.inputs:
        assert isinstance(x, Value)
        n = x.type.shape[0]
        if not isinstance(n, int):
            return None
        if at < n:
            return see(x, at)  # type: ignore[no-any-return]
        at -= n
    return None


def _picked(node: Node, at: int, see: Any) -> Dim | None:
    x, indices = node.inputs
    if not isinstance(x, Value) or x.type.rank != 1:
        return None
    i = see(indices, at)
    return see(x, i) if isinstance(i, int) else None


def _arithmetic(node: Node, at: int, see: Any) -> Dim | None:
    found = []
    for x in node.inputs:
        single = isinstance(x, Value) and product(x.type.shape) == 1
        found.append(see(x, 0 if single else at))
    a, b = found
    if a is None or b is None:
        return None
    return a + b if node.op.name == "add" else a - b if node.op.name == "sub" else a * b  # type: ignore[no-any-return]


_LOOK = {"constant": _constant, "dim": lambda node, at, see: node.attrs["of"],
         "reshape": _through, "cast": _through, "size": _through, "slice": _part,
         "concat": _joined, "gather": _picked, "add": _arithmetic, "sub": _arithmetic,
         "mul": _arithmetic}
