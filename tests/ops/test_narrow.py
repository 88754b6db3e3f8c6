"""What is computed of narrow floats, against the same computed of float32 and rounded once.

The operands are tiny, of size 1, 300, or near the type's largest number: squares of the last two
leave the range of float16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import finfo

from graphtool import interp
from graphtool.dtypes import DType, bfloat16, float16, of_numpy
from graphtool.ir.graph import Graph, Node, TensorType, Value
from graphtool.ir.op import complete_attrs, evaluate
from graphtool.ir.trace import Builder, trace
from graphtool.transforms.reverse import backward, no_rule, vjp
from tests.cases import Array, Case, narrow_cases
from tests.closeness import largest, steps


def draws(*quick: DType) -> list[Any]:
    """Types and seeds; the first seed of the given types is not slow."""
    return [pytest.param(d, n, marks=() if d in quick and not n else pytest.mark.slow)
            for d in (float16, bfloat16) for n in range(4)]


# ops whose definition says where it rounds: a bias is added to a rounded product, updates are
# added one by one in memory; a gradient that nobody knows
STATED = {"linear", "scatter", "unknown_gradient"}


def widened(xs: list[Any], dtype: DType) -> list[Any]:
    return [x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == dtype.numpy else x
            for x in xs]


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "seed"), draws(float16, bfloat16), ids=str)
def test_every_op_rounds_once(dtype: DType, seed: int) -> None:
    wrong = []
    for case in narrow_cases(dtype, seed):
        xs, attrs = list(case.operands), complete_attrs(case.op, case.attrs)
        pairs = zip(as_tuple(evaluate(case.op, xs, attrs)),
                    as_tuple(evaluate(case.op, widened(xs, dtype), attrs)), strict=True)
        wrong += [case.name for got, exact in pairs if got.dtype == dtype.numpy
                  and case.op.name not in STATED and steps(got, exact) > 1.01]
    assert not wrong


def of_decomposition(case: Case, xs: list[Any]) -> tuple[Graph, list[Array]]:
    """The gradient of an op without a vjp, and the values of its inputs but for those of y."""
    def call(*tensors: Any) -> Any:
        rest = iter(tensors)
        return case.op(*(next(rest) if isinstance(x, np.ndarray) else x for x in xs), **case.attrs)
    given = [x for x in xs if isinstance(x, np.ndarray)]
    graph = trace(call, [TensorType(of_numpy(x.dtype), x.shape) for x in given])
    joint = vjp(graph, [v for v in graph.inputs if v.type.dtype.is_float])
    return Graph(joint.inputs, joint.nodes, joint.outputs[len(graph.outputs):]), given


def of_vjp(case: Case, xs: list[Any], ys: tuple[Any, ...]) -> tuple[Graph, list[Array]]:
    """The gradient by the op's own vjp, which reads the rounded results; the values of its inputs
    but for the gradients of y."""
    b = Builder()
    ins = [b.input(TensorType(of_numpy(x.dtype), x.shape), "x").value if isinstance(
        x, np.ndarray) else x for x in xs]
    outs = tuple(Value(TensorType(of_numpy(y.dtype), y.shape), "y") for y in ys)
    node = Node(case.op, tuple(ins), complete_attrs(case.op, case.attrs), outs)
    seeds = [(v, b.input(v.type, "g")) for v in outs if v.type.dtype.is_float]
    values = [v for v in ins if isinstance(v, Value)]
    wrt = [v for v in values if v.type.dtype.is_float]
    found = backward(b, [node], seeds, wrt)
    graph = Graph((*values, *outs, *(g.value for _, g in seeds)), tuple(b.nodes),
                  tuple(g.value for g in found))
    return graph, [*(x for x in xs if isinstance(x, np.ndarray)), *ys]


def gradients(case: Case, xs: list[Any], ys: tuple[Any, ...], dtype: DType) -> list[Array]:
    """The gradients for a gradient of size 1 of each output."""
    graph, given = of_vjp(case, xs, ys) if case.op.vjp else of_decomposition(case, xs)
    rng = np.random.default_rng(1)
    seeds = [np.asarray(rng.normal(size=v.type.shape)).astype(dtype.numpy)
             .astype(v.type.dtype.numpy) for v in graph.inputs[len(given):]]
    return interp.evaluate_graph(graph, [*given, *seeds], interp.Setting())


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "seed"), draws(float16), ids=str)
def test_every_gradient_rounds_once(dtype: DType, seed: int) -> None:
    wrong = []
    for case in narrow_cases(dtype, seed):
        if not case.smooth or case.op.name in STATED or no_rule(case.op):
            continue
        xs = list(case.operands)
        ys = as_tuple(evaluate(case.op, xs, complete_attrs(case.op, case.attrs)))
        if not all(np.all(np.isfinite(y.astype(np.float64))) for y in ys):
            continue
        exact = gradients(case, widened(xs, dtype), tuple(widened([*ys], dtype)), dtype)
        size = min(largest(*exact), float(finfo(dtype.numpy).max))
        wrong += [case.name for got, want in zip(gradients(case, xs, ys, dtype), exact, strict=True)
                  if got.dtype == dtype.numpy and steps(got, want, size) > 2]
    assert not wrong
