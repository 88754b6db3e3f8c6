"""Puts quantised layers into a graph: integers for weights, grids for activations.

A static layer reads (q − zero)·scale of the integers q of its activation, and its weight is
int8·scale: the form in which quantised ONNX models are imported, so that the pass `integer` finds
the integer product. A value on a grid is on it wherever it is only moved, and each time the graph
says so: runtimes look no further than one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant, names_of, producers
from graphtool.ir.replay import prune, rebuild
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.quantise.grids import Grid, quantised, real
from graphtool.passes.quantise.layers import Layer, moved, stays
from graphtool.passes.quantise.weights import Beside, Blocks, Channels, Form, Half, Stored
from graphtool.symbolic import product

Array = np.ndarray[Any, Any]
NO_GRIDS: Mapping[Value, Grid] = {}
_LEAST = 1e-30  # the least scale of an activation at run time: a row of zeros has none of its own


@dataclass(frozen=True, eq=False)
class LayerChoice:
    """What a layer becomes: its form, its rounded weight, the grid of its activation if it is
    static; what its bias is multiplied by for each channel, and what is then added to it."""

    layer: Layer
    form: Form
    stored: Stored
    grid: Grid | None = None
    shift: Array | None = None
    gain: Array | None = None


def rewritten(graph: Graph, chosen: Sequence[LayerChoice], trained: frozenset[str] = frozenset(),
              stored: Mapping[Value, Grid] = NO_GRIDS) -> Graph:
    """The graph with these layers, and with the `stored` activations on their grids. The names in
    `trained` are parameters again, whose constants `freeze` had made."""
    return prune(rebuild(graph, _Rewrite(graph, chosen, trained, stored).node)) if chosen else graph


class _Rewrite:
    """One rebuilding of a graph."""

    def __init__(self, graph: Graph, chosen: Sequence[LayerChoice], trained: frozenset[str],
                 stored: Mapping[Value, Grid]) -> None:
        self.made_by, self.trained = producers(graph), trained
        self.chosen = {c.layer.node: c for c in chosen}
        self.biases = {c.layer.bias: c for c in chosen if c.layer.bias is not None}
        self.grids: dict[Value, Grid] = {}
        self.shared: set[Value] = set()  # values whose other readers too take the grid
        for c in chosen:
            for v in moved(c.layer.x, self.made_by) if c.grid and c.layer.other is None else ():
                assert c.grid is not None
                self.grids[v] = c.grid
                if c.layer.kind == "conv":
                    self.shared.add(v)
        for v, grid in stored.items():
            for u in moved(v, self.made_by):
                self.grids.setdefault(u, grid)
                self.shared.add(u)
        self.on_grid: dict[Value, Tracer] = {}
        self.rows: dict[Value, Tracer] = {}
        self.rounded: dict[tuple[Value, bool, Grid], Tracer] = {}

    def node(self, node: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        """The results for a node, or None to keep it."""
        if is_constant(node):
            return self.constant(node, b)
        if node in self.chosen:
            return (self.layer(self.chosen[node], xs, b),)
        if node in self.biases:
            return self.biased(self.biases[node], node, xs, b)
        moves = stays(node)
        taken = [self.gridded(old, x, b) if isinstance(old, Value) and old in self.grids and (
            moves or (old in self.shared and not self.kept(node))) else x
            for old, x in zip(node.inputs, xs, strict=True)]
        if all(x is y for x, y in zip(taken, xs, strict=True)):
            return None
        out = node.op(*(Tracer(x, b) if isinstance(x, Value) else x for x in taken), **node.attrs)
        return out if isinstance(out, tuple) else (out,)

    def kept(self, node: Node) -> bool:
        """Whether the node is a product that stays in floats: it reads the exact activation."""
        way = node.op.weighing
        return way is not None and way.kind != "table"

    def constant(self, node: Node, b: Builder) -> Any:
        hint = node.outputs[0].hint
        if hint not in self.trained or node.attrs["param"]:
            return None
        return (b.constant(node.attrs["data"], hint, True, node.of),)

    def gridded(self, old: Value, x: Operand, b: Builder) -> Tracer:
        """The numbers of x's grid nearest to x; computed once."""
        if old not in self.on_grid:
            assert isinstance(x, Value)
            grid = self.grids[old]
            with _of(x, b):
                self.on_grid[old] = real(quantised(Tracer(x, b), grid), grid.scale, grid.zero)
        return self.on_grid[old]

    # ---- layers --------------------------------------------------------------------------------

    def layer(self, c: LayerChoice, xs: tuple[Operand, ...], b: Builder) -> Any:
        """The result of a quantised layer, with its own bias."""
        node, attrs = c.layer.node, c.layer.node.attrs
        wide = [Tracer(x, b) if isinstance(x, Value) else x for x in xs]
        if isinstance(c.stored, Beside):
            return self.of_two(c, c.stored.grid, wide[0], wide[1], b)
        way = node.op.weighing
        assert way is not None
        x = wide[way.data]
        if c.layer.kind == "table":
            return self.table(c, x, b)
        x = self.activation(c, x, b)
        if isinstance(c.stored, Blocks):
            y = self.convolution(c.stored, c.layer, x, b) if c.layer.kind == "conv" else (
                self.product(c.stored, c.layer, x, b))
        elif isinstance(c.stored, Half):
            y = self.half(c, x, b)
        else:
            bias = [] if len(wide) < 3 or wide[2] is None else [self.bias(c, wide[2], b)]
            y = node.op(x, self.weight(c, b), *bias, **attrs)
            return y if bias or c.layer.bias is not None else self.shifted(c, y)
        if len(wide) > 2 and wide[2] is not None:
            return o.add(y, self.bias(c, wide[2], b))
        return y if c.layer.bias is not None else self.shifted(c, y)

    def activation(self, c: LayerChoice, x: Any, b: Builder) -> Any:
        """The activation as the layer reads it."""
        if c.form == "dynamic":
            return self.by_rows(c, x)
        if c.grid is None:
            return x
        return self.gridded(c.layer.x, x.value, b)

    def of_two(self, c: LayerChoice, grid: Grid, x: Any, w: Any, b: Builder) -> Any:
        """The product of two activations on their grids.

        They are transposed before they are rounded: transposing bytes takes longer, because four
        are summed together.
        """
        node, way = c.layer.node, c.layer.node.op.weighing
        assert way is not None and c.grid is not None and c.layer.other is not None
        left = self.alone(c.layer.x, x, c.grid, node.attrs[way.across], b)
        right = self.alone(c.layer.other, w, grid, node.attrs[way.turned], b)
        return node.op(left, right, **{**node.attrs, way.across: False, way.turned: False})

    def alone(self, old: Value, x: Any, grid: Grid, turned: bool, b: Builder) -> Any:
        """An activation on its own grid, or on that of other layers that read it."""
        if old in self.grids:
            grid = self.grids[old]
        if old in self.grids and not turned:
            return self.gridded(old, x.value, b)
        key = old, turned, grid
        if key not in self.rounded:
            with _of(x.value, b):
                rank = x.ndim
                x = o.transpose(x, perm=(*range(rank - 2), rank - 1, rank - 2)) if turned else x
                self.rounded[key] = real(quantised(x, grid), grid.scale, grid.zero)
        return self.rounded[key]

    def by_rows(self, c: LayerChoice, x: Any) -> Any:
        """Integers by the range of each row when the model runs; of the whole for convolutions."""
        old = c.layer.x
        key = old if c.layer.kind == "product" else c.layer.node.outputs[0]
        if key not in self.rows:
            axes = (x.ndim - 1,) if c.layer.kind == "product" else tuple(range(x.ndim))
            low, high = o.min(o.reduce_min(x, axes=axes), 0.0), o.max(
                o.reduce_max(x, axes=axes), 0.0)
            scale = o.max(o.div(o.sub(high, low), 255.0), _LEAST)
            zero = o.cast(o.round(o.div(o.sub(0.0, low), scale)), dtype=dtypes.uint8)
            whole = o.cast(zero, dtype=dtypes.float32)
            q = o.cast(o.clamp(o.add(o.round(o.div(x, scale)), whole), 0.0, 255.0),
                       dtype=dtypes.uint8)
            self.rows[key] = o.mul(o.sub(o.cast(q, dtype=dtypes.float32), whole), scale)
        return self.rows[key]

    def half(self, c: LayerChoice, x: Any, b: Builder) -> Any:
        """A product of 16-bit floats, the only one in which kernels read such weights; sums are
        float32, and results of convolutions are rounded once more."""
        assert isinstance(c.stored, Half)
        w = self.kept_weight(c, c.stored.w, b)
        narrow, op, attrs = o.cast(x, dtype=w.dtype), c.layer.node.op, c.layer.node.attrs
        if c.layer.kind == "conv":
            return o.cast(op(narrow, w, **attrs), dtype=dtypes.float32)
        return o.matmul(narrow, w, transpose_b=c.layer.axis == 0, dtype=dtypes.float32)

    def weight(self, c: LayerChoice, b: Builder) -> Any:
        """The weight in float32, computed from what is stored."""
        assert isinstance(c.stored, Channels)
        scales = b.constant(c.stored.scales, f"{c.layer.hint}.scale")
        return real(self.kept_weight(c, c.stored.q, b), scales)

    def kept_weight(self, c: LayerChoice, array: Array, b: Builder) -> Tracer:
        weight = c.layer.weight
        assert weight is not None
        param = bool(weight.attrs["param"]) or c.layer.hint in self.trained
        return b.constant(array, c.layer.hint, param, weight.of)

    def product(self, s: Blocks, layer: Layer, x: Any, b: Builder) -> Any:
        """x by packed weights, over its last axis."""
        packed = b.constant(s.packed, layer.hint)
        scales = b.constant(s.scales, f"{layer.hint}.scale")
        flat = x if x.ndim == 2 else o.reshape(x, shape=(product(x.shape[:-1]), s.inputs))
        y = o.linear_nbits(flat, packed, scales, bits=s.bits, block=s.block)
        return y if x.ndim == 2 else o.reshape(y, shape=(*x.shape[:-1], s.q.shape[0]))

    def convolution(self, s: Blocks, layer: Layer, x: Any, b: Builder) -> Any:
        """The same over the channels of all taps of a window, which are put side by side."""
        last = bool(layer.node.attrs["channels_last"])
        rank = x.ndim
        x = x if last else o.transpose(x, perm=(0, *range(2, rank), 1))
        y = self.product(s, layer, _windows(layer, x), b)
        return y if last else o.transpose(y, perm=(0, rank - 1, *range(1, rank - 1)))

    def table(self, c: LayerChoice, ids: Any, b: Builder) -> Any:
        """Rows of a table of narrow numbers, with their scales."""
        node = c.layer.node
        stored = c.stored
        if isinstance(stored, Half):
            rows = node.op(self.kept_weight(c, stored.w, b), ids, **node.attrs)
            return o.cast(rows, dtype=dtypes.float32)
        assert isinstance(stored, Channels)
        rows = node.op(self.kept_weight(c, stored.q, b), ids, **node.attrs)
        scales = node.op(b.constant(stored.scales, f"{c.layer.hint}.scale"), ids, **node.attrs)
        return real(rows, scales)

    # ---- biases --------------------------------------------------------------------------------

    def biased(self, c: LayerChoice, add: Node, xs: tuple[Operand, ...], b: Builder) -> Any:
        """The sum of a layer's result and its bias."""
        y = c.layer.node.outputs[0]
        at = next(i for i, v in enumerate(add.inputs) if v is y)
        total, term = Tracer(xs[at], b), Tracer(xs[1 - at], b)  # type: ignore[arg-type]
        return (o.add(total, self.bias(c, term, b)),)

    def bias(self, c: LayerChoice, term: Any, b: Builder) -> Any:
        """A constant bias with the layer's shift, for a static layer in whole steps of its sums."""
        node = b.made_by.get(term.value)
        if not is_constant(node) or (c.grid is None and c.shift is None and c.gain is None):
            return term
        hint = node.outputs[0].hint
        flat = np.asarray(node.attrs["data"].source).reshape(-1).astype(np.float64)
        flat = flat if c.gain is None else flat * c.gain
        flat = flat if c.shift is None else flat + c.shift
        rank = 1 if c.layer.kind == "product" else c.layer.x.type.rank
        shape = (*(1,) * (rank - term.ndim), *term.shape)
        return self.steps(c, flat, shape, hint, b, bool(node.attrs["param"]), node.of)

    def shifted(self, c: LayerChoice, y: Any) -> Any:
        """The result with the layer's shift, where there was no bias."""
        if c.shift is None:
            return y
        last = c.layer.kind == "product" or c.layer.node.attrs.get("channels_last")
        shape = (c.layer.channels,) if last else (1, c.layer.channels, *(1,) * (y.ndim - 2))
        return o.add(y, self.steps(c, c.shift, shape, f"{c.layer.hint}.bias", y.builder))

    def steps(self, c: LayerChoice, flat: Array, shape: Any, hint: str, b: Builder,
              param: bool = False, of: tuple[str, ...] = ()) -> Any:
        """A bias as int32 times the scale of the layer's sums; as floats if it has no such scale,
        or has too many steps."""
        if c.grid is not None and isinstance(c.stored, Channels):
            scale = np.float32(c.grid.scale) * c.stored.scales.reshape(-1)
            with np.errstate(all="ignore"):
                count = np.rint(flat / scale)
            if (np.abs(count) < 2**30).all():
                y = real(b.constant(count.astype(np.int32), hint, param, of),
                         b.constant(scale, f"{hint}.scale"))
                return y if y.shape == tuple(shape) else o.reshape(y, shape=tuple(shape))
        return b.constant(flat.astype(np.float32).reshape(shape), hint, param, of)


