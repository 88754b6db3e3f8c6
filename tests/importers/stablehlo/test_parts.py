"""Complex and quantised values, tuples, tokens; and what programs expect of their values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.errors import UnsupportedError, UsageError
from graphtool.importers.stablehlo import import_stablehlo, import_text
from graphtool.ir.graph import Module
from graphtool.ir.requires import unmet
from tests.cli.conftest import Cli, gt  # noqa: F401  (a fixture)

Q = "!quant.uniform<i8:f32, 0.5:1>"
AXIS = "!quant.uniform<i8:f32:1, {0.5:1, 0.25:-2, 1.0}>"


def main(takes: str, gives: str, body: str) -> Module:
    return import_text(f"func.func @main({takes}) -> {gives} {{\n{body}\n}}")


def test_complex_inputs_and_outputs_are_pairs_of_arrays(tmp_path: Path) -> None:
    kind = "tensor<3xcomplex<f32>>"
    module = main(f"%x: {kind}", kind, f"""%0 = stablehlo.multiply %x, %x : {kind}
      return %0 : {kind}""")
    assert [v.hint for v in module.graph.inputs] == ["x.real", "x.imag"]
    assert module.output_names == ("result.real", "result.imag")
    z = np.array([1 + 2j, -3j, 0.5], np.complex64)
    given = {"x.real": z.real.copy(), "x.imag": z.imag.copy()}
    graphtool.build(module, str(tmp_path / "b"), name="m")
    for got in (interp.run(module, given), graphtool.load(str(tmp_path / "b")).run(given)):
        np.testing.assert_allclose(got["result.real"] + 1j * got["result.imag"], z * z, 1e-6)


@pytest.mark.parametrize(("name", "fn"), [
    ("stablehlo.sqrt", np.sqrt), ("stablehlo.tanh", np.tanh), ("stablehlo.log_plus_one", np.log1p),
    ("stablehlo.exponential_minus_one", np.expm1), ("stablehlo.sine", np.sin),
    ("chlo.asin", np.arcsin), ("chlo.acos", np.arccos), ("chlo.acosh", np.arccosh),
    ("chlo.asinh", np.arcsinh), ("chlo.atan", np.arctan), ("chlo.atanh", np.arctanh),
    ("chlo.sinh", np.sinh), ("chlo.cosh", np.cosh), ("chlo.tan", np.tan)])
def test_complex_functions(name: str, fn: np.ufunc) -> None:
    rng = np.random.default_rng(0)
    z = (rng.standard_normal(200) + 1j * rng.standard_normal(200)) * 2
    kind = "tensor<200xcomplex<f64>>"
    arrow = f"{kind} -> {kind}" if name.startswith("chlo") else kind
    module = main(f"%x: {kind}", kind, f"%0 = {name} %x : {arrow}\n return %0 : {kind}")
    got = interp.run(module, {"x.real": z.real.copy(), "x.imag": z.imag.copy()})
    np.testing.assert_allclose(got["result.real"] + 1j * got["result.imag"], fn(z), 1e-11)


@pytest.mark.parametrize("padding", ["[[3, 0]]", "[[0, 3]]"])
def test_running_logarithms_of_complex_sums(padding: str, tmp_path: Path) -> None:
    """In JAX's form, which gives NaN for −∞ with itself: no padding is combined with the start."""
    kind, one = "tensor<4xcomplex<f64>>", "tensor<complex<f64>>"
    real, flag = "tensor<f64>", "tensor<i1>"
    module = main(f"%x: {kind}", kind, f"""
      %s = stablehlo.constant dense<(0xFFF0000000000000,0.0)> : {one}
      %0 = "stablehlo.reduce_window"(%x, %s) <{{padding = dense<{padding}> : tensor<1x2xi64>,
          window_dimensions = array<i64: 4>}}> ({{
        ^bb0(%a: {one}, %b: {one}):
        %ar = stablehlo.real %a : ({one}) -> {real}
        %br = stablehlo.real %b : ({one}) -> {real}
        %p = stablehlo.compare GT, %ar, %br, FLOAT : ({real}, {real}) -> {flag}
        %top = stablehlo.select %p, %a, %b : {flag}, {one}
        %sum = stablehlo.add %a, %b : {one}
        %two = stablehlo.constant dense<(2.0,0.0)> : {one}
        %twice = stablehlo.multiply %top, %two : {one}
        %gap = stablehlo.subtract %sum, %twice : {one}
        %e = stablehlo.exponential %gap : {one}
        %l = stablehlo.log_plus_one %e : {one}
        %y = stablehlo.add %top, %l : {one}
        stablehlo.return %y : {one}
      }}) : ({kind}, {one}) -> {kind}
      return %0 : {kind}""")
    z = np.array([0.5 + 0.3j, -1 + 0.2j, 400 - 0.1j, 2 + 0.1j])
    way = slice(None, None, 1 if padding == "[[3, 0]]" else -1)
    want = (np.log(np.cumsum(np.exp(z[way] - 400))) + 400)[way]
    given = {"x.real": z.real.copy(), "x.imag": z.imag.copy()}
    graphtool.build(module, str(tmp_path / "b"), name="m")
    for got in (interp.run(module, given), graphtool.load(str(tmp_path / "b")).run(given)):
        np.testing.assert_allclose(got["result.real"] + 1j * got["result.imag"], want, 1e-9)


