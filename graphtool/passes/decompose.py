"""Composites become the ops that define them, until none is left but those that stay whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.errors import UsageError
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Node, Operand, TensorType
from graphtool.ir.op import OPS, Op
from graphtool.ir.prune import prune
from graphtool.ir.trace import Builder, rebuild
from graphtool.rewrite.engine import Emitter


def decompose(graph: Graph, *, keep: tuple[str, ...] | None = None, placed: bool = True) -> Graph:
    """The graph with composites replaced by their definitions.

    `keep` names those that stay; unless given, they are those that kernel selection or lowering
    takes whole (`whole`). Before the layout is `placed`, those stay too whose definition depends
    on the order of the axes (the trait `layout`).
    """
    for name in keep or ():
        if name not in OPS:
            raise UsageError("GT0606", f"decompose: there is no op {name!r} to keep")
    found = False

    def expand(op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any], _: TensorType,
               emitter: Emitter) -> Any:
        if not _opens(op, attrs, keep, placed) or op.decompose is None:
            return None
        return op.decompose(*map(emitter.wrap, inputs), **attrs)

    def visit(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        nonlocal found
        if not _opens(node.op, node.attrs, keep, placed) or node.op.decompose is None:
            return None
        found = True
        emitter = Emitter(builder, expand)
        out = node.op.decompose(*map(emitter.wrap, inputs), **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    new = rebuild(graph, visit)
    return decompose(prune(new), keep=keep, placed=placed) if found else graph


def _opens(op: Op, attrs: Mapping[str, Any], keep: tuple[str, ...] | None, placed: bool) -> bool:
    """Whether a composite is expanded; a loop with a bound becomes one that counts iterations."""
    if Trait.LAYOUT in op.traits and not placed:
        return False
    if Trait.COMPOSITE not in op.traits and attrs.get("bound") is None:
        return False
    return op.name not in keep if keep is not None else not whole(op)


def whole(op: Op) -> bool:
    """Whether kernel selection or lowering takes the op as it is."""
    return Trait.KERNEL in op.traits or op.lowering is Lowering.STATEMENTS
