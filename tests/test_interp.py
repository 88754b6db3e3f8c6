"""The evaluator: sizes, inputs that do not fit, float64 runs, regions, and made-up inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.errors import GraphtoolError, InputError, InternalError
from graphtool.ir.graph import Graph, Module, Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, symbol

B, T = symbol("B", 1, 8), symbol("T", 1)
SYMBOLS = {"B": Symbol("B", 1, 8), "T": Symbol("T", 1)}
F32 = dtypes.float32


def module(fn: Any, **types: TensorType) -> Module:
    graph = trace(fn, list(types.values()), list(types))
    names = tuple(f"y{i}" for i in range(len(graph.outputs)))
    return Module(graph, names, SYMBOLS)


def f32(*shape: Any) -> TensorType:
    return TensorType(F32, shape)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


MLP = module(lambda x, y: (o.matmul(o.tanh(x), y),
                           o.reshape(x, shape=(B * 4,))), x=f32(B, 4), y=f32(4, T))


def test_outputs_in_order_under_their_names() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
    out = interp.run(MLP, {"y": y, "x": x})
    assert list(out) == ["y0", "y1"]
    np.testing.assert_allclose(out["y0"], np.tanh(x) @ y, rtol=1e-5)


@pytest.mark.parametrize(("inputs", "code", "message"), [
    ({"x": ones(2, 4)}, "GT0511", "missing input y"),
    ({"x": ones(2, 4), "y": ones(4, 2), "z": ones(1)}, "GT0512", "no input z"),
    ({"x": ones(2, 4).astype(int), "y": ones(4, 2)}, "GT0513", "x is i64, expected f32"),
    ({"x": ones(2, 5), "y": ones(4, 2)}, "GT0514", r"\[2, 5\], \[B,4\] expected"),
    ({"x": ones(2), "y": ones(4, 2)}, "GT0514", "expected"),
    ({"x": ones(9, 4), "y": ones(4, 2)}, "GT0515", "B = 9, at least 1 and at most 8"),
    ({"x": ones(1, 4).astype(object), "y": ones(4, 2)}, "GT0302", "object"),
])
def test_inputs_that_do_not_fit(inputs: Any, code: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        interp.run(MLP, inputs)
    assert caught.value.code == code


def test_one_symbol_twice_must_agree() -> None:
    m = module(lambda x, y: x + y, x=f32(B), y=f32(B))
    with pytest.raises(InputError, match="y has the shape"):
        interp.run(m, {"x": ones(2), "y": ones(3)})


def test_size_is_read_off_a_product() -> None:
    m = module(lambda x: o.reshape(x, shape=(B, 3)), x=f32(3 * B))
    assert interp.run(m, {"x": ones(6)})["y0"].shape == (2, 3)
    with pytest.raises(InputError, match="GT0514"):
        interp.run(m, {"x": ones(7)})


def test_float64_throughout() -> None:
    m = module(lambda x: o.cast(x / 3.0, dtype=F32) + x.builder.constant(
        np.full(2, 0.1, np.float32)), x=f32(2))
    y = interp.run(m, {"x": ones(2)}, dtype=dtypes.float64)["y0"]
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, 1 / 3 + float(np.float32(0.1)), rtol=1e-15)


def test_float64_keeps_bits() -> None:
    m = module(lambda x: o.bitcast(o.bitcast(x, dtype=dtypes.int32), dtype=F32), x=f32(2))
    out = interp.run(m, {"x": ones(2)}, dtype=dtypes.float64)["y0"]
    np.testing.assert_array_equal(out, np.ones(2))


def test_float64_keeps_the_next_number_of_the_declared_type() -> None:
    m = module(lambda x: o.next_after(x, 2.0), x=f32(2))
    out = interp.run(m, {"x": ones(2)}, dtype=dtypes.float64)["y0"]
    np.testing.assert_array_equal(out, np.nextafter(ones(2), np.float32(2)))


def test_on_value_sees_names() -> None:
    seen: dict[str, Any] = {}
    m = module(lambda x: o.exp(x * 2.0), x=f32(2))
    interp.run(m, {"x": ones(2)}, on_value=seen.__setitem__)
    assert list(seen) == ["mul", "exp"]


def test_faults_name_the_node() -> None:
    m = module(lambda x: o.gather(x, x.builder.constant(np.array([[5]])), axes=(0,)), x=f32(2))
    with pytest.raises(InputError, match="out of range") as caught:
        interp.run(m, {"x": ones(2)})
    assert "gather" in caught.value.where


def odd(name: str, evaluate: Any, shape: Any, *inputs: Value, **attrs: Any) -> Module:
    """A module of one op that no file declares."""
    op = Op(name, lambda *_, **__: f32(*shape), evaluate)
    out = Value(f32(*shape), "out")
    return Module(Graph(inputs, (Node(op, inputs, attrs, (out,)),), (out,)), ("y",), SYMBOLS)


X = Value(f32(4), "x")


@pytest.mark.parametrize("fault", [ValueError, KeyError, ZeroDivisionError, TypeError])
def test_no_traceback(fault: type[Exception]) -> None:
    def fail(x: Any) -> Any:
        raise fault("broken")
    with pytest.raises(GraphtoolError, match="cannot be evaluated"):
        interp.run(odd("fail", fail, (4,), X), {"x": ones(4)})


def test_wrong_result_is_found() -> None:
    with pytest.raises(InternalError, match="its declared type is f32"):
        interp.run(odd("wrong", lambda x: x[:2], (4,), X), {"x": ones(4)})


def test_node_defines_a_size() -> None:
    m = odd("positive", lambda x: x[x > 0], (symbol("n", 0),), X)
    doubled = trace(lambda x: o.reshape(x, shape=(symbol("n", 0), 1)), [f32(symbol("n", 0))])
    out = m.graph.outputs[0]
    node = Node(doubled.nodes[0].op, (out,), doubled.nodes[0].attrs, doubled.nodes[0].outputs)
    m = Module(Graph(m.graph.inputs, (*m.graph.nodes, node), node.outputs), ("y",))
    assert interp.run(m, {"x": np.array([1, -1, 2, -3], np.float32)})["y"].shape == (2, 1)


def test_region_arrives_as_a_function() -> None:
    body = trace(lambda x: o.broadcast(x * 2.0, shape=(B, 4)), [f32(4)])

    def twice(x: Any, *, body: Any) -> Any:
        return body(body(x)[0][0])[0][0]
    m = odd("twice", twice, (4,), X, body=body)
    with pytest.raises(InputError, match="B is not bound"):
        interp.run(m, {"x": ones(4)})
    batch = Value(f32(B), "b")
    graph = Graph((X, batch), m.graph.nodes, m.graph.outputs)
    out = interp.run(Module(graph, ("y",), SYMBOLS), {"x": ones(4), "b": ones(3)})["y"]
    np.testing.assert_array_equal(out, np.full(4, 4))


def test_loop_decomposes_its_body_once() -> None:
    calls = []

    def decompose(x: Any, y: Any) -> Any:
        calls.append(type(x))
        return o.add(o.mul(x, 2.0), y)
    op = Op("twice_plus", lambda x, y: x, None, decompose=decompose)
    body = trace(lambda x: op(x, 1.0), [f32(4)])
    m = module(lambda x: o.scan(x, body=body, carries=1, xs=0, length=9)[0], x=f32(4))
    found = interp.run(m, {"x": ones(4)})["y0"]
    np.testing.assert_array_equal(found, np.full(4, 2.0 ** 10 - 1))
    assert len(calls) == 2  # on the arrays of the first iteration, then as a graph
