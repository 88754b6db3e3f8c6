"""Programs of open sizes: JAX's names and constraints become dims, bounds and conditions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import graphtool
from graphtool import interp
from graphtool.errors import GraphtoolError, InputError, UsageError
from graphtool.importers.stablehlo import import_stablehlo, import_text
from graphtool.ir.listing import required

SAMPLE = Path(__file__).parent / "open" / "sizes.mlir"  # of `make_samples.py`
DIVIDED = SAMPLE.with_name("divided.mlir")


def wanted(x: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    h = np.concatenate([x, x]) @ w
    e = np.exp(h - h.max(1, keepdims=True))
    return [e / e.sum(1, keepdims=True), x.reshape(-1), h[1:], x.mean(0, dtype=np.float32),
            np.arange(len(x), dtype=np.int32), np.pad(x, ((1, 0), (0, 2))), x.cumsum(0)]


def arrays(b: int, t: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(b)
    return {"x": rng.standard_normal((b, t)).astype(np.float32),
            "w": rng.standard_normal((t, 5)).astype(np.float32)}


def test_names_bounds_and_conditions() -> None:
    module = import_stablehlo(SAMPLE)
    assert [str(v.type) for v in module.graph.inputs] == ["f32[b,t]", "f32[t,5]"]
    assert (module.symbols["b"].lo, module.symbols["b"].hi) == (2, 64)
    assert required(module) == ["t % 4 == 0"]


@pytest.mark.parametrize(("b", "t"), [(2, 4), (7, 8), (64, 12)])
def test_the_evaluator_takes_every_size(b: int, t: int) -> None:
    given = arrays(b, t)
    got = list(interp.run(import_stablehlo(SAMPLE), given).values())
    for g, w in zip(got, wanted(**given), strict=True):
        np.testing.assert_allclose(g, w, 1e-5, 1e-5)


def test_compiled_code_takes_every_size(tmp_path: Path) -> None:
    graphtool.build(import_stablehlo(SAMPLE), str(tmp_path / "b"), name="m")
    model = graphtool.load(str(tmp_path / "b"))
    for b, t in ((2, 4), (9, 16)):
        given = arrays(b, t)
        for g, w in zip(model.run(given).values(), wanted(**given), strict=True):
            np.testing.assert_allclose(g, w, 1e-5, 1e-5)


@pytest.mark.parametrize(("b", "t"), [(1, 4), (65, 4), (3, 6)])
def test_other_sizes_are_refused(b: int, t: int) -> None:
    with pytest.raises(GraphtoolError):
        interp.run(import_stablehlo(SAMPLE), arrays(b, t))


def test_dynamic_bounds_and_fixes_sizes() -> None:
    module = import_stablehlo(SAMPLE, dynamic={"b": (3, 5), "t": (8, 8)})
    assert [str(v.type) for v in module.graph.inputs] == ["f32[b,8]", "f32[8,5]"]
    assert (module.symbols["b"].lo, module.symbols["b"].hi) == (3, 5)
    with pytest.raises(UsageError, match="no open size 'c'"):
        import_stablehlo(SAMPLE, dynamic={"c": (1, 2)})
    with pytest.raises(InputError) as caught:
        import_stablehlo(SAMPLE, dynamic={"t": (6, 6)})
    assert caught.value.code == "GT1308"


def test_sizes_without_names_that_must_be_equal() -> None:
    module = import_text("""func.func @main(%arg0: tensor<?x3xf32> loc("x"),
      %arg1: tensor<?x3xf32> loc("y")) -> tensor<?x3xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<?x3xf32>
  return %0 : tensor<?x3xf32>
}""")
    assert required(module) == ["x_0 == y_0"] or required(module) == ["y_0 == x_0"]


def results(text: str, *given: np.ndarray, at: Path | None = None) -> list[np.ndarray]:
    """What a program with the inputs a, b, … computes, or its compiled code in folder `at`."""
    module = import_text(text)
    named = dict(zip("abcd", given, strict=False))
    if at is None:
        return list(interp.run(module, named).values())
    graphtool.build(module, str(at / "build"), name="m")
    return [np.array(x) for x in graphtool.load(str(at / "build")).run(named).values()]


DRAWN = np.random.default_rng(3)
HALF = """func.func @main(%a: tensor<?xf32>) -> (tensor<f32>, tensor<f32>, tensor<i1>) {
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<f32>
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
  %0 = stablehlo.multiply %half, %f : tensor<f32>
  %1 = stablehlo.divide %three, %f : tensor<f32>
  %2 = stablehlo.compare LT, %f, %half, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<i1>
}"""


def test_sizes_as_floats_are_not_whole_numbers_any_more() -> None:
    half, quotient, less = results(HALF, np.zeros(5, np.float32))
    assert (half, quotient, less) == (2.5, np.float32(0.6), False)


ROLLED = """func.func @main(%a: tensor<?xf32>) -> tensor<?xf32> {
  %one = stablehlo.constant dense<1> : tensor<1xi32>
  %zero = stablehlo.constant dense<0> : tensor<1xi32>
  %minus = stablehlo.constant dense<-1> : tensor<i32>
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %0 = stablehlo.remainder %minus, %n : tensor<i32>
  %1 = stablehlo.add %0, %n : tensor<i32>
  %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
  %3 = stablehlo.real_dynamic_slice %a, %zero, %2, %one
    : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}"""


def test_the_remainder_of_a_negative_number() -> None:
    module = import_text(ROLLED, dynamic={"a_0": (2, 9)})
    (got,) = interp.run(module, {"a": np.arange(5, dtype=np.float32)}).values()
    np.testing.assert_array_equal(got, [0, 1, 2, 3])


WINDOW = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<2xi32>) -> tensor<2x?xf32> {
  %two = stablehlo.constant dense<2> : tensor<1xi32>
  %ones = stablehlo.constant dense<1> : tensor<2xi32>
  %m = stablehlo.get_dimension_size %a, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %0 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.concatenate %two, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %2 = stablehlo.add %b, %1 : tensor<2xi32>
  %3 = stablehlo.real_dynamic_slice %a, %b, %2, %ones
    : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x?xf32>
  return %3 : tensor<2x?xf32>
}"""


