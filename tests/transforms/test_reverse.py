"""Reverse mode: every rule against a directional derivative, second order, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, transforms
from graphtool import ops as o
from graphtool.errors import InputError, UnsupportedError
from graphtool.interp import Setting, evaluate_graph
from graphtool.ir.graph import Graph, TensorType
from graphtool.ir.op import OPS, Op, complete_attrs
from graphtool.ir.trace import trace
from graphtool.ir.verify import verify
from graphtool.symbolic import symbol
from tests.cases import CASES, Case, arrays, each, types
from tests.evaluating import run

F64 = dtypes.float64


def graph_of(case: Case) -> tuple[Graph, list[Any]]:
    """The case as a graph over its float64 operands, the others being literals or None."""
    ts, xs = types(case, wide=True), arrays(case, 3, wide=True)
    tensors = [i for i, t in enumerate(ts) if isinstance(t, TensorType)]

    def fn(*args: Any) -> Any:
        given = dict(zip(tensors, args, strict=True))
        return case.op(*[given.get(i, x) for i, x in enumerate(ts)], **case.attrs)
    return trace(fn, [ts[i] for i in tensors]), [xs[i] for i in tensors]


def differentiable(case: Case) -> bool:
    if any(isinstance(a, Graph) for a in case.attrs.values()):
        return False  # regions are typed for the case's own operands, and have no rule
    ts = types(case, wide=True)
    slopes = case.op.name not in ("bitcast", "stop_gradient", "unknown_gradient")
    has = slopes and any(isinstance(t, TensorType) and t.dtype is F64 for t in ts)
    graph = graph_of(case)[0] if has else None
    return bool(case.smooth and graph and any(v.type.dtype is F64 for v in graph.outputs))


SMOOTH = [c for c in CASES if differentiable(c)]
# one case of each op, the first that is neither empty nor a scalar
ONE_EACH = list({c.op.name: c for c in reversed(SMOOTH) if any(
    getattr(x, "shape", ()) and 0 not in x.shape for x in c.operands)}.values())


def check(graph: Graph, xs: list[Any], h: float = 1e-5, tol: float = 2e-6) -> None:
    """g·dx from the vjp equals the central difference of Σ cotangent·output along dx."""
    rng = np.random.default_rng(5)
    wrt = [v for v in graph.inputs if v.type.dtype is F64]
    joint = transforms.vjp(graph, wrt)
    verify(joint)
    floats = [i for i, v in enumerate(graph.outputs) if v.type.dtype is F64]
    cotangents = [rng.normal(size=graph.outputs[i].type.shape) for i in floats]
    dxs = [rng.normal(size=v.type.shape) for v in wrt]
    grads = run(joint, [*xs, *cotangents])[len(graph.outputs):]

    def along(step: float) -> float:
        moved = iter(dxs)
        ys = run(graph, [x + step * next(moved) if v in wrt else x
                         for v, x in zip(graph.inputs, xs, strict=True)])
        return float(sum(np.sum(c * np.where(np.isfinite(ys[i]), ys[i], 0))
                         for c, i in zip(cotangents, floats, strict=True)))
    numeric = (along(h) - along(-h)) / (2 * h)
    ours = float(sum(np.sum(a * b) for a, b in zip(grads, dxs, strict=True)))
    scale = sum(float(np.sum(np.abs(a * b))) for a, b in zip(grads, dxs, strict=True))
    assert ours == pytest.approx(numeric, rel=tol, abs=tol * max(1.0, scale))


@each(SMOOTH)
def test_vjp_is_the_directional_derivative(case: Case) -> None:
    if case.op.name == "cast" and case.attrs["dtype"] not in (F64, dtypes.float32):
        pytest.skip("steps of a narrow type are not smooth")
    check(*graph_of(case))


@pytest.mark.parametrize("case", [c for c in ONE_EACH if c.op.name != "cast"], ids=repr)
def test_gradients_differentiate_again(case: Case) -> None:
    graph, xs = graph_of(case)
    joint = transforms.vjp(graph, [v for v in graph.inputs if v.type.dtype is F64])
    rng = np.random.default_rng(9)
    cotangents = [rng.normal(size=v.type.shape) for v in joint.inputs[len(graph.inputs):]]
    second = Graph(joint.inputs, joint.nodes, joint.outputs[len(graph.outputs):])
    check(second, [*xs, *cotangents], tol=2e-5)


def test_hessian_vector_product() -> None:
    n = TensorType(F64, (4,))
    graph = trace(lambda x: o.reduce_sum(o.exp(x) * x, axes=(0,)), [n])
    first = transforms.grad(graph, 0, graph.inputs)
    second = transforms.vjp(Graph(first.inputs, first.nodes, first.outputs[1:]), first.inputs)
    x, v = np.array([0.1, -1.0, 2.0, 0.0]), np.array([1.0, 2.0, -1.0, 3.0])
    np.testing.assert_allclose(run(second, [x, v])[1], np.exp(x) * (x + 2) * v, rtol=1e-12)


def test_gradients_add_up_and_keep_the_outputs() -> None:
    n = TensorType(F64, (3,))
    graph = trace(lambda x, y: (x * y + x, x), [n, n])
    joint = transforms.grad(graph, 0, graph.inputs)
    x, y = np.arange(3.0), np.array([2.0, 0.0, -1.0])
    out, same, gx, gy = run(joint, [x, y])
    np.testing.assert_array_equal(out, x * y + x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(gx, y + 1)
    np.testing.assert_array_equal(gy, x)


def test_an_input_that_is_not_read_has_gradient_zero() -> None:
    n = TensorType(F64, (3,))
    graph = trace(lambda x, y: x, [n, n])
    assert not run(transforms.grad(graph, 0, graph.inputs), [np.ones(3)] * 2)[2].any()


def test_integers_and_stop_gradient_stop_gradients() -> None:
    n = TensorType(F64, (3,))
    graph = trace(lambda x: o.cast(o.cast(x, dtype=dtypes.int64), dtype=F64)
                  + o.stop_gradient(x) * x, [n])
    x = np.array([1.5, -2.5, 3.0])
    np.testing.assert_array_equal(run(transforms.grad(graph, 0, graph.inputs), [x])[1], x)


def test_parameters_are_differentiated() -> None:
    w = np.arange(6.0).reshape(2, 3)

    def model(x: Any) -> Any:
        return o.linear(x, x.builder.constant(w, "fc.weight", param=True))
    graph = trace(model, [TensorType(F64, (4, 3))])
    weight = graph.nodes[0].outputs[0]
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(run(transforms.grad(graph, 0, [weight]), [x])[1],
                                  np.tile(x.sum(0), (2, 1)))


def test_symbolic_batch_differentiates() -> None:
    x = TensorType(F64, (symbol("B", 1, 8), 3))
    graph = trace(lambda x: o.reduce_mean(o.softmax(x, axis=1) * x, axes=(0, 1)), [x])
    verify(transforms.grad(graph, 0, graph.inputs))


def test_nothing_dead_is_added() -> None:
    graph = trace(lambda x, w: o.matmul(x, w), [TensorType(F64, (2, 3)), TensorType(F64, (3, 4))])
    joint = transforms.grad(graph, 0, graph.inputs[1:])
    assert [n.op.name for n in joint.nodes].count("matmul") == 2


def test_ops_without_a_rule_are_named() -> None:
    graph = trace(lambda x: o.bitcast(o.bitcast(x, dtype=F64), dtype=F64),
                  [TensorType(F64, (3,))])
    with pytest.raises(UnsupportedError, match="2 × bitcast: the bits") as error:
        transforms.grad(graph, 0, graph.inputs)
    assert error.value.code == "GT0612" and error.value.exit_code == 4


def test_every_op_has_a_gradient_or_a_reason() -> None:
    floats = {c.op.name for c in CASES for t in as_types(c) if t.dtype.is_float}
    without = [op for op in OPS.values() if op.vjp is None and op.decompose is None
               and not regions(op) and op.operands and not transforms.no_rule(op)]
    assert not [op.name for op in without if op.name in floats]
    assert not [op.name for op in OPS.values() if op.vjp and transforms.no_rule(op)]


def regions(op: Op) -> bool:
    return any("Graph" in str(a.annotation) for a in op.schema.values())


def as_types(case: Case) -> tuple[TensorType, ...]:
    out = case.op.infer(*types(case), **complete_attrs(case.op, case.attrs))
    return out if isinstance(out, tuple) else (out,)


def test_bad_requests_are_refused() -> None:
    graph = trace(lambda x, i: (x, i), [TensorType(F64, (3,)), TensorType(dtypes.int64, (3,))])
    for output, wrt in ((1, graph.inputs[:1]), (0, graph.inputs[1:])):
        with pytest.raises(InputError):
            transforms.grad(graph, output, wrt)


BATCH = symbol("B", 1, 64)
STATIC = {"reshape", "slice", "pad", "broadcast", "dynamic_slice", "dynamic_update_slice", "iota",
          "scatter", "resize", "lstm", "gru", "rnn", "recurrence", "uniform", "normal", "lu_solve"}


@pytest.mark.parametrize("case", [c for c in ONE_EACH if c.op.name not in STATIC], ids=repr)
def test_symbolic_batch_has_the_same_gradients(case: Case) -> None:
    graph, xs = graph_of(case)
    size = graph.inputs[0].type.shape[0]
    ts = [TensorType(v.type.dtype, (BATCH, *v.type.shape[1:])) if v.type.shape
          and v.type.shape[0] == size and v.type.rank == graph.inputs[0].type.rank
          else v.type for v in graph.inputs]
    given = iter(range(len(ts)))
    order = [next(given) if isinstance(t, TensorType) else None for t in types(case, wide=True)]
    literals = arrays(case, 3, wide=True)

    def fn(*args: Any) -> Any:
        return case.op(*[x if i is None else args[i]
                         for i, x in zip(order, literals, strict=True)], **case.attrs)
    try:
        wide = trace(fn, ts)
    except InputError:
        pytest.skip("the case's shapes do not go with a symbolic batch")
    joint, known = (transforms.vjp(g, [v for v in g.inputs if v.type.dtype is F64])
                    for g in (wide, graph))
    verify(joint)
    rng = np.random.default_rng(1)
    more = [rng.normal(size=v.type.shape) for v in known.inputs[len(xs):]]
    got = evaluate_graph(joint, [*xs, *more], Setting({"B": size}))
    for a, b in zip(got, run(known, [*xs, *more]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