def test_a_loop_carries_complex_numbers() -> None:
    kind = "tensor<2xcomplex<f64>>"
    module = main(f"%x: {kind}", kind, f"""%n = stablehlo.constant dense<3> : tensor<i32>
      %i = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%k = %i, %z = %x) : tensor<i32>, {kind}
        cond {{ %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{ %y = stablehlo.multiply %z, %x : {kind}
          %one = stablehlo.constant dense<1> : tensor<i32>
          %j = stablehlo.add %k, %one : tensor<i32>
          stablehlo.return %j, %y : tensor<i32>, {kind} }}
      return %0#1 : {kind}""")
    z = np.array([1 + 1j, 0.5 - 1j])
    got = interp.run(module, {"x.real": z.real.copy(), "x.imag": z.imag.copy()})
    np.testing.assert_allclose(got["result.real"] + 1j * got["result.imag"], z ** 4, 1e-12)


def test_quantised_values_are_their_integers() -> None:
    module = main("%x: tensor<3xf32>", f"tensor<3x{Q}>", f"""
      %0 = stablehlo.uniform_quantize %x : (tensor<3xf32>) -> tensor<3x{Q}>
      %1 = stablehlo.add %0, %0 : tensor<3x{Q}>
      return %1 : tensor<3x{Q}>""")
    (got,) = interp.run(module, {"x": np.array([1, -2.3, 100], np.float32)}).values()
    np.testing.assert_array_equal(got, np.array([5, -9, 127], np.int8))
    back = main(f"%q: tensor<2x3x{AXIS}>", "tensor<2x3xf32>", f"""
      %0 = stablehlo.uniform_dequantize %q : (tensor<2x3x{AXIS}>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>""")
    (got,) = interp.run(back, {"q": np.array([[3, 2, 1], [1, -2, 0]], np.int8)}).values()
    np.testing.assert_array_equal(got, [[1, 1, 1], [0, 0, 0]])


def test_blocks_of_scales_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"the input x: the type .*quant"):
        main("%x: tensor<4x!quant.uniform<i8:f32:{0:2}, {0.5, 0.25}>>", "tensor<4xf32>",
             "return %x : tensor<4xf32>")