@pytest.mark.parametrize("compiled", [False, True])
def test_a_window_of_open_size_at_a_computed_place(compiled: bool, tmp_path: Path) -> None:
    a = DRAWN.normal(size=(6, 3)).astype(np.float32)
    (got,) = results(WINDOW, a, np.array([3, 0], np.int32), at=tmp_path if compiled else None)
    np.testing.assert_array_equal(got, a[3:5])


FOLDED = """func.func @main(%a: tensor<?x3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<5.0> : tensor<f32>
  %2:2 = stablehlo.reduce(%a init: %0), (%a init: %1) across dimensions = [0]
    : (tensor<?x3xf32>, tensor<?x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<f32>, %s: tensor<f32>) {
      %4 = stablehlo.abs %p : tensor<f32>
      %5 = stablehlo.abs %q : tensor<f32>
      %6 = stablehlo.compare GT, %4, %5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<f32>
      %8 = stablehlo.add %r, %s : tensor<f32>
      stablehlo.return %7, %8 : tensor<f32>, tensor<f32>
    }
  return %2#0, %2#1 : tensor<3xf32>, tensor<3xf32>
}"""


@pytest.mark.parametrize("compiled", [False, True])
def test_a_reduction_with_any_body_along_an_open_size(compiled: bool, tmp_path: Path) -> None:
    a = DRAWN.normal(size=(7, 3)).astype(np.float32)
    most, total = results(FOLDED, a, at=tmp_path if compiled else None)
    np.testing.assert_array_equal(most, np.take_along_axis(a, abs(a).argmax(0)[None], 0)[0])
    np.testing.assert_allclose(total, a.sum(0) + 5, 1e-5)


