"""Replaces loops of few short iterations by straight code, and conditions on constants by one
branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, Operand, Value, is_constant
from graphtool.ir.replay import inline, prune, rebuild
from graphtool.ir.run_sizes import definitions
from graphtool.ir.trace import Builder, Tracer

_MAX_NODES = 48


def unroll(graph: Graph, *, max_nodes: int = _MAX_NODES) -> Graph:
    """The graph with short scans unrolled: all iterations together have at most `max_nodes` nodes.

    Straight code can be fused across iterations and need not copy the carries; long code takes long
    to compile and does not fit the instruction cache.
    """
    changed = False

    def visit(node: Node, inputs: tuple[Operand, ...], builder: Builder) -> Sequence[Any] | None:
        nonlocal changed
        args = [Tracer(x, builder) if isinstance(x, Value) else x for x in inputs]
        match node.op:
            case o.scan if _small(node, max_nodes):
                out = _written_out(node, args, builder)
            case o.cond if (side := _decided(inputs[0], builder)) is not None:
                out = inline(builder, node.attrs["then" if side else "orelse"], args[1:])
            case _:
                return None
        changed = True
        return out

    new = rebuild(graph, visit)
    return prune(new) if changed else graph


def _small(node: Node, max_nodes: int) -> bool:
    length, body = node.attrs["length"], node.attrs["body"]
    if not isinstance(length, int) or length < 1:
        return False
    if length > 1 and definitions(body):
        return False  # a size must be defined only once
    work = sum(not is_constant(n) for n in body.nodes)
    return bool(length * max(work, 1) <= max_nodes)


def _decided(pred: Operand, builder: Builder) -> bool | None:
    node = builder.made_by.get(pred) if isinstance(pred, Value) else None
    if not is_constant(node) or node.attrs["param"]:
        return None
    return bool(node.attrs["data"].source)


def _written_out(node: Node, args: list[Any], builder: Builder) -> list[Any]:
    a = node.attrs
    count, cut, length = a["carries"], a["carries"] + a["xs"], a["length"]
    held, rows, fixed = args[:count], args[count:cut], args[cut:]
    stacks: list[list[Any]] = []
    for t in reversed(range(length)) if a["reverse"] else range(length):
        out = inline(builder, a["body"], [*held, *(_row(x, t) for x in rows), *fixed])
        held = out[:count]
        stacks.append([o.reshape(y, shape=(1, *y.shape)) for y in out[count:]])
    ordered = stacks[::-1] if a["reverse"] else stacks
    stacked = [o.concat(*column, axis=0) if length > 1 else column[0]
               for column in zip(*ordered, strict=True)]
    return [*held, *stacked]


def _row(x: Tracer, t: int) -> Any:
    rank = x.ndim
    one = o.slice(x, start=(t, *(0,) * (rank - 1)), limit=(t + 1, *x.shape[1:]),
                  strides=(1,) * rank)
    return o.reshape(one, shape=x.shape[1:])
