"""Names, places and values of an imported program; what is refused is listed by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.importers.stablehlo import import_text
from graphtool.ir import listing
from graphtool.ir.graph import Module
from tests.cli.conftest import Cli, gt  # noqa: F401  (a fixture)

TEXT = """
#loc1 = loc("p['w'][0]")
#file = loc("net.py":7:4 to :20)
#inner = loc("layer"(#file))
#loc2 = loc("jit(f)/block/add"(#inner))
module @jit_f {
  func.func public @main(%arg0: tensor<2x3xf32> loc("p['w'][0]"), %arg1: tensor<3xf32> loc("x"))
      -> (tensor<2x3xf32> {jax.result_info = "result['y']"}) {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<2x3xf32>
    %3 = stablehlo.add %arg0, %2 : tensor<2x3xf32> loc(#loc2)
    return %3 : tensor<2x3xf32>
  }
}
"""


def test_names_places_and_literals() -> None:
    text = listing.dumps(import_text(TEXT))
    assert "input p.w.0: f32[2,3]" in text and "return block.add as result.y" in text
    assert "mul: f32[3] = mul(0.5, x)" in text  # repeated by the addition alone
    assert "block.add: f32[2,3] = add(p.w.0, mul)  at net.py:7" in text


def evaluated(module: Module, *arrays: object) -> np.ndarray:
    names = [v.hint for v in module.graph.inputs]
    return next(iter(interp.run(module, dict(zip(names, arrays, strict=True))).values()))


def constant(text: str, kind: str) -> np.ndarray:
    return evaluated(import_text(f"func.func @main() -> {kind} {{ %0 = stablehlo.constant "
                                 f"dense<{text}> : {kind}\n return %0 : {kind} }}"))


@pytest.mark.parametrize(("text", "kind", "want"), [
    ("[1, -2]", "tensor<2xi8>", np.array([1, -2], np.int8)),
    ("3", "tensor<2x2xui64>", np.full((2, 2), 3, np.uint64)),
    ('"0x0000803F000000C0"', "tensor<2xf32>", np.array([1, -2], np.float32)),
    ('"0x05"', "tensor<3xi1>", np.array([True, False, True])),
    ("0x7F800000", "tensor<f32>", np.array(np.inf, np.float32)),
    ("[true, false]", "tensor<2xi1>", np.array([True, False])),
    ("", "tensor<0x3xi32>", np.zeros((0, 3), np.int32))])
def test_constants(text: str, kind: str, want: np.ndarray) -> None:
    got = constant(text, kind)
    assert got.dtype == want.dtype and np.array_equal(got, want)


def test_everything_unsupported_is_listed_at_once() -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_text("""func.func @main(%a: tensor<4xf32>, %t: tensor<2x!quant.x<i8>>) {
  %0 = stablehlo.custom_call @my_kernel(%a) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %0 : tensor<4xf32>
  %2 = stablehlo.all_gathers %a : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}""")
    assert [i.name for i in caught.value.items] == [
        "the input t", "stablehlo.custom_call @my_kernel", "stablehlo.all_gathers"]
    assert "line 2" in caught.value.items[1].places[0]


def test_the_command_line(tmp_path: Path, gt: Cli) -> None:  # noqa: F811
    source, out = tmp_path / "f.mlir", tmp_path / "f.graph.json"
    source.write_text(TEXT)
    done = gt("import", source, "-o", out)
    assert done.code == 0 and "nothing to check against" in done.err
    assert "block.add" in gt("show", out).out
    source.write_text(TEXT.replace("multiply", "multiplied"))
    done = gt("import", source, "-o", out)
    assert done.code == 4 and "did you mean 'stablehlo.multiply'" in done.err
    listed = gt("support", source)
    assert listed.code == 4 and "stablehlo.multiplied" in listed.out and "line " in listed.out
    source.write_bytes(b"ML\xefR\x00")
    assert gt("import", source).code == 3


@pytest.mark.parametrize(("line", "want"), [
    ("%0 = chlo.erf %a : tensor<3xf32> -> tensor<3xf32>", [-0.842701, 0.520500, 0.995322]),
    ("%0 = chlo.erfc %a : tensor<3xf32> -> tensor<3xf32>", [1.842701, 0.479500, 0.00467773]),
    ("%0 = chlo.asinh %a : tensor<3xf32> -> tensor<3xf32>", [-0.881374, 0.481212, 1.443635]),
    ("%0 = chlo.is_inf %a : tensor<3xf32> -> tensor<3xi1>\n  %1 = stablehlo.convert %0 : "
     "(tensor<3xi1>) -> tensor<3xf32>\n  return %1 : tensor<3xf32>", [0, 0, 0]),
    ("%v, %0 = chlo.top_k(%a, k = 3) : tensor<3xf32> -> (tensor<3xf32>, tensor<3xi32>)\n  "
     "return %v : tensor<3xf32>", [2, 0.5, -1]),
    ("%s = stablehlo.constant dense<[2.0, 3.0, 1.5]> : tensor<3xf32>\n  %q = stablehlo.constant "
     "dense<[1.0, 2.0, 0.5]> : tensor<3xf32>\n  %0 = chlo.zeta %s, %q : tensor<3xf32>, "
     "tensor<3xf32> -> tensor<3xf32>", [1.644934, 0.2020569, 4.776538])])
def test_functions_of_chlo(line: str, want: list[float]) -> None:
    """As `jax.jit(f).lower(…).as_text()` prints them; values of DLMF and mpmath."""
    last = "" if "return" in line else "\n  return %0 : tensor<3xf32>"
    module = import_text("func.func @main(%arg: tensor<3xf32>) -> tensor<3xf32> {\n  "
                         + line.replace("%a ", "%arg ").replace("%a,", "%arg,") + last + "\n}")
    got = evaluated(module, np.array([-1, 0.5, 2], np.float32))
    np.testing.assert_allclose(got, want, 2e-6)


SORT = """func.func @main(%a: tensor<6xf32>, %b: tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %0:2 = "stablehlo.sort"(%a, %b) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    BODY
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
}"""
COMPARE = "%{} = stablehlo.compare {}, %{}, %{} : (tensor<{t}>, tensor<{t}>) -> tensor<i1>\n"
F, W = ("f32", "i32")
BODIES = {  # a comparator, and what it orders by
    "ascending": (COMPARE.format("r", "LT", "x", "y", t=F), lambda a, b: (a,)),
    "descending": (COMPARE.format("r", "GT", "x", "y", t=F), lambda a, b: (-a,)),
    "turned": (COMPARE.format("r", "GT", "y", "x", t=F), lambda a, b: (a,)),
    "by the second": (COMPARE.format("r", "GT", "i", "j", t=W), lambda a, b: (-b,)),
    "by both": (COMPARE.format("p", "LT", "i", "j", t=W) + COMPARE.format("q", "EQ", "i", "j", t=W)
                + COMPARE.format("s", "GT", "x", "y", t=F)
                + "%t = stablehlo.and %q, %s : tensor<i1>\n"
                + "%r = stablehlo.or %p, %t : tensor<i1>\n", lambda a, b: (b, -a)),
    "by a function": ("%p = stablehlo.abs %x : tensor<f32>\n%q = stablehlo.abs %y : tensor<f32>\n"
                      + COMPARE.format("r", "LT", "p", "q", t=F), lambda a, b: (abs(a),)),
    "by no key": ("%p = stablehlo.add %x, %x : tensor<f32>\n"
                  + "%q = stablehlo.subtract %y, %x : tensor<f32>\n%z = stablehlo.constant "
                  + "dense<0.0> : tensor<f32>\n" + COMPARE.format("r", "GT", "q", "z", t=F),
                  lambda a, b: (a,)),
}


@pytest.mark.parametrize("name", BODIES)
def test_any_comparator(name: str) -> None:
    body, key = BODIES[name]
    module = import_text(SORT.replace("BODY", body + "    stablehlo.return %r : tensor<i1>"))
    a, b = np.array([3, -1, 2, -1, 0, 2], np.float32), np.array([1, 0, 1, 2, 0, 1], np.int32)
    order = sorted(range(6), key=lambda i: key(a[i], b[i]))
    got = list(interp.run(module, {"a": a, "b": b}).values())
    np.testing.assert_array_equal(got[0], a[order])
    np.testing.assert_array_equal(got[1], b[order])