GREATEST = """func.func @main(%a: tensor<?x3xf32>) -> tensor<3xi32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %three = stablehlo.constant dense<3> : tensor<1xi32>
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.concatenate %0, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %2 = stablehlo.dynamic_iota %1, dim = 0 : (tensor<2xi32>) -> tensor<?x3xi32>
  %3:2 = stablehlo.reduce(%a init: %cst), (%2 init: %c) across dimensions = [0]
    : (tensor<?x3xf32>, tensor<?x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %4 = stablehlo.compare GT, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %5 = stablehlo.compare NE, %p, %p, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.or %4, %5 : tensor<i1>
      %7 = stablehlo.compare EQ, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %8 = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %9 = stablehlo.and %7, %8 : tensor<i1>
      %10 = stablehlo.or %6, %9 : tensor<i1>
      %11 = stablehlo.select %6, %p, %q : tensor<i1>, tensor<f32>
      %12 = stablehlo.select %10, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %11, %12 : tensor<f32>, tensor<i32>
    }
  return %3#1 : tensor<3xi32>
}"""


def test_argmax_as_jax_writes_it_is_one_op() -> None:
    module = import_text(GREATEST)
    assert "arg_reduce" in {n.op.name for n in module.graph.nodes}
    nan = np.float32("nan")
    a = np.array([[1, nan, 2], [3, nan, 2], [3, 9, 1]], np.float32)
    (got,) = interp.run(module, {"a": a}).values()
    np.testing.assert_array_equal(got, [1, 0, 0])


FACTORED = """func.func @main(%a: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %n = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %1 = stablehlo.concatenate %0, %0, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %none = stablehlo.constant dense<> : tensor<0xi32>
  %s = stablehlo.dynamic_reshape %a, %1 : (tensor<?x?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %2:2 = stablehlo.custom_call @lapack_spotrf_ffi(%s, %1, %none)
    {indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>,
     mhlo.backend_config = {uplo = 76 : ui8}}
    : (tensor<?x?xf32>, tensor<2xi32>, tensor<0xi32>) -> (tensor<?x?xf32>, tensor<i32>)
  return %2#0 : tensor<?x?xf32>
}"""


def test_a_call_of_lapack_with_the_sizes_of_its_results() -> None:
    b = DRAWN.normal(size=(4, 4)).astype(np.float32)
    a = b @ b.T + np.eye(4, dtype=np.float32)
    (got,) = results(FACTORED, a)
    np.testing.assert_allclose(got, np.linalg.cholesky(a), 1e-4, 1e-4)


def same(n: int, window: int, stride: int) -> tuple[int, int]:
    """The padding of each side for ⌈n / stride⌉ windows."""
    total = max((-(-n // stride) - 1) * stride + window - n, 0)
    return total // 2, total - total // 2


@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_that_are_divided(compiled: bool, tmp_path: Path) -> None:
    module, w = import_stablehlo(DIVIDED), DRAWN.normal(size=(1, 1, 1, 3)).astype(np.float32)
    if compiled:
        graphtool.build(module, str(tmp_path / "build"), name="m")
    for n in (2, 5, 7, 8) if not compiled else (7, 8):
        x = DRAWN.normal(size=(1, 1, 2, n)).astype(np.float32)
        rows = x[0, 0]
        got = graphtool.load(str(tmp_path / "build")).run({"x": x, "w": w}) if compiled else (
            interp.run(module, {"x": x, "w": w}))
        padded = torch.nn.functional.pad(torch.from_numpy(x), same(n, 3, 2))
        sums = np.pad(rows, ((0, 0), same(n, 3, 3))).reshape(2, -1, 3).sum(2)
        want = [torch.conv2d(padded, torch.from_numpy(w), stride=(1, 2)).numpy(), sums[None, None],
                np.pad(rows, ((0, 0), (0, -n % 4))), rows[:, n // 2:], np.median(x),
                np.roll(rows, 1, 1)]
        for g, v in zip(got.values(), want, strict=True):
            np.testing.assert_allclose(g, v, 1e-5, 1e-5)
