"""Loops that count as scans: `jax.lax.scan` is written as a `while` with a counter.

A loop counts if its condition is i < n and its body gives i + 1. What the body reads at the counter
alone becomes a scanned operand, what it writes there a stacked result. Unlike a `while`, a scan has
a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from graphtool import ops as o
from graphtool.ir.graph import Graph, Node, TensorType, Value, is_constant
from graphtool.ir.prune import prune
from graphtool.ir.replay import replay
from graphtool.ir.trace import Builder, Tracer


@dataclass
class Counted:
    """A loop that counts: the position of its counter, the first value and the trip count, and
    which slices and updates of the body go by the counter."""

    index: int
    first: int
    length: int
    reverse: bool = False
    rows: dict[Node, int] = field(default_factory=dict)  # slice → the input of the body it reads
    stacks: dict[int, Node] = field(default_factory=dict)  # carry → the update that makes it


def counted(cond: Graph, body: Graph, carries: int, starts: Sequence[Any]) -> Counted | None:
    """How the loop counts; None if it does not. `starts` has the known first values, else None."""
    if len(cond.nodes) != 1 or cond.nodes[0].op is not o.lt:
        return None
    i, n = cond.nodes[0].inputs
    if i not in cond.inputs[:carries] or not isinstance(n, int):
        return None
    k = cond.inputs.index(i)
    made = {v: node for node in body.nodes for v in node.outputs}
    step = made.get(body.outputs[k])
    if step is None or step.op is not o.add or step.inputs != (body.inputs[k], 1):
        return None
    first = starts[k]
    if not isinstance(first, int):
        return None
    loop = Counted(k, first, max(n - first, 0))
    if first == 0:
        _rows_and_stacks(loop, body, carries, made)
    return loop


def _rows_and_stacks(loop: Counted, body: Graph, carries: int, made: dict[Value, Node]) -> None:
    """Find what goes by the counter, or by the counter from behind, whichever occurs."""
    forward = body.inputs[loop.index]
    left = {v for v, node in made.items()
            if node.op is o.sub and node.inputs == (loop.length, forward)}
    backward = {v for v, node in made.items() if node.op is o.sub and (
        node.inputs == (loop.length - 1, forward)
        or (node.inputs[0] in left and node.inputs[1] == 1))}
    uses: dict[Value, int] = {}
    for v in (x for node in body.nodes for x in node.inputs if isinstance(x, Value)):
        uses[v] = uses.get(v, 0) + 1
    for reverse, places in ((False, {forward}), (True, backward)):
        rows = {node: body.inputs.index(node.inputs[0])
                for node in body.nodes if node.op is o.dynamic_slice
                and node.inputs[0] in body.inputs[carries:]
                and _by_row(node.inputs[0], node.inputs[1:], places, loop.length)
                and tuple(node.attrs["sizes"]) == (1, *_shape(node.inputs[0])[1:])}
        stacks = {}
        for j in range(carries):
            node = made.get(body.outputs[j])
            if node is not None and node.op is o.dynamic_update_slice and (
                    node.inputs[0] is body.inputs[j] and uses[body.inputs[j]] == 1
                    and body.outputs[j] not in uses
                    and _by_row(node.inputs[0], node.inputs[2:], places, loop.length)
                    and _shape(node.inputs[1]) == (1, *_shape(node.inputs[0])[1:])):
                stacks[j] = node
        if rows or stacks:
            loop.reverse, loop.rows, loop.stacks = reverse, rows, stacks
            return


def _shape(x: Any) -> tuple[Any, ...]:
    return tuple(x.type.shape)


def _by_row(x: Any, starts: Sequence[Any], places: set[Value], length: int) -> bool:
    """Whether the starts are one of the places, then 0, and x has a row for each iteration."""
    return starts[0] in places and all(s == 0 and not isinstance(s, Value) for s in starts[1:]) \
        and _shape(x)[0] == length


def as_scan(loop: Counted, body: Graph, carries: int, operands: Sequence[Tracer]) -> list[Any]:
    """The loop as `scan`: the last values of all carries but the counter, whose place has None."""
    kept = [j for j in range(carries) if j != loop.index and j not in loop.stacks]
    sources = list(dict.fromkeys(loop.rows.values()))
    builder = Builder()

    def given(j: int, row: bool = False) -> Tracer:
        v = body.inputs[j]
        kind = TensorType(v.type.dtype, v.type.shape[1:]) if row else v.type
        return builder.input(kind, v.hint)
    index = given(loop.index)
    ins = {j: given(j) for j in kept}
    rows = {j: given(j, True) for j in sources}
    fixed = {j: given(j) for j in range(carries, len(body.inputs))}
    blank = {j: given(j) for j in loop.stacks}  # read by nothing

    def apply(node: Node, *xs: Any) -> Sequence[Any]:
        if node in loop.rows:
            row = rows[loop.rows[node]]
            return (row.reshape((1, *row.shape)),)
        if is_constant(node):
            return (builder.constant(node.attrs["data"], node.outputs[0].hint,
                                     node.attrs["param"], node.of),)
        if node.op is o.reshape:
            return (xs[0].reshape(node.attrs["shape"]),)
        with builder.scope("", node.where, node.of):
            made = builder.emit(node.op, xs, dict(node.attrs), node.outputs[0].hint)
        return made if isinstance(made, tuple) else (made,)
    every = {loop.index: index, **ins, **fixed, **blank}
    wanted = [*(body.outputs[j] for j in kept),
              *(node.inputs[1] for node in loop.stacks.values()), body.outputs[loop.index]]
    inner = Graph(body.inputs, tuple(n for n in body.nodes if n not in loop.stacks.values()),
                  tuple(v for v in wanted if isinstance(v, Value)))
    *found, after = replay(inner, [every[j] for j in range(len(body.inputs))], apply)
    lasts = found[:len(kept)]
    stacked = [x.reshape(x.shape[1:]) for x in found[len(kept):]]
    outputs = [x.value for x in (*lasts, *stacked)]
    pruned = prune(Graph((), tuple(builder.nodes), tuple(outputs)))
    read = {x for node in pruned.nodes for x in node.inputs} | set(outputs)
    counter = index.value in read
    carried = [*([index] if counter else []), *ins.values()]
    outputs = [*([after.value] if counter else []), *outputs]
    used = [j for j, x in fixed.items() if x.value in read]
    graph = prune(Graph((*(x.value for x in carried), *(x.value for x in rows.values()),
                         *(fixed[j].value for j in used)), tuple(builder.nodes), tuple(outputs)))
    order = [*([loop.index] if counter else []), *kept, *sources, *used]
    made = o.scan(*(operands[j] for j in order), body=graph, carries=len(carried),
                  xs=len(sources), length=loop.length, reverse=loop.reverse)
    results = list(made if isinstance(made, tuple) else (made,))[int(counter):]
    out: list[Any] = [None] * carries
    for j, x in zip((*kept, *loop.stacks), results, strict=True):
        out[j] = x
    return out
