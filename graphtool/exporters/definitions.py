"""Definitions of ops by other ops, as closed graphs: what exporters write for an op that the other
format lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphtool.errors import InternalError
from graphtool.ir.graph import Graph, TensorType, Value
from graphtool.ir.trace import Builder


def defined(fn: Callable[..., Any], operands: Sequence[Any], names: Sequence[str],
            where: str) -> Graph:
    """The graph of the nodes that `fn` builds on the operands.

    A TensorType stands for a tensor, of which there are as many as `names`; literals and None are
    handed on. Raises InternalError GT7004 where a result is a literal.
    """
    builder = Builder()
    given = [x for x in operands if isinstance(x, TensorType)]
    tracers = [builder.input(t, n) for t, n in zip(given, names, strict=True)]
    rest = iter(tracers)
    with builder.scope(""):
        out = fn(*[next(rest) if isinstance(x, TensorType) else x for x in operands])
    results: list[Value] = []
    for o in out if isinstance(out, tuple) else (out,):
        x = builder.operand(o)
        if not isinstance(x, Value):
            raise InternalError("GT7004", "a decomposition gave a literal", where=where)
        results.append(x)
    return Graph(tuple(t.value for t in tracers), tuple(builder.nodes), tuple(results))
