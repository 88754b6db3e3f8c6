"""Whole graphs written as StableHLO and read back: the same graph, up to the names of values.

No pass runs between: what has no effect, is computed twice or is never read comes back, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

import graphtool
from graphtool import dtypes, import_model, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.errors import InputError
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.importers.onnx import import_onnx
from graphtool.importers.stablehlo import import_stablehlo, import_text
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder
from graphtool.report.diff import diff
from graphtool.symbolic import symbol, symbols

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
JAX = Path("tests/importers/stablehlo")


def same(module: Module) -> None:
    """Compare a module with what comes back: nodes, interface, sizes, and states."""
    again = import_text(stablehlo_of(module))
    found = diff(module, again)
    assert found.equal, [f"{c.kind} {c.name} {c.op} {c.detail}" for c in found.changes]
    for part in ("output_names", "donations", "requires", "symbols", "initial"):
        assert getattr(again, part) == getattr(module, part), part
    assert [v.hint for v in again.graph.inputs] == [v.hint for v in module.graph.inputs]


def with_passes(module: Module) -> None:
    same(module)
    same(passes.run(module))


# ---- models ------------------------------------------------------------------------------------

@pytest.mark.long
@pytest.mark.parametrize("capture", ["export", "fx"])
@pytest.mark.parametrize("name", ["digits", "mlp", "transformer"])
def test_samples(name: str, capture: Any) -> None:
    with_passes(import_model(f"samples/{name}.py:model", capture=capture))


@pytest.mark.torch
def test_open_sizes() -> None:
    with_passes(import_model("samples/digits.py:model", dynamic={"batch": (1, 64)}))


@pytest.mark.long
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("source", ["samples/digits.onnx", "samples/transformer.py:model"])
def test_training_steps(source: str, optimizer: Any) -> None:
    loss: Any = "cross_entropy" if "digits" in source else "mse"
    step = graphtool.grad(import_model(source), graphtool.Recipe(loss, optimizer=optimizer))
    assert step.donations
    with_passes(step)


def torch_models() -> dict[str, Any]:
    import torch
    from torch import nn
    torch.manual_seed(0)

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: self.a(x), lambda x: self.b(x).relu(), (x,))

    class Masked(nn.Module):
        def forward(self, x: Any, mask: Any) -> Any:
            return x[mask] * 2

    class Odd(nn.Module):
        def forward(self, x: Any) -> Any:
            v, i = x.topk(3)
            y = x.sort().values.cumsum(-1) + x.reshape(2, 16).reshape(4, 8)[:]
            return v, i, y, x.argmax(-1), torch.fft.rfft(x).abs(), torch.arange(4) + i[:, 0]
    wide, grid = torch.randn(2, 5, 8), torch.randn(1, 4, 8, 8)
    return {
        "LSTM": (nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True), (wide,)),
        "GRU": (nn.GRU(8, 16, batch_first=True), (wide,)),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (wide,)),
        "pixels": (nn.Sequential(nn.ConvTranspose2d(4, 8, 3, 2, 1, 1, groups=2), nn.GroupNorm(2, 8),
                                 nn.Upsample(scale_factor=1.5, mode="bilinear"), nn.MaxPool2d(3, 2),
                                 nn.AdaptiveAvgPool2d(2)), (grid,)),
        "branches": (Branches(), (torch.randn(2, 4),)),
        "masked": (Masked(), (torch.randn(4, 3), torch.tensor([True, False, True, True]))),
        "odd": (Odd(), (torch.randn(4, 8),))}


@pytest.mark.parametrize("name", ["LSTM", "GRU", "encoder", "pixels", "branches", "masked", "odd"])
def test_torch(name: str) -> None:
    net, args = torch_models()[name]
    with_passes(import_model(net, args))


@pytest.mark.long
def test_a_step_with_dropout_has_random_numbers_and_state() -> None:
    import torch
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout(),
                              torch.nn.Flatten(), torch.nn.Linear(144, 3)).train()
    module = import_model(net, (torch.randn(2, 1, 8, 8),))
    step = graphtool.grad(module, graphtool.Recipe("mse", optimizer="adam"))
    assert step.initial
    with_passes(step)


# ---- ONNX: control flow, sizes that depend on data, open sizes that must be equal ---------------

def branch(op: str, *inputs: str) -> Any:
    return make_graph([make_node(op, inputs, [op])], op, [], [value(op, FLOAT, [3])])


def value(name: str, kind: int, shape: Any) -> Any:
    return make_tensor_value_info(name, kind, shape)


BODY = make_graph(
    [make_node("Add", ["v", "x"], ["w"]), make_node("ReduceSum", ["w"], ["s"], keepdims=0),
     make_node("Less", ["s", "limit"], ["more"]), make_node("Mul", ["w", "w"], ["row"])], "body",
    [value("i", INT, []), value("c", BOOL, []), value("v", FLOAT, [3])],
    [value("more", BOOL, []), value("w", FLOAT, [3]), value("row", FLOAT, [3])])
STEP = make_graph(
    [make_node("Add", ["h", "r"], ["g"]), make_node("Mul", ["g", "r"], ["out"])], "step",
    [value("h", FLOAT, [3]), value("r", FLOAT, [3])],
    [value("g", FLOAT, [3]), value("out", FLOAT, [3])])
X, K = ("x", FLOAT, [3]), {"limit": np.float32(100), "k": np.float32([2, 3, 4])}
ONNX: dict[str, tuple[list[Any], list[Any], dict[str, Any]]] = {
    "If": ([make_node("If", ["p"], ["y"], then_branch=branch("Mul", "k", "x"),
                      else_branch=branch("Sub", "x", "z"))],
           [("p", BOOL, []), X, ("z", FLOAT, [3])], K),
    "Loop": ([make_node("Loop", ["n", "", "x"], ["y", "rows"], body=BODY)],
             [("n", INT, []), X], K),
    "Loop of known length": ([make_node("Loop", ["n", "", "x"], ["y", "rows"], body=BODY)], [X],
                             {**K, "n": np.array(4)}),
    "Scan": ([make_node("Scan", ["x", "xs"], ["y", "rows"], body=STEP, num_scan_inputs=1,
                        scan_input_directions=[1])], [X, ("xs", FLOAT, ["n", 3])], {}),
    "NonZero": ([make_node("NonZero", ["x"], ["i"]), make_node("Gather", ["x", "i"], ["y"])], [X],
                {}),
    "Range": ([make_node("Range", ["a", "b", "c"], ["r"]), make_node("Add", ["r", "one"], ["y"])],
              [("a", INT, []), ("b", INT, []), ("c", INT, [])], {"one": np.array(1)}),
    "sizes that must be equal": ([make_node("Add", ["a", "b"], ["y"])],
                                 [("a", FLOAT, ["n", "m"]), ("b", FLOAT, ["k", "m"])], {}),
    "a size with a step": ([make_node("Reshape", ["a", "shape"], ["y"])], [("a", FLOAT, ["n"])],
                           {"shape": np.array([4, -1])}),
    "8 bits": ([make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
                make_node("MatMulInteger", ["q", "w", "z", "z"], ["m"]),
                make_node("DequantizeLinear", ["q", "s", "z"], ["y"])], [X],
               {"s": np.float32(0.1), "z": np.uint8(128), "w": np.ones((3, 2), np.uint8)}),
}


def onnx_model(name: str, folder: Path) -> Module:
    nodes, inputs, constants = ONNX[name]
    graph = make_graph(
        nodes, "g", [value(*x) for x in inputs],
        [onnx.ValueInfoProto(name=y) for y in nodes[-1].output],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
    model = make_model(graph, opset_imports=[make_opsetid("", 21)], ir_version=10)
    onnx.save(model, folder / "m.onnx")
    return import_onnx(folder / "m.onnx")


@pytest.mark.parametrize("name", ONNX)
def test_onnx(name: str, tmp_path: Path) -> None:
    with_passes(onnx_model(name, tmp_path))


# ---- JAX ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("path", sorted(JAX.glob("*/*.mlir")), ids=lambda p: p.stem)
def test_programs_of_jax(path: Path) -> None:
    module = import_stablehlo(path)
    same(module)
    same(passes.run(module, "simplify,fold,cse,dce"))


# ---- what no importer makes --------------------------------------------------------------------

F = TensorType(dtypes.float32, (2, 3))


def built(fn: Callable[[Builder, Any], Any], *types: TensorType) -> Module:
    b = Builder()
    xs = [b.input(t, f"x{i}") for i, t in enumerate(types or (F,))]
    found = fn(b, *xs)
    ys = found if isinstance(found, tuple) else (found,)
    return Module(Graph(tuple(x.value for x in xs), tuple(b.nodes), tuple(y.value for y in ys)),
                  tuple(f"y{i}" for i in range(len(ys))))


def without_effect(b: Builder, x: Any) -> Any:
    x = o.reshape(o.reshape(x, shape=(3, 2)), shape=(2, 3))
    x = o.broadcast(o.reshape(x, shape=(2, 3)), shape=(2, 3))
    x = o.transpose(o.cast(x, dtype=dtypes.float32), perm=(0, 1))
    x = o.slice(x, start=(0, 0), limit=(2, 3), strides=(1, 1))
    x = o.concat(o.pad(x, lo=(0, 0), hi=(0, 0)), axis=0)
    return o.max(o.reduce_sum(x, axes=()), -np.inf)


def never_read(b: Builder, x: Any) -> Any:
    b.constant(np.float32([1, 2]), "unused", param=True)
    o.exp(o.neg(x))
    o.reduce_sum(x, axes=(0,))
    return x + 1.0


def computed_twice(b: Builder, x: Any) -> Any:
    one = b.constant(np.ones((2, 3), np.float32))
    b.constants.clear()
    return o.exp(x) * one + o.exp(x) * b.constant(np.ones((2, 3), np.float32))


def constants_alone(b: Builder, x: Any) -> Any:
    c = b.constant(np.zeros((), np.float32))
    return x + o.broadcast(c, shape=(2, 3)), c, b.constant(np.zeros((0, 4), np.int8))


def literals(b: Builder, x: Any) -> Any:
    return o.pow(x, 0.1) * 1e-12 + 3.0, o.clamp(x, -1.5, 1.5), o.select(o.lt(x, 0.3), 0.0, x)


def windows(b: Builder, x: Any) -> Any:
    return o.dynamic_slice(x, 0, 1, sizes=(1, 2)), o.dynamic_update_slice(
        x, x, b.constant(np.int32(0)), b.constant(np.int64(0)))


ALONE = (without_effect, never_read, computed_twice, constants_alone, literals, windows)


@pytest.mark.parametrize("fn", ALONE, ids=lambda f: f.__name__)
def test_graphs_that_no_importer_makes(fn: Any) -> None:
    same(built(fn))


def opened(b: Builder, x: Any) -> Any:
    n, half = x.shape[0], (x.shape[0] + 1) // 2
    return (o.slice(x, start=(0, 0), limit=(half, 3), strides=(1, 1)),
            o.pad(x, lo=(n - half, 0), hi=(0, 0)), o.reduce_max(x, axes=(1,)),
            o.dynamic_slice(x, b.constant(np.int64(1)), 0, sizes=(half, 2)),
            o.reduce_window(x, kind="max", window=(2, 1), padding=((half, 0), (0, 0))))


def test_sizes_that_are_computed() -> None:
    n = symbol("n", 2, 64, None, 2, 0)
    module = built(opened, TensorType(dtypes.float32, (n, 3)))
    module = replace(module, symbols={s.name: s for s in symbols(n)})
    same(module)
    again, x = import_text(stablehlo_of(module)), {"x0": np.arange(12, dtype=np.float32).reshape(
        4, 3)}
    for a, b in zip(interp.run(module, x).values(), interp.run(again, x).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.long
def test_flat_text_has_the_same_meaning() -> None:
    module = import_model("samples/transformer.py:model")
    again = import_text(stablehlo_of(module, composites=False))
    x = made_up.random_inputs(module, 0, {})
    for a, b in zip(interp.run(again, x).values(), interp.run(module, x).values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("old, new", [
    ("graphtool.bounds = {n = [2 : i64, 64 : i64]}", "graphtool.bounds = 7 : i64"),
    ("graphtool.bounds = {n = [2 : i64, 64 : i64]}", "graphtool.bounds = {n = 3 : i64}"),
    ("graphtool.steps = {n = [2 : i64, 0 : i64]}", "graphtool.steps = {n = [2 : i64, 9 : i64]}"),
    ("graphtool.steps = {n = [2 : i64, 0 : i64]}", 'graphtool.steps = {n = ["a"]}'),
    ("module @graphtool {", "module @graphtool attributes {graphtool.requires = 3 : i64} {"),
    ("module @graphtool {", 'module @graphtool attributes {graphtool.requires = [["a", "b"]]} {'),
    ('graphtool.node = "', 'graphtool.node = "n, n, '),
])
def test_attributes_that_are_malformed(old: str, new: str) -> None:
    n = symbol("n", 2, 64, None, 2, 0)
    text = stablehlo_of(built(lambda b, x: o.reshape(x, shape=(x.shape[0] * 3,)),
                              TensorType(dtypes.float32, (n, 3))))
    assert old in text
    with pytest.raises(InputError):
        import_text(text.replace(old, new))
