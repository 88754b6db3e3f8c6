"""Forms of operations that JAX does not write: the evaluator and compiled code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.importers.stablehlo import import_text
from graphtool.ir import listing
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names

F, I32 = np.float32, np.int32
X = np.arange(12, dtype=F).reshape(2, 3, 2)
SELECT = """%y = "stablehlo.select_and_scatter"(%a, %b, %c) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.compare DIRECTION, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %k : tensor<i1>
    }, {
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.PUT %p, %q : tensor<f32>
      stablehlo.return %k : tensor<f32>
    }) {window_dimensions = array<i64: 3>, window_strides = array<i64: 2>,
        padding = dense<[[1, 1]]> : tensor<1x2xi64>}
    : (tensor<5xf32>, tensor<3xf32>, tensor<f32>) -> tensor<5xf32>"""
LINE, SOURCE = np.array([4, 4, 1, 4, 4], F), np.array([2, 3, 5], F)
REDUCE = """%y = "stablehlo.reduce_window"(%a, %b) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %k : tensor<f32>
    }) {window_dimensions = array<i64: 2>, window_dilations = array<i64: 3>,
        padding = dense<-1> : tensor<1x2xi64>} : (tensor<3xf32>, tensor<f32>) -> tensor<0xf32>"""
GATHER = """%y = "stablehlo.gather"(%a, %b) {dimension_numbers = #stablehlo.gather<
    offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0],
    start_indices_batching_dims = [1], start_index_map = [1], index_vector_dim = 0>,
    slice_sizes = array<i64: 1, 1, 2>} : (tensor<2x3x2xf32>, tensor<1x2xi32>) -> tensor<2x2xf32>"""
SCATTER = """%y = "stablehlo.scatter"(%a, %b, %c) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %k : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
    inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [1],
    scatter_dims_to_operand_dims = [1], index_vector_dim = 0>}
    : (tensor<2x3x2xf32>, tensor<1x2xi32>, tensor<2x2xf32>) -> tensor<2x3x2xf32>"""
OUTSIDE = """%s = stablehlo.add %c, %c : tensor<f32>
    %y = "stablehlo.scatter"(%a, %b, %u) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.multiply %p, %s : tensor<f32>
      %r = stablehlo.add %k, %q : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
    : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>"""
ADDED = X.copy()
ADDED[0, 2] += 1
ADDED[1, 0] += 1
NIBBLES = np.array([[1, 2], [15, 0]], ml_dtypes.uint4)


def main(takes: str, gives: str, body: str) -> Module:
    return import_text(f"func.func @main({takes}) -> {gives} {{ {body} return %y : {gives} }}")


def given(module: Module, *arrays: Any) -> dict[str, Any]:
    names = value_names(module.graph)
    return {names[v]: x for v, x in zip(module.graph.inputs, arrays, strict=True)}


LINES = "%a: tensor<5xf32>, %b: tensor<3xf32>, %c: tensor<f32>"
CASES: dict[str, tuple[str, str, str, list[Any], Any]] = {
    # windows 4 4 | 4 1 4 | 4 4 around the padding; of equals the last, which GT lets pass
    "the last greatest": (LINES, "tensor<5xf32>", SELECT.replace("DIRECTION", "GT").replace(
        "PUT", "add"), [LINE, SOURCE, F(0)], [0, 2, 0, 3, 5]),
    "the last least": (LINES, "tensor<5xf32>", SELECT.replace("DIRECTION", "LT").replace(
        "PUT", "add"), [LINE, SOURCE, F(0)], [0, 2, 3, 0, 5]),
    "the greatest source": (LINES, "tensor<5xf32>", SELECT.replace("DIRECTION", "GE").replace(
        "PUT", "maximum"), [LINE, SOURCE, F(1)], [2, 3, 1, 5, 1]),
    "no window": ("%a: tensor<3xf32>, %b: tensor<f32>", "tensor<0xf32>", REDUCE,
                  [np.ones(3, F), F(0)], np.zeros(0)),
    "no window of a convolution": (
        "%a: tensor<1x2x3xf32>, %w: tensor<3x3x2xf32>", "tensor<1x0x2xf32>",
        "%y = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], "
        "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
        "(tensor<1x2x3xf32>, tensor<3x3x2xf32>) -> tensor<1x0x2xf32>",
        [np.ones((1, 2, 3), F), np.ones((3, 3, 2), F)], np.zeros((1, 0, 2))),
    "gather with the coordinates in front": (
        "%a: tensor<2x3x2xf32>, %b: tensor<1x2xi32>", "tensor<2x2xf32>", GATHER,
        [X, np.array([[2, 0]], I32)], X[[0, 1], [2, 0]]),
    "scatter with the coordinates in front": (
        "%a: tensor<2x3x2xf32>, %b: tensor<1x2xi32>, %c: tensor<2x2xf32>", "tensor<2x3x2xf32>",
        SCATTER, [X, np.array([[2, 0]], I32), np.ones((2, 2), F)], ADDED),
    "a body of a scatter that reads a computed value": (
        "%a: tensor<3xf32>, %b: tensor<4x1xi32>, %u: tensor<4xf32>, %c: tensor<f32>",
        "tensor<3xf32>", OUTSIDE, [F([1, 2, 3]), np.array([[0], [2], [0], [7]], I32),
                                   F([1, 2, 3, 4]), F(5)], [113, 2, 32]),
    "four bits as eight": (
        "%a: tensor<2x2xui4>", "tensor<2xui8>",
        "%y = stablehlo.bitcast_convert %a : (tensor<2x2xui4>) -> tensor<2xui8>",
        [NIBBLES], [0x21, 0x0F]),
    "eight bits as four": (
        "%a: tensor<2xi8>", "tensor<2x2xi4>",
        "%y = stablehlo.bitcast_convert %a : (tensor<2xi8>) -> tensor<2x2xi4>",
        [np.array([0x21, 0x0F], np.int8)], [[1, 2], [-1, 0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, tmp_path: Path) -> None:
    takes, gives, body, arrays, want = CASES[name]
    module = main(takes, gives, body)
    (found,) = interp.run(module, given(module, *arrays)).values()
    np.testing.assert_array_equal(found.astype(F), np.asarray(want, F))
    graphtool.build(module, str(tmp_path / "build"), name="model")
    (made,) = graphtool.load(str(tmp_path / "build")).run(given(module, *arrays)).values()
    np.testing.assert_array_equal(np.asarray(made).astype(F), np.asarray(want, F))


def test_rounding_keeps_the_sign_of_zero() -> None:
    module = main("%a: tensor<6xf32>", "tensor<6xf32>",
                  "%y = stablehlo.round_nearest_afz %a : tensor<6xf32>")
    (found,) = interp.run(module, given(module, F([-0.3, -0.0, 0.3, -2.5, 2.5, 0.5]))).values()
    assert [str(v) for v in found.tolist()] == ["-0.0", "-0.0", "0.0", "-3.0", "3.0", "1.0"]


def test_complex_numbers_are_padded_by_computed_sizes() -> None:
    module = main("%a: tensor<2xcomplex<f32>>", "tensor<4xcomplex<f32>>", """
        %v = stablehlo.constant dense<(1.0, 2.0)> : tensor<complex<f32>>
        %l = stablehlo.constant dense<1> : tensor<1xi64>
        %i = stablehlo.constant dense<0> : tensor<1xi64>
        %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<2xcomplex<f32>>) -> tensor<i32>
        %y = stablehlo.dynamic_pad %a, %v, %l, %l, %i : (tensor<2xcomplex<f32>>,
            tensor<complex<f32>>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>)
            -> tensor<4xcomplex<f32>>""")
    re, im = interp.run(module, given(module, F([3, 4]), F([5, 6]))).values()
    assert (re.tolist(), im.tolist()) == ([1, 3, 4, 1], [2, 5, 6, 2])


@pytest.mark.parametrize(("count", "conds"), [(2, 1), (3, 2)])
def test_only_inner_choices_read_the_index(count: int, conds: int) -> None:
    regions = ", ".join(["{ %q = stablehlo.add %a, %a : tensor<f32> "
                         "stablehlo.return %q : tensor<f32> }"] * count)
    module = main("%i: tensor<i32>, %a: tensor<f32>", "tensor<f32>",
                  f'%y = "stablehlo.case"(%i) ({regions}) : (tensor<i32>) -> tensor<f32>')
    text = listing.dumps(module)
    assert text.count("= cond(") == conds and text.count("input index") == 2 * (conds - 1)
