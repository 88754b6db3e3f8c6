"""The text itself, beside golden files; it needs no other package."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, import_model, interp
from graphtool import ops as o
from graphtool.escaping import mlir_string
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.exporters.stablehlo.text import dense, identifier, number
from graphtool.importers.onnx import import_onnx
from graphtool.importers.stablehlo import import_text
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Location, Module, TensorType
from graphtool.ir.trace import Builder, trace
from graphtool.symbolic import symbol, symbols

GOLDEN = Path(__file__).parents[1] / "golden"
F = TensorType(dtypes.float32, (2, 3))


def golden(name: str, text: str, request: pytest.FixtureRequest) -> None:
    """Compare with a golden file; what is written is read, too."""
    path = GOLDEN / f"stablehlo_{name}.mlir"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert text == path.read_text()


def small() -> Module:
    """An op that is one operation, composites, a body of scalars, and names with odd characters."""
    def fn(x: Any, y: Any) -> Any:
        z = o.softmax(o.mul(x, 2.0) + o.reduce_max(y, axes=(1,)), axis=1)
        return z, o.sort(y, axis=1)[1]
    graph = trace(fn, [F, F], ["a[0].b", "2nd arg"])
    place = replace(graph.nodes[0], where="here")
    return Module(replace(graph, nodes=(place, *graph.nodes[1:])), ("out", "order"),
                  locations={"here": Location("net.py:7 Net.forward")}, donations=((0, 1),),
                  meta={"name": "small one"})


@pytest.mark.parametrize("composites", [True, False])
def test_small(composites: bool, request: pytest.FixtureRequest) -> None:
    text = stablehlo_of(small(), composites=composites)
    golden("small" if composites else "flat", text, request)
    again = import_text(text)
    assert again.output_names == ("out", "order") and again.donations == ((0, 1),)
    assert [v.hint for v in again.graph.inputs] == ["a.0.b", "2nd arg"]
    assert Location("net.py:7 Net.forward") in again.locations.values()


def test_aliases_are_left_out_on_request() -> None:
    text = stablehlo_of(small())
    assert text.replace(" {tf.aliasing_output = 0 : i32}", "") == stablehlo_of(
        small(), aliases=False) != text
    assert import_text(stablehlo_of(small(), aliases=False)).donations == ()


@pytest.mark.parametrize("name", [pytest.param("mlp", marks=pytest.mark.torch), "digits"])
def test_samples(name: str, request: pytest.FixtureRequest) -> None:
    module = import_onnx(Path("samples") / f"{name}.onnx") if name == "digits" else import_model(
        f"samples/{name}.py:model")
    golden(name, stablehlo_of(module, elide=True), request)


def test_open_sizes_keep_their_names_and_bounds() -> None:
    batch, half = symbol("batch", 1, 64), symbol("half", 1)
    def fn(x: Any, y: Any) -> Any:
        wide = o.broadcast(o.reduce_max(x, axes=(1,)), shape=(batch, 2 * half))
        return o.cumulative(o.pad(y, lo=(0, 1), hi=(0, half - 1)), kind="sum", axis=1) + wide
    types = [TensorType(dtypes.float32, (batch, d)) for d in (2 * half, half)]
    module = Module(trace(fn, types), ("y",), {s.name: s for t in types for d in t.shape
                                               for s in symbols(d)})
    again = import_text(stablehlo_of(module))
    assert {k: (s.lo, s.hi) for k, s in again.symbols.items()} == {
        "batch": (1, 64), "half": (1, None)}
    xs = {"x0": np.ones((3, 8), np.float32), "x1": np.ones((3, 4), np.float32)}
    (got,), (want,) = (list(interp.run(m, xs).values()) for m in (again, module))
    np.testing.assert_array_equal(got, want)


def test_numbers() -> None:
    said = [number(np.float32(x), dtypes.float32) for x in (0.1, 1e-20, -0.0, 3, np.inf, np.nan)]
    assert said == ["0.1", "1.0e-20", "-0.0", "3.0", "0x7F800000", "0x7FC00000"]
    assert number(np.float16(np.inf), dtypes.float16) == "0x7C00"
    assert number(np.uint8(200), dtypes.uint8) == "200"


@pytest.mark.parametrize("x", [
    np.zeros((2, 0)), np.full((3, 2), 7, np.int8), np.array([True, False]), np.arange(100.0),
    np.array([[0.0, -0.0]]), np.array([np.nan, np.inf, -np.inf, 1e-45], np.float32),
    np.arange(40, dtype=np.uint16), np.arange(3).astype(dtypes.bfloat16.numpy),
    np.arange(99).astype(dtypes.float8e5m2.numpy), np.arange(50).astype(dtypes.int4.numpy),
    np.arange(70) % 3 == 0], ids=lambda x: f"{x.dtype}{x.shape}")
def test_arrays_are_read_back(x: Any) -> None:
    builder = Builder()
    made = builder.constant(x)
    text = stablehlo_of(Module(Graph((), tuple(builder.nodes), (made.value,)), ("y",)))
    (y,) = interp.run(import_text(text), {}).values()
    assert y.dtype == x.dtype and y.shape == x.shape and y.tobytes() == x.tobytes()


def test_equal_types_of_a_choice_are_written_in_full() -> None:
    flag = TensorType(dtypes.bool_, ())
    graph = trace(lambda p, a, b: o.select(p, a, b), [flag, flag, flag])
    assert "(tensor<i1>, tensor<i1>, tensor<i1>) -> tensor<i1>" in stablehlo_of(
        Module(graph, ("y",)))


def test_names() -> None:
    assert [identifier(s) for s in ("fc1.weight", "relu#2", "3rd", "é t", "")] == [
        "fc1.weight", "relu_2", "_3rd", "__t", "_"]
    assert mlir_string('a"b\\c\n') == '"a\\"b\\\\c\\0A"'


def test_weights_are_left_out_for_reading_only() -> None:
    x = np.arange(64, dtype=np.float32)
    assert "__elided__" not in dense(weight(x)) and dense(weight(x), True) == (
        "dense_resource<__elided__>")
