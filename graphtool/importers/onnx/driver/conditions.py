"""Conditions on sizes: comparisons whose sides the run does not compute, as in `shape[2] == 1`."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphtool import ops as o
from graphtool.importers.onnx.driver.computed import Recorder, resolved
from graphtool.ir.graph import Value
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, known, text
from graphtool.symbolic.poly import Relation


class Comparison(NamedTuple):
    """`left relation right`, or that it does not hold."""

    left: Dim
    relation: Relation
    right: Dim
    holds: bool = True

    def __str__(self) -> str:
        told = f"{text(self.left)} {self.relation} {text(self.right)}"
        return told if self.holds else f"not {told}"

    @property
    def truth(self) -> bool | None:
        """Whether it is true for all sizes, or for none; None if that depends on them."""
        found = known(self.left, self.relation, self.right)
        return None if found is None else found is self.holds


def comparison(cond: Any) -> Comparison | None:
    """The comparison of sizes that a computed truth value is; None if it is anything else."""
    if not isinstance(cond, Tracer) or not isinstance(cond.builder, Recorder):
        return None
    builder, negated, x = cond.builder, False, cond.value
    while (node := builder.made.get(x)) is not None and isinstance(node.inputs[0], Value) and (
            node.op in (o.cast, o.reshape, o.not_)):
        negated ^= node.op is o.not_
        x = node.inputs[0]
    sides = _SIDES.get(node.op.name) if node is not None else None
    if node is None or sides is None:
        return None
    a, b = (resolved(v, 0, builder) for v in node.inputs)
    if a is None or b is None:
        return None
    relation, swapped, holds = sides
    return Comparison(*((b, relation, a) if swapped else (a, relation, b)), holds ^ negated)


# relation, whether the sides are exchanged, whether it must hold
_SIDES: dict[str, tuple[Relation, bool, bool]] = {
    "eq": ("==", False, True), "ne": ("==", False, False), "lt": ("<", False, True),
    "gt": ("<", True, True), "le": ("<=", False, True), "ge": ("<=", True, True)}