def test_tuples_and_tokens_are_no_tensors() -> None:
    pair = "tuple<tensor<2xf32>, tensor<i32>>"
    module = main("%x: tensor<2xf32>, %t: !stablehlo.token", f"({pair}, !stablehlo.token)", f"""
      %0 = stablehlo.constant dense<7> : tensor<i32>
      %1 = "stablehlo.tuple"(%x, %0) : (tensor<2xf32>, tensor<i32>) -> {pair}
      %2 = "stablehlo.get_tuple_element"(%1) {{index = 1 : i32}} : ({pair}) -> tensor<i32>
      %3 = "stablehlo.after_all"(%t, %t) : (!stablehlo.token, !stablehlo.token)
        -> !stablehlo.token
      %4 = "stablehlo.tuple"(%x, %2) : (tensor<2xf32>, tensor<i32>) -> {pair}
      return %4, %3 : {pair}, !stablehlo.token""")
    got = interp.run(module, {"x": np.array([1, 2], np.float32)})
    assert list(got) == ["result.0.0", "result.0.1"]
    assert got["result.0.1"] == 7


EXPECTS = """func.func @{name}() {{
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.add %0, %0 : tensor<2xf32>
  check.expect_eq_const %1, dense<[2.0, {y}]> : tensor<2xf32>
  check.expect_almost_eq %1, %1 : tensor<2xf32>
  stablehlo.custom_call @check.expect_close(%1, %1) {{has_side_effect = true}} : (tensor<2xf32>,
    tensor<2xf32>) -> ()
  func.return
}}
"""


def test_expectations_are_outputs() -> None:
    found = interp.run(import_text(EXPECTS.format(name="a", y=4) + EXPECTS.format(name="b", y=5)),
                       {})
    assert list(found) == [f"expect.line{n}" for n in (4, 5, 6, 13, 14, 15)]
    assert unmet(found) == ["expect.line13"]


def test_the_command_line_fails_with_an_expectation(tmp_path: Path, gt: Cli) -> None:  # noqa: F811
    source = tmp_path / "t.mlir"
    source.write_text(EXPECTS.format(name="a", y=4) + EXPECTS.format(name="b", y=5))
    assert gt("eval", f"{source}:a").code == 0
    done = gt("eval", str(source))
    assert (done.code, "expect.line13" in done.err) == (1, True)
    gt("build", f"{source}:b", "-o", str(tmp_path / "b"))
    assert gt("run", str(tmp_path / "b")).code == 1


def test_arguments_that_are_given_away_are_donated(tmp_path: Path) -> None:
    kind = "tensor<3xf32>"
    module = main(f"%s: {kind} {{tf.aliasing_output = 1 : i32}}, %m: {kind} "
                  f"{{jax.buffer_donor = true}}, %x: {kind}", f"({kind}, {kind}, {kind})", f"""
      %0 = stablehlo.add %s, %x : {kind}
      %1 = stablehlo.multiply %m, %0 : {kind}
      return %1, %0, %x : {kind}, {kind}, {kind}""")
    assert module.donations == ((0, 1), (1, 0))
    graphtool.build(module, str(tmp_path / "b"), name="m")
    x = np.ones(3, np.float32)
    got = graphtool.load(str(tmp_path / "b")).run({"s": x * 2, "m": x * 3, "x": x * 4})
    np.testing.assert_array_equal(got["result.0"], x * 18)
    np.testing.assert_array_equal(got["result.1"], x * 6)


SIZES = Path(__file__).parent / "open" / "sizes.mlir"


def test_inputs_give_open_sizes_numbers() -> None:
    module = import_stablehlo(SIZES, inputs=["x:f32[4,8]"])
    assert [str(v.type) for v in module.graph.inputs] == ["f32[4,8]", "f32[8,5]"]
    for text, told in (("y:f32[4,8]", "no input 'y'"), ("x:f64[4,8]", "does not fit"),
                       ("x:f32[4]", "does not fit"), ("w:f32[4,6]", "does not fit")):
        with pytest.raises(UsageError, match=told):
            import_stablehlo(SIZES, inputs=[text])
    with pytest.raises(UsageError, match="two numbers"):
        import_stablehlo(SIZES, inputs=["x:f32[4,8]", "w:f32[4,5]"])
