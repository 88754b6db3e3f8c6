"""Balances activations against weights: a channel's activation is divided by a factor, and its
weights are multiplied by it.

The result is the same; but large activations become easier to round (smoothing, Xiao et al. 2023),
or weights that matter become larger than the rounding (activation-aware, Lin et al. 2024). The
division joins the layer or the norm that makes the activation, where only these layers read it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, producers, use_counts
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.freeze import freeze
from graphtool.passes.quantise.calibrate import Calibration
from graphtool.passes.quantise.layers import Layer
from graphtool.passes.quantise.weights import blocks

Array = np.ndarray[Any, Any]
Factors = Mapping[Layer, Array]
_POWERS = np.linspace(0.0, 1.0, 11)
_LEAST = 1e-4  # the least factor, over the geometric mean of all


def smoothing(seen: Calibration, layers: Sequence[Layer], strength: float) -> Factors:
    """max|x|^strength / max|w|^(1 − strength) for each channel of x."""
    out: dict[Layer, Array] = {}
    for members in _by_activation(layers):
        w = np.max([_weight_sizes(m) for m in members], axis=0)
        x = np.max([seen.inputs[m].most for m in members], axis=0)
        with np.errstate(all="ignore"):
            factor = x ** strength / w ** (1 - strength)
        out.update(dict.fromkeys(members, _scaled(factor)))
    return out


def aware(seen: Calibration, layers: Sequence[Layer], bits: int, block: int) -> Factors:
    """mean|x|^a for each channel, with the a of 0 … 1 that has the least error on the examples."""
    out: dict[Layer, Array] = {}
    for members in _by_activation([m for m in layers if m.kind == "product"]):
        x = seen.inputs[members[0]].sample.astype(np.float32)
        size = np.abs(x).mean(0)
        tried = [_scaled(size ** power) for power in _POWERS]
        lost = [sum(_lost(m, x, f, bits, block) for m in members) for f in tried]
        best = tried[int(np.argmin(lost))]
        if not np.allclose(best, 1.0):
            out.update(dict.fromkeys(members, best))
    return out


def _lost(layer: Layer, x: Array, factor: Array, bits: int, block: int) -> float:
    """Σ (x·w − x·ŵ)² over the examples, with w rounded after it was multiplied by the factors."""
    error = blocks(layer.rows * factor, bits, block).real / factor - layer.rows
    return float(((x @ error.T) ** 2).sum())


def _scaled(factor: Array) -> Array:
    """Factors with the geometric mean 1; 1 for channels that are always 0."""
    good = np.isfinite(factor) & (factor > 0)
    if not good.any():
        return np.ones(factor.shape, np.float32)
    mean = np.exp(np.log(factor[good]).mean())
    return np.where(good, np.maximum(factor / mean, _LEAST), 1.0).astype(np.float32)


def _by_activation(layers: Sequence[Layer]) -> list[list[Layer]]:
    """The layers that can be balanced, those of one activation together."""
    out: dict[Value, list[Layer]] = {}
    for layer in layers:
        if layer.kind == "product" or (layer.kind == "conv" and layer.node.attrs["groups"] == 1):
            out.setdefault(layer.x, []).append(layer)
    return list(out.values())


def _weight_sizes(layer: Layer) -> Array:
    """The largest weight of each input channel."""
    w = np.abs(layer.w)
    axis = 1 if layer.kind == "conv" or layer.axis == 0 else 0
    return np.asarray(w.max(axis=tuple(a for a in range(w.ndim) if a != axis)))


# ---- in the graph ------------------------------------------------------------------------------

def balanced(graph: Graph, factors: Factors) -> Graph:
    """The graph with each of these layers' weights times its factors, and its activation divided
    by them."""
    return prune(freeze(rebuild(graph, _Balance(graph, factors).node))) if factors else graph


class _Balance:
    def __init__(self, graph: Graph, factors: Factors) -> None:
        self.layers = {m.node: (m, f) for m, f in factors.items()}
        made_by, uses = producers(graph), use_counts(graph)
        self.divide: dict[Node, tuple[Array, int]] = {}  # behind these nodes
        self.free: set[Value] = set()  # activations that need no division of their own
        for members in _by_activation(list(factors)):
            x = members[0].x
            if uses[x] == len(members):
                source = _maker(x, made_by, uses)
                if source is not None:
                    self.divide[source] = factors[members[0]], members[0].input_axis
                    self.free.add(x)
        self.divided: dict[Value, Any] = {}

    def node(self, node: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        if node in self.divide:
            result = self.layer(node, xs, b) if node in self.layers else node.op(
                *_wide(xs, b), **node.attrs)
            return (self.over(result, *self.divide[node], node),)
        return (self.layer(node, xs, b),) if node in self.layers else None

    def layer(self, node: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        layer, factor = self.layers[node]
        assert layer.weight is not None
        x, _, *rest = _wide(xs, b)
        if layer.x not in self.free:
            if layer.x not in self.divided:
                self.divided[layer.x] = _times(x, 1 / factor, layer.input_axis)
            x = self.divided[layer.x]
        axis = 1 if layer.kind == "conv" or layer.axis == 0 else 0
        shape = [-1 if a == axis else 1 for a in range(layer.w.ndim)]
        w = b.constant((layer.w * factor.reshape(shape)).astype(np.float32), layer.hint,
                       of=layer.weight.of)
        return node.op(x, w, *rest, **node.attrs)

    @staticmethod
    def over(y: Any, factor: Array, axis: int, node: Node) -> Any:
        """y divided by the factors: a norm's scale and bias are, freeze does it for products."""
        maker = y.builder.made_by[y.value]
        if not node.op.scaled_by:
            return _times(y, 1 / factor, axis)
        x, *terms = _wide(maker.inputs, y.builder)
        fresh = [y.builder.constant(np.asarray(
            y.builder.made_by[t.value].attrs["data"].source) / factor,
            y.builder.made_by[t.value].outputs[0].hint, of=y.builder.made_by[t.value].of)
            if t is not None else None for t in terms]
        return node.op(x, *fresh, **node.attrs)


