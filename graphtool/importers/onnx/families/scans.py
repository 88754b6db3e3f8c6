"""Scan as `scan` with a region; unrolled if its values change their types."""

from __future__ import annotations

from typing import Any

from graphtool.front.regions import union
from graphtool.importers.onnx.driver.context import region
from graphtool.importers.onnx.families.control import tracers
from graphtool.importers.onnx.families.loops import UNROLL, attempt, joined, keeps_types, label
from graphtool.importers.onnx.kit import Refused, Tracer, axis_of, maximum, o, onnx_op, trace
from graphtool.ir.graph import TensorType


@onnx_op("Scan", since=9, fold=False)
def scan(*operands: Any, body: Any, num_scan_inputs: int, scan_input_axes: Any = None,
         scan_input_directions: Any = None, scan_output_axes: Any = None,
         scan_output_directions: Any = None, ctx: Any) -> Any:
    """`scan`, with transposes that bring the scanned axes to the front, and `reverse` for
    directions."""
    cut = len(operands) - num_scan_inputs
    axes = scan_input_axes or (0,) * num_scan_inputs
    flips = scan_input_directions or (0,) * num_scan_inputs
    xs = [_flipped(_fronted(x, axis_of(a, x.ndim)), f)
          for x, a, f in zip(operands[cut:], axes, flips, strict=True)]
    out = _scanned(list(operands[:cut]), xs, body, ctx)
    count = len(body.output) - cut
    axes, flips = scan_output_axes or (0,) * count, scan_output_directions or (0,) * count
    return [*out[:cut], *(_backed(_flipped(y, f), axis_of(a, y.ndim))
                          for y, a, f in zip(out[cut:], axes, flips, strict=True))]


def _fronted(x: Any, axis: int) -> Any:
    return x.transpose((axis, *(a for a in range(x.ndim) if a != axis)))


def _backed(x: Any, axis: int) -> Any:
    return x.transpose((*range(1, axis + 1), 0, *range(axis + 1, x.ndim)))


def _flipped(x: Any, flip: int) -> Any:
    return o.reverse(x, axes=(0,)) if flip else x


def _scanned(state: list[Any], xs: list[Any], body: Any, ctx: Any) -> list[Any]:
    """The final states, and the scan outputs of all steps."""
    length = xs[0].shape[0]
    rows = [TensorType(x.dtype, x.shape[1:]) for x in xs]
    types = [*(x.type for x in state), *rows]
    inner = None if length == 1 else attempt(  # a single step is traced once, not tried before
        ctx, body, types, isinstance(length, int) and length <= UNROLL)
    if inner is not None and keeps_types(inner, state, 0):
        outer = union(inner)
        return list(o.scan(*state, *xs, *tracers(outer, ctx), body=inner.graph(outer),
                           carries=len(state), xs=len(xs), length=length))
    if not isinstance(length, int) or not 0 < length <= UNROLL:
        raise Refused("a scan whose values change their types is supported only with at most "
                      f"{UNROLL} steps, known at import")
    seen = []
    for t in range(length):
        mine = [x.take(0, t, t + 1).reshape(tuple(x.shape[1:])) for x in xs]
        out = ctx.subgraph(body, (*state, *mine), f"{label(ctx)}.{t}")
        state = out[:len(state)]
        seen.append(out[len(state):])
    return [*state, *(joined(list(column)) for column in zip(*seen, strict=True))]


@onnx_op("Scan", since=8, fold=False)
def scan_8(lengths: Any, *operands: Any, body: Any, num_scan_inputs: int,
           directions: Any = None, ctx: Any) -> Any:
    """The form of opset 8, with a batch axis before the time axis: a `scan` over the batch, whose
    body is the `scan` over time."""
    if lengths is not None:
        raise Refused("Scan of opset 8 with sequence lengths is not supported")
    cut = len(operands) - num_scan_inputs
    flips = directions or (0,) * num_scan_inputs
    given = [*operands[:cut], *(o.reverse(x, axes=(1,)) if f else x
                                for x, f in zip(operands[cut:], flips, strict=True))]
    rows = [TensorType(x.dtype, x.shape[1 if i < cut else 2:]) for i, x in enumerate(given)]
    inner = region(ctx, body, rows, label(ctx))
    if not keeps_types(inner, [Tracer(x.value, inner.builder) for x in inner.inputs[:cut]], 0):
        raise Refused("a scan must not change the types of its states")
    outer = union(inner)
    graph, length = inner.graph(outer), given[cut].shape[1]

    def row(*xs: Any) -> Any:
        return o.scan(*xs, body=graph, carries=cut, xs=num_scan_inputs, length=length)
    types = [TensorType(x.dtype, x.shape[1:]) for x in given] + [v.type for v in outer]
    return list(o.scan(*given, *tracers(outer, ctx), body=trace(row, types), carries=0,
                       xs=len(given), length=maximum(given[0].shape[0], 0)))
