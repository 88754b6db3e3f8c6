"""Ops that hand a value on, and values that need no operand."""

from __future__ import annotations

from typing import Any

from graphtool.exporters.stablehlo.registry import Ref, body, definition, form
from graphtool.exporters.stablehlo.sizes import size, vector
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import Node
from graphtool.symbolic import Poly


@definition("barrier")
def _barrier(x: Any) -> Any:
    return x


@body("assume")
def assume(w: Writer, node: Node, x: Ref) -> Ref:
    """The operand: sizes are checked where they are used."""
    return x


@form("iota")
def iota(w: Writer, node: Node) -> Ref:
    """The index along an axis."""
    to, axis = node.outputs[0].type, node.attrs["axis"] % len(node.attrs["shape"])
    if any(isinstance(d, Poly) for d in to.shape):
        return w("dynamic_iota", vector(w, to.shape), to=to, attrs=f", dim = {axis}", node=to.shape)
    return w("iota", to=to, attrs=f"dim = {axis}", node=to.shape)


@form("dim")
def dim(w: Writer, node: Node) -> Ref:
    """A size as a scalar."""
    of = node.attrs["of"]
    return w("convert", size(w, of), to=node.outputs[0].type, node=[of])


@body("size")
def defined(w: Writer, node: Node, n: Ref) -> Ref:
    """The number itself; behind it the open size is read from it."""
    return n
