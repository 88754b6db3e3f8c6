"""The parser: forms of operations and attributes, and each fault with its line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.importers.stablehlo import BoundaryNames, import_text
from graphtool.importers.stablehlo.text.attributes import Dense, dictionary
from graphtool.importers.stablehlo.text.parser import parse
from graphtool.importers.stablehlo.text.reader import Reader
from graphtool.importers.stablehlo.text.tree import MlirType, read_kind

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.mlir"))


def body(text: str, takes: str = "%a: tensor<2x3xf32>") -> str:
    return f"func.func @main({takes}) -> tensor<2x3xf32> {{\n  {text}\n}}"


def only(text: str) -> object:
    """The first operation of a function with this body."""
    operations = parse(body(text + "\n  return")).functions["main"].body
    assert operations
    return operations[0]


@pytest.mark.parametrize(("text", "kind"), [
    ("tensor<f32>", MlirType("f32", ())), ("tensor<2x?xi1>", MlirType("i1", (2, None))),
    ("tensor<3xcomplex<f32>>", MlirType("complex<f32>", (3,))), ("!stablehlo.token", MlirType(
        "!stablehlo.token", None)), ("tensor<0x4xui8>", MlirType("ui8", (0, 4)))])
def test_types(text: str, kind: MlirType) -> None:
    assert read_kind(text) == kind
    assert str(kind) == text


@pytest.mark.parametrize(("text", "value"), [
    ("1 : i64", 1), ("-1.5e2 : f32", -150.0), ("2 : f32", 2.0), ("true", True),
    ('"a\\22b\\0A"', 'a"b\n'), ("[1, [2, 3]]", [1, [2, 3]]), ("array<i64: 1, -2>", [1, -2]),
    ("array<i64>", []), ("@f", "f"), ('@"a b"', "a b"), ("{x = 1 : i8, y}", {"x": 1, "y": True}),
    ("#stablehlo<precision DEFAULT>", "DEFAULT"), ("dense<[[1], [2]]> : tensor<2x1xi8>", Dense(
        [["1"], ["2"]], MlirType("i8", (2, 1)))), ("0x1F", 31)])
def test_attributes(text: str, value: object) -> None:
    assert dictionary(Reader(f"{{k = {text}}}"))["k"] == value


@pytest.mark.parametrize(("short", "generic"), [
    ("%0 = stablehlo.slice %a [0:1, 1:3:2] : (tensor<2x3xf32>) -> tensor<1x1xf32>",
     '%0 = "stablehlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = '
     "array<i64: 1, 3>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<1x1xf32>"),
    ("%0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : (tensor<2x3xf32>, "
     "tensor<2x3xf32>) -> tensor<2x2xf32>",
     '%0 = "stablehlo.dot_general"(%a, %a) <{dot_dimension_numbers = #stablehlo.dot<'
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, "
     "tensor<2x3xf32>) -> tensor<2x2xf32>"),
    ("%0 = stablehlo.compare LT, %a, %a : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>",
     '%0 = "stablehlo.compare"(%a, %a) {comparison_direction = #stablehlo<comparison_direction '
     "LT>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>"),
    ("%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<2x3xf32>",
     '%0 = "stablehlo.reduce_precision"(%a) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}>'
     " : (tensor<2x3xf32>) -> tensor<2x3xf32>")])
def test_the_short_form_is_the_generic_form(short: str, generic: str) -> None:
    a, b = only(short), only(generic)
    for field in ("name", "operands", "attrs", "results"):
        assert getattr(a, field) == getattr(b, field)
    assert a.signature.results == b.signature.results  # type: ignore[attr-defined]


FAULTS = {
    "a character": ("func.func @main() { ~ }", "GT1302", "line 1, column 21"),
    "no function": ("module { }", "GT1302", "line 1, column 1"),
    "an open module": ("module {\n func.func @main() { return }", "GT1302", "line 2"),
    "an open body": ("func.func @main() {\n return", "GT1302", "line 2, column 8"),
    "no type": (body("%0 = stablehlo.add %a, %a\n  return %0 : tensor<2x3xf32>"), "GT1302",
                "line 3, column 3"),
    "a type that is none": (body("%0 = stablehlo.abs %a : tensor<2xx3>\n  return"), "GT1302",
                            "line 2, column 27"),
    "two functions": ("func.func @f() { return }\nfunc.func @f() { return }", "GT1303", "line 2"),
    "blocks": ("func.func @main() {\n^bb0:\n return }", "GT1304", "line 2, column 1"),
    "a missing resource": (body("%0 = stablehlo.constant dense_resource<w> : tensor<2x3xf32>\n  "
                                "return %0 : tensor<2x3xf32>"), "GT1304", "line 2, column 42"),
    "open resources": ("func.func @main() { return }\n{-# x", "GT1302", "line 2, column 1"),
    "no main": ("func.func private @f() { return }", "GT1305", ""),
    "an unknown function": (body("%0 = call @g(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  "
                                 "return %0 : tensor<2x3xf32>"), "GT1305", "line 2"),
    "a function of itself": (body("%0 = call @main(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n"
                                  "  return %0 : tensor<2x3xf32>"), "GT1305", "line 2"),
    "no definition": (body("return %b : tensor<2x3xf32>"), "GT1303", "line 2, column 3"),
    "two definitions": (body("%a = stablehlo.abs %a : tensor<2x3xf32>\n  return %a : "
                             "tensor<2x3xf32>"), "GT1303", "line 2, column 3"),
    "an unknown attribute": (body("%0 = stablehlo.abs %a {size = 1 : i64} : tensor<2x3xf32>\n  "
                                  "return %0 : tensor<2x3xf32>"), "GT1306", "line 2, column 3"),
    "a missing attribute": (body("%0 = stablehlo.transpose %a : (tensor<2x3xf32>) -> "
                                 "tensor<3x2xf32>\n  return %0 : tensor<3x2xf32>"), "GT1306",
                            "line 2"),
    "operands": (body('%0 = "stablehlo.add"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n  return '
                      "%0 : tensor<2x3xf32>"), "GT1306", "line 2"),
    "another type": (body("%0 = stablehlo.abs %a : tensor<2x4xf32>\n  return %0 : "
                          "tensor<2x4xf32>"), "GT1307", "line 2, column 3"),
    "another constant": (body("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<3xf32>\n  "
                              "return %0 : tensor<3xf32>"), "GT1306", "line 2"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_has_a_code_and_a_place(name: str) -> None:
    text, code, place = FAULTS[name]
    with pytest.raises(InputError) as caught:
        import_text(text)
    assert caught.value.code == code
    assert place in caught.value.where


@pytest.mark.parametrize("path", SAMPLES[::9], ids=lambda p: p.stem)
def test_a_damaged_text_is_one_error(path: Path) -> None:
    """Cut anywhere, or with any line left out, a program gives a coded error or is read."""
    from graphtool.errors import GraphtoolError
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    step = max(1, len(lines) // 25)
    damaged = [text[:n] for n in range(0, len(text), max(1, len(text) // 25))]
    damaged += ["".join(lines[:i] + lines[i + 1:]) for i in range(0, len(lines), step)]
    for one in damaged:
        try:
            import_text(one)
        except GraphtoolError as error:
            assert error.code.startswith("GT") and error.exit_code in (3, 4), error


def test_arrays_behind_the_program_and_shardings() -> None:
    module = import_text("""module @m {
  sdy.mesh @mesh = <["x"=2]> {stablehlo.mesh = {axes = [], device_ids = dense<0> : tensor<1xi64>}}
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}} loc(unknown)
  func.func @main(%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> tensor<2xf32> {
    %w = stablehlo.constant dense_resource<w.1> : tensor<2xf32>
    %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<2xf32>
    %1 = stablehlo.add %0, %w : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
{-#
  dialect_resources: { builtin: { w.1: "0x040000000000803F00000040" } }
#-}
""")
    assert "sharding" in module.meta["ignored"]
    (got,) = interp.run(module, {"a": np.array([10, 20], np.float32)}).values()
    np.testing.assert_array_equal(got, [11, 22])


def test_one_function_of_a_file() -> None:
    text = "".join(f"func.func @f{i}() -> tensor<i32> {{\n  %0 = stablehlo.constant dense<{i}> : "
                   "tensor<i32>\n  return %0 : tensor<i32>\n}\n" for i in (1, 2))
    assert interp.run(import_text(text), {}) == {"f1": 1, "f2": 2}
    assert interp.run(import_text(text, names=BoundaryNames(function="f2")), {}) == {"result": 2}
    with pytest.raises(InputError, match="no function @f3"):
        import_text(text, names=BoundaryNames(function="f3"))


def test_what_jax_writes_of_a_callback_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_text("""func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) {backend_config = "",
    sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>}
    : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}""")
    (item,) = caught.value.items
    assert item.name.endswith("@xla_ffi_python_cpu_callback") and "Python" in item.reason


def test_what_a_graph_has_no_place_for_is_refused_with_its_attributes() -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_text("""func.func @main(%a: tensor<f32>, %s: tensor<1xi64>) -> tensor<3xf32> {
  %0 = stablehlo.rng %a, %a, %s, distribution = UNIFORM
    : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}""")
    assert [i.name for i in caught.value.items] == ["stablehlo.rng"]
