"""Corrects what batch norms give: rounding changes the mean and the variance of each channel.

Behind a norm a channel has the mean and the variance that training gave it, on which later layers
rely. They are measured in the float model and in the quantised one, on the same examples; then the
norm's factor and term are changed so that they agree again. Where a norm is folded into a layer,
these are the scales of its weights and its bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphtool import interp
from graphtool import ops as o
from graphtool.ir.graph import Graph, Module, Node, Operand, Value, is_constant, producers
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.text import value_names
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.quantise.calibrate import Batch
from graphtool.passes.quantise.grids import Grid
from graphtool.passes.quantise.layers import Layer
from graphtool.passes.quantise.rewrite import NO_GRIDS, LayerChoice, rewritten
from graphtool.passes.quantise.weights import Blocks, Channels, Half, Stored
from graphtool.rewrite.patterns import MATCHED, bindings, pattern

Array = np.ndarray[Any, Any]
_ROUNDS = 4  # at most: a corrected norm changes what the later ones read
_STILL = 1e-3  # a change of this part of the spread is the last one
_MOST = 2.0  # a factor is at most so large, and at least its reciprocal: few examples mislead


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean and the standard deviation of each channel."""

    mean: Array
    spread: Array


@dataclass(frozen=True, eq=False)
class Norms:
    """The results of batch norms by name: the axis of channels, and their moments in the float
    model; `data` are the examples."""

    axes: Mapping[str, int]
    wanted: Mapping[str, Moments]
    data: Sequence[Batch]


@dataclass(frozen=True, eq=False)
class ChannelChange:
    """A channel y becomes y·factor + term."""

    factor: Array
    term: Array

    def then(self, other: ChannelChange) -> ChannelChange:
        """This change, and the other after it."""
        return ChannelChange(self.factor * other.factor, self.term * other.factor + other.term)


def norms(module: Module, folded: Module, data: Sequence[Batch]) -> Norms:
    """The batch norms of the module, as far as their results are values of the folded one."""
    names, kept = value_names(module.graph), set(value_names(folded.graph).values())
    axes = {names[n.outputs[0]]: n.attrs["axis"] % n.outputs[0].type.rank
            for n in module.graph.nodes if n.op is o.batch_norm}
    axes = {name: axis for name, axis in axes.items() if name in kept}
    return Norms(axes, _moments(folded, axes, data), data)


def _moments(module: Module, axes: Mapping[str, int], data: Sequence[Batch]) -> dict[str, Moments]:
    sums: dict[str, Array] = {}

    def seen(name: str, x: Array) -> None:
        if name in axes:
            rows = np.moveaxis(x, axes[name], -1).reshape(-1, x.shape[axes[name]])
            wide = rows.astype(np.float64)
            part = np.stack([np.full(wide.shape[1], float(len(wide))), wide.sum(0),
                             (wide ** 2).sum(0)])
            sums[name] = sums[name] + part if name in sums else part
    for batch in data:
        interp.run(module, batch, on_value=seen)
    out = {}
    for name, (count, total, squares) in sums.items():
        mean = total / count
        out[name] = Moments(mean, np.sqrt(np.maximum(squares / count - mean ** 2, 0.0)))
    return out


def corrected(module: Module, chosen: Sequence[LayerChoice], trained: frozenset[str],
              norms: Norms, stored: Mapping[Value, Grid] = NO_GRIDS) -> Module:
    """The module with these layers and `stored` activations, where the results of batch norms have
    the moments of the float model."""
    names = value_names(module.graph)
    layers = {names[_result(c.layer)]: c for c in chosen if c.layer.weight is not None}
    changes: dict[str, ChannelChange] = {}
    for _ in range(_ROUNDS):
        now = _changed(module, chosen, trained, layers, changes, stored)
        seen = _moments(now, norms.axes, norms.data)
        more = {name: _towards(got, norms.wanted[name]) for name, got in seen.items()}
        changes = {n: changes[n].then(c) if n in changes else c for n, c in more.items()}
        if all(_small(c, norms.wanted[n]) for n, c in more.items()):
            break
    return _changed(module, chosen, trained, layers, changes, stored)


def _result(layer: Layer) -> Value:
    return (layer.bias or layer.node).outputs[0]


