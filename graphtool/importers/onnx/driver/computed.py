"""Integers computed at run time, as dimensions: symbols that `size` nodes define.

Shape arithmetic is tried first, so that equal integers become the same dimension.
"""

from __future__ import annotations

import re

from graphtool import dtypes
from graphtool import ops as o
from graphtool.errors import InputError
from graphtool.front import Array, Front
from graphtool.front.known import Elements
from graphtool.importers.onnx.driver.inputs import Inputs
from graphtool.ir.graph import Node, Value
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Condition, Dim, Poly, bounds, compared, product, symbol
from graphtool.symbolic.conditions import Truth

_LONGEST = 40  # letters of a value's name in its size's
EACH = 4  # so many nodes of the graph are allowed for each that the model may have


class Recorder(Front):
    """A builder that knows the model's symbols, and which computed integers are already sizes.

    `most` is how many nodes it takes: one node of the model may become millions.
    """

    repeats = False

    def __init__(self, symbols: Inputs, inside: bool = False, most: int | None = None) -> None:
        super().__init__(symbols.knowledge, inside)
        self.most = most
        self.symbols = symbols
        self.bound: dict[tuple[Value, int], Dim] = {}

    @property
    def elements(self) -> Elements:
        """What is known of the elements of values so far."""
        return Elements(self.made_by.get, self.bound)

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
    known = known_element(x, at)
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
    known = known_element(scalar, 0)
    if known is not None:
        return known
    if most is None:
        most = builder.elements.most(scalar.value)
    size, most = builder.fresh(least, most)
    wide = scalar if scalar.dtype is dtypes.int64 else o.cast(scalar, dtype=dtypes.int64)
    o.size(wide, size=size, most=most)
    for k in (key, (scalar.value, 0), (wide.value, 0)):
        if k is not None:
            builder.bound[k] = size
    return size


def known_element(x: Tracer, at: int) -> Dim | None:
    """Element `at` of an integer tensor if it is known, or the nodes before determine it, else
    None."""
    assert isinstance(x, Array) and isinstance(x.builder, Recorder)
    if not x.dtype.is_integer:
        return None
    element = x.builder.elements.size(x.value, at) if x.known is None else x.known.reshape(-1)[at]
    return element if element is None or isinstance(element, Poly) else int(element)


def truth_of(x: Tracer) -> Truth | None:
    """Whether a truth value holds for all sizes or for none, or its condition on them; None if it
    depends on data."""
    assert isinstance(x, Array) and isinstance(x.builder, Recorder)
    element = x.builder.elements.size(x.value, 0) if x.known is None else x.known.reshape(-1)[0]
    if isinstance(element, (int, Poly)) and not isinstance(element, bool):
        element = compared("!=", element, 0)
    return element if isinstance(element, (bool, Condition)) else None