def _wide(xs: Sequence[Operand], b: Builder) -> list[Any]:
    return [Tracer(x, b) if isinstance(x, Value) else x for x in xs]


def _times(x: Any, factor: Array, axis: int) -> Any:
    shape = (-1, *(1,) * (x.ndim - 1 - axis))
    return o.mul(x, x.builder.constant(np.asarray(factor, np.float32).reshape(shape)))


def _maker(x: Value, made_by: Mapping[Value, Node], uses: Mapping[Value, int]) -> Node | None:
    """The product, convolution or norm from which x comes through a relu at most, and whose result
    can be divided; None if there is none."""
    node = made_by.get(x)
    while node is not None and node.op.scaled_by == (0,):
        (v,) = node.inputs
        if not isinstance(v, Value) or uses[v] > 1:
            return None
        node = made_by.get(v)
    if node is None:
        return None
    terms = [made_by.get(t) if isinstance(t, Value) else t for t in node.inputs[1:]]
    if node.op.scaled_by:
        last = node.attrs.get("axes") in ((-1,), (x.type.rank - 1,))
        return node if last and terms and terms[0] is not None and all(
            t is None or (is_constant(t) and t.outputs[0].type.rank == 1) for t in terms
            if not isinstance(t, (int, float))) else None
    if node.op is o.add:
        inner = [made_by.get(t) for t in node.inputs if isinstance(t, Value)]
        pair = [n for n in inner if n is not None and _weighs(n)
                and uses[n.outputs[0]] == 1]
        return node if len(pair) == 1 and any(is_constant(n) for n in inner) and is_constant(
            made_by.get(pair[0].inputs[1])) else None  # type: ignore[arg-type]
    known = _weighs(node) and is_constant(terms[0])  # type: ignore[arg-type]
    return node if known else None


def _weighs(node: Node) -> bool:
    """Whether it is a product or a convolution, whose weight can hold factors of its result."""
    way = node.op.weighing
    return way is not None and way.kind != "table"
