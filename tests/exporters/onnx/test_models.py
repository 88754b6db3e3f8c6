"""Whole graphs as ONNX models: sizes that are open, regions, names, weights in a file, bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from graphtool import dtypes, interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import UnsupportedError
from graphtool.exporters.onnx import export_onnx, model_of
from graphtool.importers.onnx import import_model, import_onnx
from graphtool.ir.graph import Graph, Location, Module, Node, TensorType, Value
from graphtool.ir.trace import trace
from graphtool.passes import run
from graphtool.report.diff import diff
from graphtool.symbolic import Dim, Symbol, symbol
from tests.closeness import assert_close
from tests.exporters.onnx.running import OPTIONS, exported
from tests.exporters.onnx.running import run as run_model
from tests.report.graphs import layers

SAMPLES = Path(__file__).parents[3] / "samples"
B: Dim = symbol("B", 1, 64)
T: Dim = symbol("T", 2, 64)


def f32(*shape: Dim) -> TensorType:
    return TensorType(dtypes.float32, shape)


def made(fn: Any, *types: TensorType) -> Module:
    graph = trace(fn, types)
    names = tuple(f"y{i}" for i in range(len(graph.outputs)))
    return Module(graph, names, {"B": Symbol("B", 1, 64), "T": Symbol("T", 2, 64)})


def agrees(module: Module, seed: int = 0, **sizes: int) -> onnx.ModelProto:
    """onnxruntime on the exported model gives what the evaluator gives."""
    inputs = made_up.random_inputs(module, seed, sizes)
    model = exported(module)
    _, got = run_model(model, list(inputs.values()))
    for a, b in zip(got, interp.run(module, inputs).values(), strict=True):
        assert_close(a, b, list(inputs.values()), tolerance=1e-5)
    return model


OPEN = {
    "reshape": (lambda x: o.reshape(x, shape=(B * T, 6)), f32(B, T, 6)),
    "two open": (lambda x: o.reshape(x, shape=(T, B * 2, 3)), f32(B, T, 6)),
    "broadcast": (lambda x: o.broadcast(x, shape=(T, B, 4)), f32(B, 4), f32(T)),
    "halves": (lambda x: o.slice(x, start=(0, T // 2), limit=(B, T), strides=(1, 1)), f32(B, T)),
    "pad": (lambda x: o.pad(x, lo=(1, 0), hi=(0, B % 3)), f32(B, T)),
    "mean": (lambda x: o.reduce_mean(x, axes=(0,)), f32(B, T)),
    "iota": (lambda x: x + o.cast(x.builder.emit(o.iota, (), {
        "shape": (B, T), "axis": 1, "dtype": dtypes.int64}), dtype=dtypes.float32), f32(B, T)),
    "solved": (lambda x: o.broadcast(o.reduce_sum(x, axes=(0,)), shape=(B,)), f32(2 * B + 1)),
    "pool": (lambda x: o.avg_pool(x, window=(3, 3), padding=((1, 1), (1, 1))),
             f32(B, 2, T, T + 1)),
    "conv": (lambda x, w: o.conv(x, w, padding=((1, 1),), lhs_dilation=(2,)),
             f32(B, 2, T), f32(3, 2, 3)),
    "attention": (lambda q: o.attention(q, q, q, causal=True), f32(B, 2, T, 4)),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name: str) -> None:
    fn, *types = OPEN[name]
    module = made(lambda *xs: fn(*xs[:fn.__code__.co_argcount]), *types)
    model = agrees(module, B=3, T=5)
    agrees(module, B=2, T=4)
    assert "B" in str(model.graph.input[0])


def test_sizes_that_data_decide() -> None:
    n: Dim = symbol("n", 0, 12)
    module = made(lambda x: o.reshape(o.exp(o.cast(o.nonzero(x, size=n),
                                                   dtype=dtypes.float32)), shape=(n * 2,)),
                  f32(3, 4))
    agrees(module)
    counted = made(lambda x, k: (o.size(k, size=n, most=12), o.slice(
        x, start=(0,), limit=(n,), strides=(1,)))[1], f32(12), TensorType(dtypes.int64, ()))
    model = exported(counted)
    _, (got,) = run_model(model, [np.arange(12, dtype=np.float32), np.array(5)])
    np.testing.assert_array_equal(got, np.arange(5))


def test_a_loop_over_an_open_number_of_rows() -> None:
    body = trace(lambda h, x: (o.add(h, x), o.mul(h, x)), [f32(4), f32(4)])
    for reverse in (False, True):
        module = made(lambda h, x, r=reverse: o.scan(h, x, body=body, carries=1, xs=1, length=T,
                                                     reverse=r), f32(4), f32(T, 4))
        agrees(module, T=5)


def test_regions_in_regions() -> None:
    step = trace(lambda n, x: (o.sub(n, 1), o.mul(x, 0.5)),
                 [TensorType(dtypes.int64, ()), f32(3)])
    more = trace(lambda n, x: o.gt(n, 0), [TensorType(dtypes.int64, ()), f32(3)])
    yes = trace(lambda n, x: o.while_(n, x, cond=more, body=step, carries=2)[1],
                [TensorType(dtypes.int64, ()), f32(3)])
    no = trace(lambda n, x: x, [TensorType(dtypes.int64, ()), f32(3)])
    module = made(lambda p, n, x: o.cond(p, n, x, then=yes, orelse=no),
                  TensorType(dtypes.bool_, ()), TensorType(dtypes.int64, ()), f32(3))
    for seed in (0, 1, 2):
        agrees(module, seed)


# ---- names, places, bytes ----------------------------------------------------------------------

def test_names_and_places() -> None:
    graph = trace(lambda x: o.exp(o.relu(x)), [f32(2)], ["in"])
    nodes = tuple(Node(n.op, n.inputs, n.attrs, n.outputs, "here") for n in graph.nodes)
    module = Module(Graph(graph.inputs, nodes, graph.outputs), ("out",),
                    locations={"here": Location("a.py:7 A.forward", "return f(x)")})
    model = exported(module)
    assert [(n.op_type, n.name, n.doc_string) for n in model.graph.node] == [
        ("Relu", "relu", "a.py:7 A.forward return f(x)"),
        ("Exp", "out", "a.py:7 A.forward return f(x)")]


def test_outputs_that_are_inputs_constants_or_twice_the_same() -> None:
    def fn(x: Any) -> Any:
        y = o.exp(x)
        return x, y, y, x.builder.constant(np.ones(3, np.float32), "ones")
    agrees(made(fn, f32(2)))


def test_an_output_may_be_called_as_another_value_is() -> None:
    graph = trace(lambda x: o.exp(o.relu(x)), [f32(2)], ["x"])
    agrees(Module(graph, ("relu",)))
    x, = graph.inputs
    copied = model_of(Module(Graph((x,), (), (x,)), ("x2",))).graph
    assert [v.name for v in copied.output] == ["x2"]


def test_equal_graphs_give_equal_bytes() -> None:
    first, second = (model_of(layers(3)).SerializeToString(deterministic=True) for _ in range(2))
    assert first == second


def test_all_that_has_no_form_is_refused_at_once() -> None:
    module = made(lambda x: o.lgamma(o.erf_inv(o.lgamma(x))), f32(2))
    with pytest.raises(UnsupportedError, match=r"(?s)GT1040.*2 × lgamma.*1 × erf_inv"):
        model_of(module)


def test_weights_in_a_file_beside(tmp_path: Path) -> None:
    def fn(x: Any) -> Any:
        w = x.builder.constant(np.full((64, 64), 0.1, np.float32), "w", True)
        b = x.builder.constant(np.ones(64, np.float32), "b", True)
        return o.matmul(o.matmul(x, w), w) + b
    module, path = made(fn, f32(2, 64)), tmp_path / "m.onnx"
    export_onnx(module, path, external=True)
    assert (tmp_path / "m.onnx.data").stat().st_size == 64 * 64 * 4
    onnx.checker.check_model(str(path), full_check=True)
    assert diff(module, import_onnx(path)).equal


@pytest.mark.parametrize("kind", [
    "f8e4m3fn", "bf16", *(d.short for d in dtypes.TABLE if d.onnx and d.is_packed)])
def test_narrow_constants_are_packed(kind: str) -> None:
    row = dtypes.dtype(kind)
    values = np.arange(7).astype(np.float32).astype(row.numpy)
    module = made(lambda x: x + o.cast(x.builder.constant(values), dtype=dtypes.float32), f32(7))
    model = model_of(module)
    stored, = model.graph.initializer
    assert len(stored.raw_data) == -(-7 * row.bits // 8)
    back = import_model(model)
    x = np.zeros(7, np.float32)
    np.testing.assert_array_equal(interp.run(back, {"x0": x})["y0"], values.astype(np.float32))


# ---- round trips -------------------------------------------------------------------------------

def test_what_comes_back_is_what_went() -> None:
    def block(x: Any, g: Any, w: Any, k: Any, c: Any) -> Any:
        y = o.gelu(o.linear(o.layer_norm(x, g, g, axes=(1,)), w), approximate="tanh")
        z = o.conv(k, c, strides=(1, 1), padding=((1, 1), (1, 1)), rhs_dilation=(1, 1))
        return o.softmax(y, axis=1) * 0.5, z
    module = made(block, f32(3, 8), f32(8), f32(4, 8), f32(1, 2, 6, 6), f32(4, 2, 3, 3))
    assert diff(module, import_model(model_of(module))).equal


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.onnx")), ids=lambda p: p.stem)
def test_samples(path: Path) -> None:
    module = import_onnx(path)
    agrees(module)
    agrees(run(module))


def test_onnxruntime_accepts_the_versions_without_a_word() -> None:
    import onnxruntime
    model = model_of(layers(1))
    onnxruntime.InferenceSession(model.SerializeToString(), OPTIONS)
    assert [(out.domain, out.version) for out in model.opset_import] == [("", 26)]


def test_values_are_named_once() -> None:
    model = model_of(layers(3))
    names = [n for node in model.graph.node for n in node.output]
    assert len(set(names)) == len(names)
    assert isinstance(layers(3).graph.outputs[0], Value)