def _of(x: Value, b: Builder) -> AbstractContextManager[None]:
    """A scope for what is done to an activation: it has the names and the place of what computes
    it; of the layer that reads it, if x is an input of the model."""
    node = b.made_by.get(x)
    return b.scope(f"{x.hint}.quantised", node.where if node else b.where,
                   names_of(node) if node else b.of)


def _windows(layer: Layer, x: Any) -> Any:
    """What each output of a convolution reads of x [N, …, C], as [N, outputs…, taps·C]."""
    a, window, out = layer.node.attrs, layer.w.shape[2:], list(layer.node.outputs[0].type.shape)
    space = out[1:-1] if a["channels_last"] else out[2:]
    n = len(window)
    strides, dilation = a["strides"] or (1,) * n, a["rhs_dilation"] or (1,) * n
    padding = a["padding"] or ((0, 0),) * n
    if any(p != 0 for pair in padding for p in pair):
        x = o.pad(x, lo=(0, *(p[0] for p in padding), 0), hi=(0, *(p[1] for p in padding), 0))
    taps = []
    for tap in np.ndindex(*window):
        start = [k * d for k, d in zip(tap, dilation, strict=True)]
        limit = [i + (size - 1) * s + 1 for i, size, s in zip(start, space, strides, strict=True)]
        whole = limit == list(x.shape[1:-1]) and set(strides) == {1} and not any(start)
        taps.append(x if whole else o.slice(
            x, start=(0, *start, 0), limit=(x.shape[0], *limit, x.shape[-1]),
            strides=(1, *strides, 1)))
    return taps[0] if len(taps) == 1 else o.concat(*taps, axis=x.ndim - 1)
