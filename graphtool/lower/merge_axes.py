"""Merges adjacent axes of purely elementwise units, so that their loops are few and long."""

from __future__ import annotations

from graphtool.ir.facets import Trait
from graphtool.ir.graph import Value
from graphtool.loops.view import View
from graphtool.lower.units import Unit
from graphtool.symbolic import Dim, product


def merged(unit: Unit, outputs: list[Value], views: dict[Value, View]) -> dict[Value, View]:
    """The views over merged axes; not changed unless every op of the unit is elementwise."""
    if not all(Trait.ELEMENTWISE in n.op.traits for n in unit.nodes):
        return views
    shape = outputs[0].type.shape
    if any(v.type.shape != shape for v in outputs):
        return views
    wide = {v: _expand(view, len(shape)) for v, view in views.items()}
    groups = _runs(shape, list(wide.values()))
    if len(groups) == len(shape):
        return views
    return {v: _merge(view, groups) for v, view in wide.items()}


def _expand(v: View, rank: int) -> View:
    """The view with leading axes of size 1 up to the rank."""
    skip = rank - len(v.shape)
    return View(v.buffer, v.dtype, (1,) * skip + v.shape, (0,) * skip + v.strides, v.offset)


def _runs(shape: tuple[Dim, ...], views: list[View]) -> list[list[int]]:
    """Groups of axes that one loop can cover: in every view the outer stride equals the size of the
    inner axis times its stride."""
    groups: list[list[int]] = []
    for axis in range(len(shape)):
        outer = next((a for a in reversed(groups[-1]) if shape[a] != 1), None) if groups else None
        if groups and (outer is None or shape[axis] == 1
                       or all(_joins(v, outer, axis, shape) for v in views)):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _joins(v: View, outer: int, inner: int, shape: tuple[Dim, ...]) -> bool:
    small_outer, small_inner = v.shape[outer] == 1, v.shape[inner] == 1
    if small_outer or small_inner:
        return small_outer and small_inner
    return v.strides[outer] == v.strides[inner] * shape[inner]


def _merge(v: View, groups: list[list[int]]) -> View:
    shape = tuple(product(v.shape[a] for a in g) for g in groups)
    strides = tuple(next((v.strides[a] for a in reversed(g) if v.shape[a] != 1), 0)
                    for g in groups)
    return View(v.buffer, v.dtype, shape, strides, v.offset)
