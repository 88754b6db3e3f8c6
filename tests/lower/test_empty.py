"""Every op on 0 elements: a size that is open and 0 in this run, in the evaluator and in C."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool.errors import InputError, InternalError
from graphtool.importers.least_sizes import not_empty
from graphtool.ir.facets import Trait
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.op import complete_attrs
from graphtool.symbolic import Symbol, dim_of
from tests.cases import CASES, Case, arrays
from tests.lower.compiling import compiled, faults, optimised

B = Symbol("B", 0, 64)
CHUNKS, AT_ONCE = 12, 170  # compiled together

# ops whose cases state the size of an axis elsewhere: in an attribute, or as an index
STATED = {"assume", "conv", "dynamic_slice", "dynamic_update_slice", "extreme_tap", "nonzero",
          "pack_conv_pairs", "recurrence_grad", "scatter", "slice", "top_k"}


@dataclass(frozen=True)
class Empty:
    """A case with the size B in place of one size of its operands, and operands of 0 elements."""

    op: str
    graph: Graph
    feed: dict[str, Any]

    def module(self) -> Module:
        return Module(self.graph, tuple(v.hint for v in self.graph.outputs), {"B": B})


def empty(case: Case, axis: int) -> Empty | None:
    """The case with B for the size of this axis of the first operand; None if it has none, or the
    op needs it to be a number or more than 0."""
    xs = arrays(case)
    size = next((x.shape[axis] for x in xs if isinstance(x, np.ndarray) and x.ndim), 0)
    if not size:
        return None
    feed, operands = {}, []
    for k, x in enumerate(xs):
        if isinstance(x, np.ndarray):
            shape = tuple(dim_of(B) if d == size else d for d in x.shape)
            name = f"{case.name}.{axis}:{k}"
            feed[name] = np.empty([0 if d == size else d for d in x.shape], x.dtype) \
                if size in x.shape else x
            operands.append(Value(TensorType(dtypes.of_numpy(x.dtype), shape), name))
        else:
            operands.append(x)
    attrs = complete_attrs(case.op, case.attrs)
    try:
        made = case.op.infer(*(x.type if isinstance(x, Value) else x for x in operands), **attrs)
    except InputError:
        return None
    outs = tuple(Value(t, f"{case.name}.{axis}={i}")
                 for i, t in enumerate(made if isinstance(made, tuple) else (made,)))
    graph = Graph(tuple(x for x in operands if isinstance(x, Value)),
                  (Node(case.op, tuple(operands), attrs, outs),), outs)
    return None if not_empty(graph, (), {"B": B}) else Empty(case.op.name, graph, feed)


@cache
def empties() -> list[Empty]:
    return [e for c in CASES for axis in (0, -1) if Trait.WORLD not in c.op.traits
            and (e := empty(c, axis)) is not None]


def evaluated(e: Empty) -> bool:
    try:
        interp.run(e.module(), e.feed)
    except (InputError, InternalError):
        assert e.op in STATED, e.feed
        return False
    return True


def test_the_evaluator_takes_no_elements() -> None:
    right = [e for e in empties() if evaluated(e)]
    assert len(right) > 1900 and {e.op for e in empties()} - {e.op for e in right} <= STATED


@pytest.mark.parametrize("chunk", [
    0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, CHUNKS))])
def test_compiled_code_takes_no_elements(chunk: int, tmp_path: Path) -> None:
    rows = random.Random(0).sample(empties(), len(empties()))[chunk * AT_ONCE:(chunk + 1) * AT_ONCE]
    rows = [e for e in (rows[:60] if not chunk else rows) if evaluated(e)]
    graphs = [e.graph for e in rows]
    module = Module(
        Graph(tuple(v for g in graphs for v in g.inputs), tuple(n for g in graphs for n in g.nodes),
              tuple(v for g in graphs for v in g.outputs)),
        tuple(v.hint for g in graphs for v in g.outputs), {"B": B})
    feed = {name: x for e in rows for name, x in e.feed.items()}
    want, ready = interp.run(module, feed), optimised(module)
    assert not faults(interp.run(ready, feed), want)
    assert not faults(compiled(ready, tmp_path / "m").run(feed), want)
