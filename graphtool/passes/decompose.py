"""Replaces composites by the ops that define them, until only those are left that a kernel
computes whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphtool.errors import UsageError, near
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Node, Operand, TensorType
from graphtool.ir.op import OPS, Op
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder
from graphtool.rewrite.engine import Emitter


def decompose(graph: Graph, *, keep: tuple[str, ...] | None = None,
              layout_dependent: bool = True) -> Graph:
    """The graph with composites replaced by their definitions.

    `keep` names the composites to keep; by default the composites that kernel selection or lowering
    can use whole (`whole`). `layout_dependent` also replaces composites whose definition depends on
    the order of the axes (the trait `layout`); before the pass layout they are kept.
    """
    for name in keep or ():
        if name not in OPS:
            raise UsageError("GT0606", f"decompose: there is no op {name!r} to keep",
                             hint=near(name, OPS, "`graphtool ops` lists them"))
    changed = False

    def expand(op: Op, inputs: tuple[Operand, ...], attrs: Mapping[str, Any], _: TensorType,
               emitter: Emitter) -> Any:
        if not _opens(op, attrs, keep, layout_dependent) or op.decompose is None:
            return None
        return op.decompose(*map(emitter.wrap, inputs), **attrs)

    def visit(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Any:
        nonlocal changed
        if not _opens(node.op, node.attrs, keep, layout_dependent) or node.op.decompose is None:
            return None
        changed = True
        emitter = Emitter(builder, expand)
        out = node.op.decompose(*map(emitter.wrap, inputs), **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    new = rebuild(graph, visit)
    return decompose(prune(new), keep=keep, layout_dependent=layout_dependent) if changed else graph


def _opens(op: Op, attrs: Mapping[str, Any], keep: tuple[str, ...] | None,
           layout_dependent: bool) -> bool:
    """Whether a composite is replaced; a loop with a bound becomes a loop that counts its
    iterations."""
    if Trait.LAYOUT in op.traits and not layout_dependent:
        return False
    if Trait.COMPOSITE not in op.traits and attrs.get("bound") is None:
        return False
    return op.name not in keep if keep is not None else not whole(op)


def whole(op: Op) -> bool:
    """Whether kernel selection or lowering can use the op without decomposing it."""
    return Trait.KERNEL in op.traits or op.lowering is Lowering.STATEMENTS
