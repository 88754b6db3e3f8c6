"""gather and scatter of many forms × element types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.lab.stablehlo_cases.case import EVERY, Case, array, case, tensor
from tests.lab.stablehlo_cases.reductions import body_of

# name → shape of x, indices, result or updates, and the numbers of the gather
GATHERS: dict[str, tuple[tuple[int, ...], np.ndarray, tuple[int, ...], str, tuple[int, ...]]] = {
    "rows": ((5, 4), np.array([[1], [3], [9]]), (3, 4), "offset_dims = [1], collapsed_slice_dims = "
             "[0], start_index_map = [0], index_vector_dim = 1", (1, 4)),
    "windows": ((5, 4), np.array([[1, 0], [4, 3]]), (2, 2, 3), "offset_dims = [1, 2], "
                "start_index_map = [0, 1], index_vector_dim = 1", (2, 3)),
    "points": ((5, 4), np.array([[1, 0], [4, 3], [-2, 1]]), (3,), "collapsed_slice_dims = [0, 1], "
               "start_index_map = [0, 1], index_vector_dim = 1", (1, 1)),
    "turned": ((5, 4), np.array([[1, 0], [4, 3], [2, 1]]).T.copy(), (3,), "collapsed_slice_dims = "
               "[0, 1], start_index_map = [1, 0], index_vector_dim = 0", (1, 1)),
    "batched": ((3, 5, 2), np.array([[1, 0], [4, 3], [2, 1]]), (3, 2, 2), "offset_dims = [2], "
                "collapsed_slice_dims = [1], operand_batching_dims = [0], "
                "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2",
                (1, 1, 2)),
    "front": ((5, 4), np.array([2, 0]), (3, 2), "offset_dims = [0], collapsed_slice_dims = [0], "
              "start_index_map = [0], index_vector_dim = 1", (1, 3)),
    "one": ((5, 4), np.array([2]), (4,), "offset_dims = [0], collapsed_slice_dims = [0], "
            "start_index_map = [0], index_vector_dim = 0", (1, 4)),
}
SCATTERS: dict[str, tuple[tuple[int, ...], np.ndarray, tuple[int, ...], str]] = {
    "rows": ((5, 4), np.array([[1], [3], [1]]), (3, 4), "update_window_dims = [1], "
             "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
             "index_vector_dim = 1"),
    "outside": ((5, 4), np.array([[1], [7], [-1]]), (3, 4), "update_window_dims = [1], "
                "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
                "index_vector_dim = 1"),
    "windows": ((5, 4), np.array([[1, 0], [3, 1], [4, 0]]), (3, 2, 3), "update_window_dims = [1, "
                "2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"),
    "points": ((5, 4), np.array([[1, 0], [4, 3], [1, 0]]), (3,), "inserted_window_dims = [0, 1], "
               "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"),
    "batched": ((3, 5), np.array([[1, 0], [4, 3], [2, 2]]), (3, 2), "inserted_window_dims = [1], "
                "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
                "scatter_dims_to_operand_dims = [1], index_vector_dim = 2"),
    "part": ((5, 4), np.array([2]), (3,), "update_window_dims = [0], inserted_window_dims = [0], "
             "scatter_dims_to_operand_dims = [0], index_vector_dim = 0"),
}


def cases() -> Iterator[Case]:
    for name, (shape, at, out, numbers, sizes) in GATHERS.items():
        elements = EVERY if name in ("rows", "windows") else ("f32", "complex<f32>")
        for e in elements:
            for whole in ("i32", "ui8", "i64") if e == "f32" and at.min() >= 0 else ("i32",):
                x, i = array(e, shape, 1), at.astype(whole.replace("ui", "uint").replace(
                    "i", "int", 1) if whole[0] == "i" else "uint8")
                body = (f'%r = "stablehlo.gather"(%a0, %a1) {{dimension_numbers = '
                        f"#stablehlo.gather<{numbers}>, slice_sizes = array<i64: "
                        f"{', '.join(map(str, sizes))}>, indices_are_sorted = false}} : "
                        f"({tensor(e, shape)}, {tensor(whole, i.shape)}) -> {tensor(e, out)}")
                yield case("gather", f"{name} {e} {whole}", [(e, x), (whole, i)], [tensor(e, out)],
                           body)
    for name, (shape, at, form, numbers) in SCATTERS.items():
        for e in EVERY if name in ("rows", "points") else ("f32", "complex<f32>", "i32"):
            for op in ("add", "set", "multiply", "maximum") if e in ("f32", "i32") else (
                    "add", "set", *(["multiply"] if e != "i1" else [])):
                if op == "set" and name not in ("outside", "part"):
                    continue  # of equal places any update may be the one that stays
                yield scattered(name, op, e, shape, at, form, numbers)
        yield scattered(name, "mixed", "f32", shape, at, form, numbers)
    yield case("scatter", "two tensors", [("f32", array("f32", (5, 4), 1)), ("i32", array("i32", (
        5, 4), 2)), ("i32", np.array([[1], [3]], np.int32)), ("f32", array("f32", (2, 4), 3)), (
            "i32", array("i32", (2, 4), 4))], ["tensor<5x4xf32>", "tensor<5x4xi32>"], """
  %r:2 = "stablehlo.scatter"(%a0, %a1, %a2, %a3, %a4) ({
    ^bb0(%p: tensor<f32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<i32>):
      %m = stablehlo.add %p, %v : tensor<f32>
      %n = stablehlo.maximum %q, %w : tensor<i32>
      stablehlo.return %m, %n : tensor<f32>, tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
        : (tensor<5x4xf32>, tensor<5x4xi32>, tensor<2x1xi32>, tensor<2x4xf32>,
          tensor<2x4xi32>) -> (tensor<5x4xf32>, tensor<5x4xi32>)""")
    yield case("dynamic_gather", "f32", [("f32", array("f32", (5, 4), 1)), ("i32", np.array(
        [[1], [3]], np.int32))], ["tensor<2x4xf32>"], """
  %s = stablehlo.constant dense<[1, 4]> : tensor<2xi32>
  %r = "stablehlo.dynamic_gather"(%a0, %a1,
      %s) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0],
        start_index_map = [0], index_vector_dim = 1>} : (tensor<5x4xf32>, tensor<2x1xi32>,
          tensor<2xi32>) -> tensor<2x4xf32>""")
    yield case("torch_index_select", "f32", [("f32", array("f32", (5, 4), 1)), ("i32", np.array(
        [1, 3, 0], np.int32))], ["tensor<5x3xf32>"], """
  %r = "stablehlo.torch_index_select"(%a0, %a1) {dim = 1 : i64, batch_dims = 0 : i64}
      : (tensor<5x4xf32>, tensor<3xi32>) -> tensor<5x3xf32>""")
    yield case("torch_index_select", "batch", [("f32", array("f32", (3, 5, 4), 1)), ("i32", array(
        "i32", (3, 2), 1, 0, 1))], ["tensor<3x2x4xf32>"], """
  %r = "stablehlo.torch_index_select"(%a0, %a1) {dim = 1 : i64, batch_dims = 1 : i64}
      : (tensor<3x5x4xf32>, tensor<3x2xi32>) -> tensor<3x2x4xf32>""")


def scattered(name: str, op: str, e: str, shape: tuple[int, ...], at: np.ndarray,
              form: tuple[int, ...], numbers: str) -> Case:
    s = tensor(e, ())
    body = body_of(op, e)
    if op == "set":
        body = f"({{\n  ^bb0(%p: {s}, %q: {s}):\n    stablehlo.return %q : {s}\n  }})"
    if op == "mixed":
        body = (f"({{\n  ^bb0(%p: {s}, %q: {s}):\n    %m = stablehlo.multiply %p, %q : {s}\n    "
                f"%n = stablehlo.add %m, %q : {s}\n    stablehlo.return %n : {s}\n  }})")
    x, i, u = array(e, shape, 1, -1.5, 1.5), at.astype(np.int32), array(e, form, 2, -1.5, 1.5)
    return case("scatter", f"{name} {op} {e}", [(e, x), ("i32", i), (e, u)], [tensor(e, shape)],
                f'%r = "stablehlo.scatter"(%a0, %a1, %a2) {body} {{scatter_dimension_numbers = '
                f"#stablehlo.scatter<{numbers}>}} : ({tensor(e, shape)}, "
                f"{tensor('i32', i.shape)}, {tensor(e, form)}) -> {tensor(e, shape)}", 1e-4)
