"""Checks whether an op's facets are true, as far as its record alone can show.

A test checks the facets that only values can show (elementwise, commutative, …) with every case of
the table of ops.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from graphtool.dtypes import DType
from graphtool.io.weights import Weight
from graphtool.ir.facets import Align, Lowering, Movement, Trait
from graphtool.ir.graph import Graph
from graphtool.ir.op import Op
from graphtool.ir.plan import Plan
from graphtool.symbolic import Poly

KINDS = frozenset({int, bool, str, float, NoneType, Any, Poly, Graph, DType, Plan, Weight})
"""What an attribute may be: these, words, and tuples and unions of them; a file holds them all."""
_ATTRIBUTES = {Trait.WINDOWED: ("window",), Trait.SIZE: ("size",)}


def broken(op: Op) -> list[str]:
    """The facets of the op that its other fields contradict, in words."""
    return list(_schema(op)) or [*_functions(op), *_attributes(op), *_traits(op)]


def _schema(op: Op) -> Iterator[str]:
    """Annotations of `infer` that name what its file has not, or attributes that no file can
    hold."""
    try:
        attributes = op.schema.values()
    except NameError as error:
        yield f"has an `infer` whose annotations cannot be read: {error}"
        return
    yield from (f"has an attribute {a.name!r} that a file cannot hold: {a.annotation}"
                for a in attributes if not _holds(a.annotation))


def _holds(annotation: Any) -> bool:
    """Whether a file can hold a value so annotated."""
    if get_origin(annotation) is Literal or annotation in (None, ...):
        return True
    return all(map(_holds, args)) if (args := get_args(annotation)) else annotation in KINDS


def _functions(op: Op) -> Iterator[str]:
    if not op.doc:
        yield "has no doc: say what it computes"
    if op.eval is None and op.decompose is None:
        yield "has neither eval nor decompose"
    match op.lowering:
        case Lowering.PULL if op.lower is None:
            yield "lowers by a pull, and has no `lower`"
        case Lowering.VIEW | Lowering.WINDOW if op.lower is None:
            yield "has no `lower`, which is used if the operand cannot be read in place"
        case Lowering.NONE if op.decompose is None and op.category != "memory":
            yield "does not lower, and has no decomposition"


def _attributes(op: Op) -> Iterator[str]:
    """Facets that name attributes which the op does not have."""
    named = [n for trait, names in _ATTRIBUTES.items() if trait in op.traits for n in names]
    if (axes := op.axes) is not None:
        named += [*axes.names, *axes.each, *axes.spans, *axes.sizes]
        named += [n for n in (axes.order, axes.batch) if n]
    if op.indexing is not None and isinstance(op.indexing.axes, str):
        named.append(op.indexing.axes)
    if op.weighing is not None:
        named += [*op.weighing.only, *filter(None, [op.weighing.turned, op.weighing.across])]
    yield from (f"has no attribute {n!r}" for n in named if n not in op.schema)


def _traits(op: Op) -> Iterator[str]:
    if Trait.COMPOSITE in op.traits and op.decompose is None:
        yield "is a composite without decomposition"
    if (Trait.KERNEL | Trait.LAYOUT) & op.traits and Trait.COMPOSITE not in op.traits:
        yield "is decomposed late, but is not a composite"
    if (Trait.LIGHT | Trait.PICKS) & op.traits and Trait.ELEMENTWISE not in op.traits:
        yield "has a trait of elementwise ops, but is not elementwise"
    if Trait.ELEMENTWISE in op.traits and (op.axes is None or op.axes.align is not Align.TRAILING):
        yield "is elementwise, but its axes do not broadcast"
    if any(i >= len(op.operands) for i in op.scaled_by):
        yield "is scaled by an operand that it does not have"
    if Trait.NEST in op.traits and op.lower is None:
        yield "is a loop nest without `lower`"
    if op.movement is not Movement.NONE and op.cost is not None:
        yield "only moves elements, but has a cost in operations"
