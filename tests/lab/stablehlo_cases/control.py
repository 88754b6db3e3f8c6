"""Control flow, tuples, tokens, random bits, and operations of one device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.lab.stablehlo_cases.case import Case, array, case, tensor


def cases() -> Iterator[Case]:
    for e in ("f32", "i32", "complex<f32>", "bf16", "f64"):
        t = tensor(e, (3,))
        x = array(e, (3,), 1, -1, 1)
        yield case("while", f"counted {e}", [(e, x)], [t], loop(t, "LT", "dense<5> : tensor<i32>"))
        yield case("while", f"by data {e}", [(e, x), ("i32", np.array(4, np.int32))], [t],
                   loop(t, "NE", ""))
        for value in (0, 1, 2, -1, 9):
            yield case("case", f"{e} {value}", [("i32", np.array(value, np.int32)), (e, x)], [t],
                       f'''%r = "stablehlo.case"(%a0) ({{
      %m = stablehlo.negate %a1 : {t}
      stablehlo.return %m : {t}
    }}, {{
      %m = stablehlo.multiply %a1, %a1 : {t}
      stablehlo.return %m : {t}
    }}, {{
      stablehlo.return %a1 : {t}
    }}) : (tensor<i32>) -> {t}''')
        for flag in (True, False):
            yield case("if", f"{e} {flag}", [("i1", np.array(flag)), (e, x)], [t],
                       f'''%r = "stablehlo.if"(%a0) ({{
      %m = stablehlo.negate %a1 : {t}
      stablehlo.return %m : {t}
    }}, {{
      %m = stablehlo.multiply %a1, %a1 : {t}
      stablehlo.return %m : {t}
    }}) : (tensor<i1>) -> {t}''')
    for algorithm in ("THREE_FRY", "PHILOX", "DEFAULT"):
        for e in ("ui32", "ui64", "ui16", "ui8"):
            for shape in ((7,), (4, 3), (3, 5)):
                t = tensor(e, shape)
                yield case("rng_bit_generator", f"{algorithm} {e} {list(shape)}",
                           [("ui64", np.array([5 + (9 << 32), 2 ** 64 - 2], np.uint64))],
                           ["tensor<2xui64>", t], "%r:2 = stablehlo.rng_bit_generator %a0, "
                           f"algorithm = {algorithm} : (tensor<2xui64>) -> (tensor<2xui64>, {t})")
    yield from single()


def loop(t: str, direction: str, limit: str) -> str:
    n = f"%n = stablehlo.constant {limit}" if limit else \
        "%n = stablehlo.add %a1, %i : tensor<i32>"
    return f'''%i = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  {n}
  %w:2 = stablehlo.while(%k = %i, %v = %a0) : tensor<i32>, {t}
    cond {{
      %c = stablehlo.compare {direction}, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %m = stablehlo.multiply %v, %a0 : {t}
      %s = stablehlo.add %m, %v : {t}
      %j = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %j, %s : tensor<i32>, {t}
    }}
  %r = stablehlo.add %w#1, %a0 : {t}'''


def single() -> Iterator[Case]:
    x = array("f32", (2, 4), 1)
    t = "tensor<2x4xf32>"
    groups = "replica_groups = dense<0> : tensor<1x1xi64>"

    def of(op: str, body: str, out: str = t) -> Case:
        return case(op, "one device", [("f32", x)], [out], body)
    add = ("({\n    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n      %m = stablehlo.add %p, %q : "
           "tensor<f32>\n      stablehlo.return %m : tensor<f32>\n  })")
    yield of("all_reduce", f'%r = "stablehlo.all_reduce"(%a0) {add} {{{groups}}} : ({t}) -> {t}')
    yield of("reduce_scatter", f'%r = "stablehlo.reduce_scatter"(%a0) {add} {{{groups}, '
             f"scatter_dimension = 0 : i64}} : ({t}) -> {t}")
    yield of("all_gather", f'%r = "stablehlo.all_gather"(%a0) {{{groups}, all_gather_dim = 0 : '
             f"i64}} : ({t}) -> {t}")
    yield of("all_to_all", f'%r = "stablehlo.all_to_all"(%a0) {{{groups}, split_dimension = 0 : '
             f"i64, concat_dimension = 1 : i64, split_count = 1 : i64}} : ({t}) -> {t}")
    yield of("collective_permute", '%r = "stablehlo.collective_permute"(%a0) {source_target_pairs '
             f"= dense<[[0, 0]]> : tensor<1x2xi64>}} : ({t}) -> {t}")
    yield of("replica_id", "%i = stablehlo.replica_id : tensor<ui32>\n  %f = stablehlo.convert %i "
             f": (tensor<ui32>) -> tensor<f32>\n  %b = stablehlo.broadcast_in_dim %f, dims = [] : "
             f"(tensor<f32>) -> {t}\n  %r = stablehlo.add %a0, %b : {t}")
    yield of("tuple", f'%p = "stablehlo.tuple"(%a0, %a0) : ({t}, {t}) -> tuple<{t}, {t}>\n  %r = '
             f'"stablehlo.get_tuple_element"(%p) {{index = 1 : i32}} : (tuple<{t}, {t}>) -> {t}')
    yield of("after_all", '%k = "stablehlo.create_token"() : () -> !stablehlo.token\n  %l = '
             '"stablehlo.after_all"(%k, %k) : (!stablehlo.token, !stablehlo.token) -> '
             f"!stablehlo.token\n  %r = stablehlo.negate %a0 : {t}")
