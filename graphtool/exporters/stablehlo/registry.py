"""The tables of how our ops are written in StableHLO.

A form writes operations; it is a function of the writer, the node and its operands: a Ref for each
tensor, literals and None unchanged. What it returns are the results: a Ref or a tuple of them.

* `FORMS`: the operations are read back as the same op, mostly a single one.
* `BODIES`: the operations are the body of a function; a composite that has our op's name calls it.
* `DEFINITIONS`: the same, for a body that is written with other ops of ours. Ops that are in no
  table have their decomposition as body.

A form that raises Declined leaves the op to the next table.
"""

from __future__ import annotations

from collections.abc import Callable

from graphtool.dtypes import DType, string
from graphtool.errors import Signal
from graphtool.exporters.forms import Declined, F, Form, into
from graphtool.front.names import Word, word
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Node, Value
from graphtool.symbolic import Symbol


class Unsized(Signal):
    """Raised where a size cannot be computed from what a function has; the text is the reason."""

    def __init__(self, symbol: Symbol) -> None:
        super().__init__(f"the size {symbol.name} does not follow from the inputs")
        self.symbol = symbol


FORMS: dict[str, Form] = {}
BODIES: dict[str, Form] = {}
DEFINITIONS: dict[str, Form] = {}


def form(*names: str) -> Callable[[F], F]:
    """Register a function as the form of the ops `names`."""
    return into(FORMS, names)


def body(*names: str) -> Callable[[F], F]:
    """Register a function as the body of a composite for the ops `names`."""
    return into(BODIES, names)


def definition(*names: str) -> Callable[[F], F]:
    """Register a function of tracers and attributes, which defines the ops `names` by others.

    It may raise Declined, and is then passed over.
    """
    return into(DEFINITIONS, names)


def named(op: str, dtype: DType) -> Word:
    """The operation that the table of names has for an op. Declines without one."""
    name = word(op, "hlo", dtype)
    if name is None:
        raise Declined
    return name


def reason_against(node: Node) -> str:
    """Why no program in StableHLO can have this node; "" for most."""
    if Trait.WORLD in node.op.traits:
        return "it exchanges values between processes; an exported program is one process"
    if any(v.type.dtype is string for v in (*node.outputs, *node.inputs)
           if isinstance(v, Value)):
        return "StableHLO has no strings"
    if node.op.name in ("decode_image", "image_shape"):
        return "it reads the bytes of a picture"
    if node.op.category == "memory" and node.op.decompose is None:
        return ("it orders a weight for one of our kernels; export the graph as it is before the "
                "pass `select`")
    return ""
