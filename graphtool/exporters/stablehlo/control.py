"""Regions: cond as if, while and scan as while. They call the functions of their regions, or have
the nodes in place, and read outer values by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.exporters.stablehlo.kit import Ref, Writer, body, dtypes
from graphtool.exporters.stablehlo.movement import is_open, reshaped
from graphtool.exporters.stablehlo.nodes import part
from graphtool.exporters.stablehlo.operands import compared, repeated
from graphtool.exporters.stablehlo.sizes import SIZE, size, vector
from graphtool.ir.graph import Graph, Node, TensorType
from graphtool.symbolic import Dim

_STEP = TensorType(dtypes.int64, ())


@body("cond")
def cond(w: Writer, node: Node, pred: Ref, *operands: Ref) -> tuple[Ref, ...]:
    """`if`; the branches take no arguments."""
    regions = []
    for name in ("then", "orelse"):
        inner = w.region()
        regions.append(inner.block([], part(inner, node.attrs[name], operands)))
    return w.generic("if", [pred], [v.type for v in node.outputs], "", regions)


@body("while")
def while_(w: Writer, node: Node, *operands: Ref) -> tuple[Ref, ...]:
    """`while`, over the carries; a bound counts the iterations besides."""
    count, bound = node.attrs["carries"], node.attrs["bound"]
    fixed = operands[count:]
    check, step = node.attrs["cond"], node.attrs["body"]
    if bound is None:
        return loop(w, operands[:count],
                    lambda inner, held: part(inner, check, [*held, *fixed])[0],
                    lambda inner, held: part(inner, step, [*held, *fixed]))
    limit = w.number(bound, dtypes.int64)

    def goes_on(inner: Writer, held: Sequence[Ref]) -> Ref:
        more, = part(inner, check, [*held[1:], *fixed])
        return inner("and", compared(inner, "LT", held[0], limit), more, to=more.type)

    def again(inner: Writer, held: Sequence[Ref]) -> list[Ref]:
        return [_next(inner, held[0]), *part(inner, step, [*held[1:], *fixed])]
    return loop(w, [w.number(0, dtypes.int64), *operands[:count]], goes_on, again)[1:]


def _next(w: Writer, i: Ref) -> Ref:
    return w("add", i, w.number(1, dtypes.int64), to=_STEP)


def loop(w: Writer, start: Sequence[Ref], goes_on: Any, step: Any) -> tuple[Ref, ...]:
    """`while`: both functions take a writer of the region and the values that it carries."""
    def region(fn: Any) -> list[str]:
        inner = w.region()
        held = [inner.argument(x.type, f"held{i}") for i, x in enumerate(start)]
        results = fn(inner, held)
        return inner.block(held, [results] if isinstance(results, Ref) else results)
    return w.generic("while", start, [x.type for x in start], "", [region(goes_on), region(step)])


@body("scan")
def scan(w: Writer, node: Node, *operands: Ref) -> tuple[Ref, ...]:
    """A `while` with a counter: each iteration reads a row of the scanned inputs and writes a row
    of the stacked outputs."""
    carries, xs, reverse, length = (node.attrs[k] for k in ("carries", "xs", "reverse", "length"))
    step_of: Graph = node.attrs["body"]
    cut = carries + xs
    rows = [v.type for v in node.outputs[carries:]]
    trips = w("convert", size(w, length), to=_STEP) if is_open([length]) else w.number(
        length, dtypes.int64)
    blank = [repeated(w, 0, t.dtype, t.shape) for t in rows]
    if length == 0:
        return (*operands[:carries], *blank)
    zero = w.number(0, dtypes.int64)

    def step(inner: Writer, held: Sequence[Ref]) -> list[Ref]:
        at = held[0]
        if reverse:
            last = inner("subtract", trips, inner.number(1, dtypes.int64), to=_STEP)
            at = inner("subtract", last, at, to=_STEP)
        read = [_row(inner, x, at, zero) for x in operands[carries:cut]]
        out = part(inner, step_of, [*held[1:carries + 1], *read, *operands[cut:]])
        stacks = [_put(inner, whole, new, at, zero)
                  for whole, new in zip(held[carries + 1:], out[carries:], strict=True)]
        return [_next(inner, held[0]), *out[:carries], *stacks]
    return loop(w, [zero, *operands[:carries], *blank],
                lambda inner, held: compared(inner, "LT", held[0], trips), step)[1:]


def _row(w: Writer, x: Ref, at: Ref, zero: Ref) -> Ref:
    """Row `at` of x."""
    shape = (1, *x.shape[1:])
    if is_open(x.shape[1:]):
        first = w("convert", at, to=SIZE)
        ends: list[list[Dim | Ref]] = [
            [first, *[0] * (len(shape) - 1)],
            [w("add", first, w.number(1, SIZE.dtype), to=SIZE), *x.shape[1:]], [1] * len(shape)]
        row = w("real_dynamic_slice", x, *(vector(w, e) for e in ends),
                to=TensorType(x.dtype, shape))
        return reshaped(w, row, x.shape[1:])
    row = w("dynamic_slice", x, at, *[zero] * (len(shape) - 1), to=TensorType(x.dtype, shape),
            attrs=f", sizes = [{', '.join(map(str, shape))}]")
    return reshaped(w, row, x.shape[1:])


def _put(w: Writer, whole: Ref, row: Ref, at: Ref, zero: Ref) -> Ref:
    """`whole` with another row `at`."""
    one = reshaped(w, row, (1, *row.shape))
    return w("dynamic_update_slice", whole, one, at, *[zero] * len(row.shape), to=whole.type)
