"""Movement, constants and sizes × element types × shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.lab.stablehlo_cases.case import EVERY, NARROW, Case, array, case, tensor


def cases() -> Iterator[Case]:
    for e in (*EVERY, *NARROW):
        yield from moved(e)
    yield from forms()
    yield from computed()


def moved(e: str) -> Iterator[Case]:
    lo = 0.5 if e == "f8E8M0FNU" else -3.0
    x = array(e, (3, 4), 1, lo)
    t = tensor(e, (3, 4))
    one = array(e, (), 2, lo)
    s = tensor(e, ())

    def of(op: str, shape: tuple[int, ...], body: str, more: tuple[np.ndarray, ...] = ()) -> Case:
        return case(op, f"{e} {list(shape)}", [(e, x), *((e, m) for m in more)],
                    [tensor(e, shape)], body)
    yield of("transpose", (4, 3), f"%r = stablehlo.transpose %a0, dims = [1, 0] : ({t}) -> "
                                  f"{tensor(e, (4, 3))}")
    yield of("reshape", (2, 6), f"%r = stablehlo.reshape %a0 : ({t}) -> {tensor(e, (2, 6))}")
    yield of("reverse", (3, 4), f"%r = stablehlo.reverse %a0, dims = [0, 1] : {t}")
    yield of("slice", (2, 2), f"%r = stablehlo.slice %a0 [0:2, 1:4:2] : ({t}) -> "
                              f"{tensor(e, (2, 2))}")
    yield of("broadcast_in_dim", (3, 2, 4), "%r = stablehlo.broadcast_in_dim %a0, dims = [0, 2] : "
                                            f"({t}) -> {tensor(e, (3, 2, 4))}")
    yield of("broadcast_in_dim", (4, 3), "%r = stablehlo.broadcast_in_dim %a0, dims = [1, 0] : "
                                         f"({t}) -> {tensor(e, (4, 3))}")
    yield of("pad", (6, 7), "%r = stablehlo.pad %a0, %a1, low = [1, -1], high = [2, 1], interior = "
                            f"[0, 1] : ({t}, {s}) -> {tensor(e, (6, 7))}", (one,))
    yield of("concatenate", (6, 4), f"%r = stablehlo.concatenate %a0, %a1, dim = 0 : ({t}, {t}) -> "
                                    f"{tensor(e, (6, 4))}", (x[::-1].copy(),))
    yield of("optimization_barrier", (3, 4), f"%r = stablehlo.optimization_barrier %a0 : {t}")
    yield of("broadcast", (2, 3, 4), '%r = "stablehlo.broadcast"(%a0) {broadcast_sizes = '
             f"array<i64: 2>}} : ({t}) -> {tensor(e, (2, 3, 4))}")
    if e not in ("i1", *NARROW):
        yield case("iota", e, [], [t], f"%r = stablehlo.iota dim = 1 : {t}")
    at = np.array([1, 9], np.int32)
    starts = "%b = stablehlo.slice %a{n} [0:1] : (tensor<2xi32>) -> tensor<1xi32>\n  %i = " \
             "stablehlo.reshape %b : (tensor<1xi32>) -> tensor<i32>\n  " \
             "%c = stablehlo.slice %a{n} " \
             "[1:2] : (tensor<2xi32>) -> tensor<1xi32>\n  %j = stablehlo.reshape %c : " \
             "(tensor<1xi32>) -> tensor<i32>\n  "
    yield case("dynamic_slice", e, [(e, x), ("i32", at)], [tensor(e, (2, 2))],
               starts.format(n=1) + "%r = stablehlo.dynamic_slice %a0, %i, %j, sizes = [2, 2] : "
               f"({t}, tensor<i32>, tensor<i32>) -> {tensor(e, (2, 2))}")
    yield case("dynamic_update_slice", e, [(e, x), (e, x[1:, :2].copy()), ("i32", at)], [t],
               starts.format(n=2) + f"%r = stablehlo.dynamic_update_slice %a0, %a1, %i, %j : ({t}, "
               f"{tensor(e, (2, 2))}, tensor<i32>, tensor<i32>) -> {t}")


LITERALS = [
    ("tensor<3xf32>", "dense<[1.0, -2.5e-3, 0x7FC00000]>"),
    ("tensor<2xf32>", 'dense<"0x0000803F000000C0">'),
    ("tensor<2x2xi32>", "dense<[[1, -2], [3, 0x10]]>"),
    ("tensor<4xi1>", "dense<[true, false, true, true]>"),
    ("tensor<5xi1>", "dense<true>"), ("tensor<f64>", "dense<0xFFF0000000000000>"),
    ("tensor<2xcomplex<f32>>", "dense<[(1.0, -2.0), (0.5, 0x7F800000)]>"),
    ("tensor<3xcomplex<f64>>", "dense<(1.0, 2.0)>"), ("tensor<0x2xf32>", "dense<>"),
    ("tensor<2xbf16>", "dense<[1.0, 0x7F80]>"), ("tensor<2xf16>", "dense<[0x3C00, -2.0]>"),
    ("tensor<3xui8>", "dense<[255, 0, 7]>"), ("tensor<2xui64>", "dense<[18446744073709551615, 1]>"),
    ("tensor<3xi4>", "dense<[-8, 7, 0]>"), ("tensor<2xf8E4M3FN>", "dense<[1.5, 0x7F]>"),
    ("tensor<2x1xi64>", "dense<-1>"), ("tensor<1xi16>", "dense<[-32768]>"),
    ("tensor<2xcomplex<f32>>", 'dense<"0x0000803F000000C00000003F0000803F">'),
    ("tensor<3xi8>", 'dense<"0xFF0102">'), ("tensor<4xi1>", 'dense<"0x01000001">'),
]


def forms() -> Iterator[Case]:
    """Constants in all forms of text."""
    for i, (t, text) in enumerate(LITERALS):
        yield case("constant", f"{i} {t}", [], [t], f"%r = stablehlo.constant {text} : {t}")
    yield Case("constant resource", "constant", """module {
  func.func public @main() -> tensor<3xf32> {
    %r = stablehlo.constant dense_resource<w> : tensor<3xf32>
    return %r : tensor<3xf32>
  }
}
{-#
  dialect_resources: {
    builtin: {
      w: "0x040000000000803F0000004000004040"
    }
  }
#-}
""", [])
    yield Case("module sharding", "func", """module @m attributes {mhlo.num_partitions = 1 : i32} {
  sdy.mesh @mesh = <["x"=1]>
  func.func public @main(%a0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = sdy.sharding_constraint %a0 <@mesh, [{"x"}]> : tensor<4xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {mhlo.sharding = "{replicated}"}
      : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
""", [array("f32", (4,))])


def computed() -> Iterator[Case]:
    """Operations of computed shapes, on shapes that are constants."""
    x = array("f32", (3, 4), 1)
    t = tensor("f32", (3, 4))

    def dims(name: str, *values: int) -> str:
        return f"%{name} = stablehlo.constant dense<{list(values)}> : tensor<{len(values)}xi32>\n  "

    def of(op: str, shape: tuple[int, ...], body: str) -> Case:
        return case(op, "f32", [("f32", x)], [tensor("f32", shape)], body)
    yield of("dynamic_reshape", (2, 6), dims("s", 2, 6) + "%r = stablehlo.dynamic_reshape %a0, %s "
             f": ({t}, tensor<2xi32>) -> tensor<2x6xf32>")
    yield of("dynamic_broadcast_in_dim", (2, 3, 4), dims("s", 2, 3, 4) + "%r = "
             f"stablehlo.dynamic_broadcast_in_dim %a0, %s, dims = [1, 2] : ({t}, tensor<3xi32>) -> "
             "tensor<2x3x4xf32>")
    yield of("dynamic_iota", (3, 4), dims("s", 3, 4) + "%r = stablehlo.dynamic_iota %s, dim = 1 : "
             "(tensor<2xi32>) -> tensor<3x4xf32>")
    yield of("dynamic_pad", (5, 7), "%z = stablehlo.constant dense<1.5> : tensor<f32>\n  " + dims(
        "l", 1, 0) + dims("h", 1, 0) + dims("n", 0, 1) + "%r = stablehlo.dynamic_pad %a0, %z, %l, "
        f"%h, %n : ({t}, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> "
        "tensor<5x7xf32>")
    yield of("real_dynamic_slice", (2, 2), dims("l", 1, 0) + dims("h", 3, 4) + dims("n", 1, 2)
             + f"%r = stablehlo.real_dynamic_slice %a0, %l, %h, %n : ({t}, tensor<2xi32>, "
             "tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xf32>")
    yield case("get_dimension_size", "f32", [("f32", x)], ["tensor<i32>"],
               f"%r = stablehlo.get_dimension_size %a0, dim = 1 : ({t}) -> tensor<i32>")
