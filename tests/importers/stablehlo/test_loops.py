"""Loops: those that count become scans, which have a gradient; others stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

from graphtool import interp
from graphtool.importers.stablehlo import import_text
from graphtool.ir.graph import Module, Node
from graphtool.transforms.reverse import grad
from tests.evaluating import run


def loop(index: str, first: int = 0, test: str = "LT", step: int = 1, rows: str = "") -> Module:
    """y[k] = x[index]·2 for each k from `first` on, and the sum of all that was read."""
    return import_text(f"""func.func @main(%x: tensor<4x3xf32> loc("x"))
      -> (tensor<3xf32>, tensor<4x3xf32>) {{
  %zero = stablehlo.constant dense<{first}> : tensor<i32>
  %sum = stablehlo.constant dense<0.0> : tensor<3xf32>
  %out = stablehlo.constant dense<7.0> : tensor<4x3xf32>
  %n = stablehlo.constant dense<4> : tensor<i32>
  %0:4 = stablehlo.while(%i = %zero, %s = %sum, %y = %out, %z = %x) : tensor<i32>, tensor<3xf32>,
      tensor<4x3xf32>, tensor<4x3xf32>
  cond {{
    %t = stablehlo.compare {test}, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %step = stablehlo.constant dense<{step}> : tensor<i32>
    %nil = stablehlo.constant dense<0> : tensor<i32>
    %a = stablehlo.subtract %n, %i : tensor<i32>
    %b = stablehlo.subtract %a, %one : tensor<i32>
    %r = stablehlo.dynamic_slice %z, {index}, %nil, sizes = [1, 3] : (tensor<4x3xf32>,
        tensor<i32>, tensor<i32>) -> tensor<1x3xf32>
    %v = stablehlo.reshape %r : (tensor<1x3xf32>) -> tensor<3xf32>
    %w = stablehlo.add %s, %v : tensor<3xf32>
    %d = stablehlo.add %r, %r : tensor<1x3xf32>
    %u = stablehlo.dynamic_update_slice %y, %d, {index}, %nil : (tensor<4x3xf32>,
        tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    %j = stablehlo.add %i, %step : tensor<i32>
    stablehlo.return %j, %w, %u, %z : tensor<i32>, tensor<3xf32>, tensor<4x3xf32>, tensor<4x3xf32>
  }}
  return %0#1, %0#2 : tensor<3xf32>, tensor<4x3xf32>
}}""")


def only_loop(module: Module) -> Node:
    return next(n for n in module.graph.nodes if n.op.name in ("scan", "while"))


FORWARD = """func.func @main(%x: tensor<5x3xf32> loc("x")) -> tensor<f32> {
  %nil = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %start = stablehlo.constant dense<0.0> : tensor<3xf32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0:3 = stablehlo.while(%i = %nil, %s = %start, %y = %none) : tensor<i32>, tensor<3xf32>,
      tensor<f32>
  cond {
    %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %r = stablehlo.dynamic_slice %x, %i, %nil, sizes = [1, 3] : (tensor<5x3xf32>, tensor<i32>,
        tensor<i32>) -> tensor<1x3xf32>
    %v = stablehlo.reshape %r : (tensor<1x3xf32>) -> tensor<3xf32>
    %w = stablehlo.add %s, %v : tensor<3xf32>
    %q = stablehlo.multiply %w, %w : tensor<3xf32>
    %p = stablehlo.reduce(%q init: %none) applies stablehlo.add across dimensions = [0] :
        (tensor<3xf32>, tensor<f32>) -> tensor<f32>
    %z = stablehlo.add %y, %p : tensor<f32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w, %z : tensor<i32>, tensor<3xf32>, tensor<f32>
  }
  return %0#2 : tensor<f32>
}"""


@pytest.mark.parametrize(("index", "reverse"), [("%i", False), ("%b", True)])
def test_a_loop_over_rows_is_a_scan_of_rows(index: str, reverse: bool) -> None:
    module = loop(index)
    node = only_loop(module)
    assert (node.op.name, node.attrs["carries"], node.attrs["xs"], node.attrs["reverse"]) == (
        "scan", 1, 1, reverse)
    check(module, range(4))


def check(module: Module, read: range) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    total, out = interp.run(module, {"x": x}).values()
    np.testing.assert_array_equal(total, x[read].sum(0))
    want = np.full_like(x, 7)
    want[read] = 2 * x[read]
    np.testing.assert_array_equal(out, want)


def test_a_loop_from_another_start_keeps_its_counter() -> None:
    module = loop("%i", first=1)
    node = only_loop(module)
    assert (node.op.name, node.attrs["carries"], node.attrs["xs"], node.attrs["length"]) == (
        "scan", 3, 0, 3)
    check(module, range(1, 4))


@pytest.mark.parametrize(("first", "test", "step", "read"), [
    (0, "LE", 2, range(0, 5, 2)), (0, "LT", 2, range(0, 4, 2)), (4, "LT", 1, range(0)),
    (9, "LT", 1, range(0))])
def test_other_loops_stay(first: int, test: str, step: int, read: range) -> None:
    module = loop("%i", first, test, step)
    assert only_loop(module).op.name == "while"
    if max(read, default=0) < 4:
        check(module, read)


def test_an_imported_recurrence_has_the_gradient_of_jax() -> None:
    """Our own reverse mode of JAX's forward pass, beside JAX's own gradient."""
    forward = import_text(FORWARD)
    graph = grad(forward.graph, 0, forward.graph.inputs)
    assert "scan" in [n.op.name for n in graph.nodes]
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3)).astype(np.float32)
    _, got = run(graph, [x])
    want = np.zeros_like(x)
    for i, j in np.ndindex(x.shape):  # ∂/∂x of Σ over t of (Σ rows up to t)²
        want[i, j] = sum(2 * x[:t + 1, j].sum() for t in range(i, 5))
    np.testing.assert_allclose(got, want, 1e-5, 1e-5)