def _towards(got: Moments, want: Moments) -> ChannelChange:
    """What gives a channel the moments that are wanted; a constant channel keeps its factor."""
    with np.errstate(all="ignore"):
        factor = np.where((got.spread > 0) & (want.spread > 0), want.spread / got.spread, 1.0)
    factor = np.clip(factor, 1 / _MOST, _MOST)
    return ChannelChange(factor, want.mean - factor * got.mean)


def _small(change: ChannelChange, want: Moments) -> bool:
    return bool((np.abs(change.factor - 1) < _STILL).all() and (
        np.abs(change.factor * want.mean + change.term - want.mean)
        <= _STILL * want.spread.mean()).all())


def _changed(module: Module, chosen: Sequence[LayerChoice], trained: frozenset[str],
             layers: Mapping[str, LayerChoice], changes: Mapping[str, ChannelChange],
             stored: Mapping[Value, Grid]) -> Module:
    """The quantised module with these changes: in the layers, or in norms that stand alone."""
    scaled = {id(layers[n]): _scaled(layers[n], c) for n, c in changes.items() if n in layers}
    graph = rewritten(module.graph, [scaled.get(id(c), c) for c in chosen], trained,
                      stored)
    alone = {n: c for n, c in changes.items() if n not in layers}
    return replace(module, graph=_affine(graph, alone) if alone else graph)


def _scaled(c: LayerChoice, change: ChannelChange) -> LayerChoice:
    shift = change.term if c.shift is None else change.term + change.factor * c.shift
    return replace(c, stored=_times(c.layer, c.stored, change.factor), gain=change.factor,
                   shift=shift)


def _times(layer: Layer, s: Stored, factor: Array) -> Stored:
    """The weight with each output channel multiplied by its factor."""
    if isinstance(s, Blocks):
        return replace(s, scales=(s.scales * factor[:, None]).astype(np.float32))
    shape = [-1 if a == layer.axis else 1 for a in range(layer.w.ndim)]
    wide = factor.reshape(shape)
    if isinstance(s, Channels):
        return replace(s, scales=(s.scales * wide).astype(np.float32))
    if isinstance(s, Half):
        return Half((s.w.astype(np.float32) * wide).astype(s.w.dtype))
    return s


# ---- norms that stand alone --------------------------------------------------------------------

_AFFINE = pattern(lambda x, k, c: o.add(o.mul(x, k), c))


def _affine(graph: Graph, changes: Mapping[str, ChannelChange]) -> Graph:
    """The graph with other constants in x·k + c, by the name of the sum."""
    made_by, names = producers(graph), value_names(graph)
    inner: dict[Node, ChannelChange] = {}
    outer: dict[Node, ChannelChange] = {}
    for node in graph.nodes:
        change = changes.get(names[node.outputs[0]]) if node.outputs else None
        env = next(bindings(_AFFINE, node.outputs[0], made_by.get), None) if change else None
        factor = None if env is None else made_by[env[MATCHED][1]]
        if change is not None and factor is not None and all(
                _constant(n, made_by) is not None for n in (node, factor)):
            inner[factor], outer[node] = change, change

    def rewrite(node: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        change = inner.get(node) or outer.get(node)
        if change is None:
            return None
        at = _constant(node, made_by)
        assert at is not None
        held = made_by[node.inputs[at]]  # type: ignore[index]
        old = np.asarray(held.attrs["data"].source).astype(np.float64)
        new = old * change.factor.reshape(old.shape)
        new = new + change.term.reshape(old.shape) if node in outer else new
        operands = [Tracer(x, b) if isinstance(x, Value) else x for x in xs]
        operands[at] = b.constant(new.astype(np.float32), held.outputs[0].hint,
                                  bool(held.attrs["param"]), held.of)
        return (node.op(*operands, **node.attrs),)
    return prune(rebuild(graph, rewrite))


def _constant(node: Node, made_by: Mapping[Value, Node]) -> int | None:
    """Which operand is a constant with a number for each channel."""
    return next((i for i, v in enumerate(node.inputs) if isinstance(v, Value) and is_constant(
        made_by.get(v)) and sum(d != 1 for d in v.type.shape) <= 1), None)
