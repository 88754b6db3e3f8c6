"""Rows of control flow: bodies grow by the same table, and read values of the outer graph."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, helper

from tests.lab.fuzz.growing import Growing, Known, info
from tests.lab.fuzz.table import op

INNER = ("Add", "Mul", "Tanh", "Sub", "Abs", "Max", "Sigmoid", "Min")


def inner(g: Growing, tag: str) -> Growing:
    """A growing body; its names start with a tag of their own."""
    g.count += 1
    return Growing(g.rng, body=True, prefix=f"{g.prefix}{tag}{g.count}_")


def step(b: Growing, x: Known, outer: Known | None) -> Known:
    """A few nodes that keep the type of `x`; one may read `outer`."""
    for _ in range(b.rng.randint(1, 3)):
        name = b.rng.choice(INNER)
        if name in ("Tanh", "Abs", "Sigmoid"):
            x = b.add(name, [x])[0]
        else:
            y = outer if outer is not None and b.coin() else b.const(
                b.array("float32", x.sizes))
            x = b.add(name, [x, y])[0]
    return x


def graph(b: Growing, inputs: list[Known], outputs: list[Known]) -> GraphProto:
    """The body as a graph."""
    return helper.make_graph(b.nodes, f"{b.prefix}body", [info(v.name, v.dtype, list(v.sizes))
                                                          for v in inputs],
                             [info(v.name, v.dtype, list(v.sizes)) for v in outputs],
                             b.initializers())


@op("If")
def choice(g: Growing) -> None:
    """A condition from an input or from the graph."""
    x = g.take("F")
    flag = g.given(g.coin(), np.bool_)
    bodies = []
    for tag in ("t", "e"):
        b = inner(g, tag)
        bodies.append(graph(b, [], [step(b, x, x)]))
    g.add("If", [flag], then_branch=bodies[0], else_branch=bodies[1])


@op("Loop")
def loop(g: Growing) -> None:
    """A fixed number of iterations, perhaps none, with or without a scanned output."""
    x, b = g.take("F"), inner(g, "l")
    at = Known(b.name(), np.dtype(np.int64), ())
    on = Known(b.name(), np.dtype(np.bool_), ())
    state = Known(b.name(), x.dtype, x.shape)
    after = step(b, state, x)
    still = b.add("Identity", [on])[0]
    rows = [b.add("Identity", [after])[0]] if g.coin() else []
    body = graph(b, [at, on, state], [still, after, *rows])
    trips = g.const(g.rng.randint(1, 4), np.int64)
    g.add("Loop", [trips, g.const(True, np.bool_), x], 1 + len(rows), body=body)


@op("Scan")
def scan(g: Growing) -> None:
    """Over the first axis, forwards or backwards."""
    x, b = g.take("F", 1, least=1), inner(g, "s")
    row = Known(b.name(), x.dtype, x.sizes[1:])
    state = Known(b.name(), x.dtype, x.sizes[1:])
    after = b.add("Add", [step(b, state, None), row])[0]
    out = b.add("Identity", [after])[0]
    g.add("Scan", [g.like(x, x.sizes[1:]), x], 2, body=graph(b, [state, row], [after, out]),
          num_scan_inputs=1, scan_input_directions=[g.rng.choice((0, 1))])
