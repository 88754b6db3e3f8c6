"""Reductions, windows, sorts and scans with many bodies × element types."""

from __future__ import annotations

from collections.abc import Iterator

from tests.lab.stablehlo_cases.case import COMPLEX, FLOATS, INTEGERS, Case, array, case, tensor

_FIRST = {"add": "0", "multiply": "1", "maximum": "-1", "minimum": "100", "and": "-1", "or": "0",
          "xor": "0"}


def first(e: str, body: str) -> str:
    v = _FIRST[body]
    if e == "i1":
        return {"0": "false", "1": "true", "-1": "true" if body == "and" else "false",
                "100": "true"}[v]
    if e in COMPLEX:
        return f"({v}.0, 0.0)"
    if e in FLOATS:
        return f"{v}.0"
    if e.startswith("u"):
        return {"-1": "0" if body == "maximum" else "15", "100": "15"}.get(v, v)
    return {"100": "7"}.get(v, v)


def body_of(op: str, e: str) -> str:
    s = tensor(e, ())
    return (f"({{\n  ^bb0(%p: {s}, %q: {s}):\n    %m = stablehlo.{op} %p, %q : {s}\n    "
            f"stablehlo.return %m : {s}\n  }})")


def cases() -> Iterator[Case]:
    numbers = (*FLOATS, *INTEGERS)
    for op, elements in {"add": ("i1", *numbers, *COMPLEX), "multiply": (*numbers, *COMPLEX),
                         "maximum": ("i1", *numbers), "minimum": ("i1", *numbers),
                         "and": ("i1", *INTEGERS), "or": ("i1", *INTEGERS),
                         "xor": ("i1", "i32")}.items():
        for e in elements:
            yield from folded(op, e)
    yield from several()
    yield from sorts()
    yield from picked()


def folded(op: str, e: str) -> Iterator[Case]:
    x = array(e, (2, 3, 4), 1, -1.5, 1.5)
    t, s = tensor(e, x.shape), tensor(e, ())
    start = f"%i = stablehlo.constant dense<{first(e, op)}> : {s}\n  "
    all_axes = ((0,), (1, 2), (0, 1, 2), ()) if e in ("f32", "i32", "complex<f32>") else ((0, 2),)
    loose = 1e-4
    for axes in all_axes:
        if not axes and op in ("maximum", "minimum"):
            continue  # XLA leaves the first value out, the specification does not
        out = tensor(e, tuple(d for i, d in enumerate(x.shape) if i not in axes))
        yield case("reduce", f"{op} {e} {list(axes)}", [(e, x)], [out], start + (
            f'%r = "stablehlo.reduce"(%a0, %i) {body_of(op, e)} {{dimensions = array<i64'
            f"{': ' if axes else ''}{', '.join(map(str, axes))}>}} : ({t}, {s}) -> {out}"), loose)
    empty = array(e, (0, 3))
    yield case("reduce", f"{op} {e} empty", [(e, empty)], [tensor(e, (3,))], start + (
        f'%r = "stablehlo.reduce"(%a0, %i) {body_of(op, e)} {{dimensions = array<i64: 0>}} : '
        f"({tensor(e, (0, 3))}, {s}) -> {tensor(e, (3,))}"))
    if op == "xor":
        return
    out = tensor(e, (2, 2, 4))
    yield case("reduce_window", f"{op} {e}", [(e, x)], [out], start + (
        f'%r = "stablehlo.reduce_window"(%a0, %i) {body_of(op, e)} {{window_dimensions = '
        f"array<i64: 1, 2, 3>, window_strides = array<i64: 1, 2, 1>, padding = dense<[[0, 0], "
        f"[1, 0], [1, 1]]> : tensor<3x2xi64>}} : ({t}, {s}) -> {out}"), loose)
    if e in ("f32", "i32"):
        out = tensor(e, (2, 5, 4))
        yield case("reduce_window", f"{op} {e} dilated", [(e, x)], [out], start + (
            f'%r = "stablehlo.reduce_window"(%a0, %i) {body_of(op, e)} {{window_dimensions = '
            f"array<i64: 1, 2, 2>, base_dilations = array<i64: 1, 2, 1>, window_dilations = "
            f"array<i64: 1, 1, 1>, padding = dense<[[0, 0], [1, 0], [1, 0]]> : tensor<3x2xi64>}} : "
            f"({t}, {s}) -> {out}"), loose)


def several() -> Iterator[Case]:
    """Several operands, and bodies of more than one operation."""
    x, y = array("f32", (3, 5), 1), array("i32", (3, 5), 2)
    yield case("reduce", "arg", [("f32", x), ("i32", y)], ["tensor<3xf32>", "tensor<3xi32>"], """
  %i = stablehlo.constant dense<-1.0> : tensor<f32>
  %j = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%a0 init: %i), (%a1 init: %j) across dimensions = [1]
      : (tensor<3x5xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>,
        tensor<3xi32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%v: tensor<i32>, %w: tensor<i32>) {
      %c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %m = stablehlo.select %c, %p, %q : tensor<i1>, tensor<f32>
      %n = stablehlo.select %c, %v, %w : tensor<i1>, tensor<i32>
      stablehlo.return %m, %n : tensor<f32>, tensor<i32>
    }""")
    yield case("map", "f32", [("f32", x), ("f32", x[::-1].copy())], ["tensor<3x5xf32>"], """
  %r = "stablehlo.map"(%a0, %a1) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %m = stablehlo.multiply %p, %q : tensor<f32>
      %n = stablehlo.tanh %m : tensor<f32>
      stablehlo.return %n : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>""")
    yield case("reduce", "logsumexp", [("f32", x)], ["tensor<3xf32>"], """
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %r = "stablehlo.reduce"(%a0, %i) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %m = stablehlo.maximum %p, %q : tensor<f32>
      %n = stablehlo.minimum %p, %q : tensor<f32>
      %d = stablehlo.subtract %n, %m : tensor<f32>
      %e = stablehlo.exponential %d : tensor<f32>
      %l = stablehlo.log_plus_one %e : tensor<f32>
      %o = stablehlo.add %m, %l : tensor<f32>
      stablehlo.return %o : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>""", 1e-4)
    yield case("reduce_window", "two operands", [("f32", x), ("f32", x * 2)], ["tensor<2x4xf32>",
      "tensor<2x4xf32>"], """
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %r:2 = "stablehlo.reduce_window"(%a0, %a1, %i, %i) ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>, %v: tensor<f32>, %w: tensor<f32>):
      %m = stablehlo.add %p, %v : tensor<f32>
      %n = stablehlo.maximum %q, %w : tensor<f32>
      stablehlo.return %m, %n : tensor<f32>, tensor<f32>
  }) {window_dimensions = array<i64: 2, 2>} : (tensor<3x5xf32>, tensor<3x5xf32>, tensor<f32>,
      tensor<f32>) -> (tensor<2x4xf32>, tensor<2x4xf32>)""")


def sorts() -> Iterator[Case]:
    for e in (*FLOATS, *INTEGERS):
        for direction in ("LT", "GT"):
            for axis in (0, 1):
                x, s = array(e, (5, 6), 1), tensor(e, ())
                yield case("sort", f"{e} {direction} {axis}", [(e, x)], [tensor(e, (5, 6))], f"""
  %r = "stablehlo.sort"(%a0) ({{
    ^bb0(%p: {s}, %q: {s}):
      %c = stablehlo.compare {direction}, %p, %q : ({s}, {s}) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}) {{dimension = {axis} : i64, is_stable = true}} : ({tensor(e, (5, 6))}) -> {tensor(e, (5,
      6))}""")
    x, y = array("i32", (4, 6), 1, -1, 1), array("f32", (4, 6), 2)
    yield case("sort", "two operands", [("i32", x), ("f32", y)],
               ["tensor<4x6xi32>", "tensor<4x6xf32>"], """
  %r:2 = "stablehlo.sort"(%a0, %a1) ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<f32>):
      %c = stablehlo.compare GT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<4x6xi32>, tensor<4x6xf32>)
      -> (tensor<4x6xi32>, tensor<4x6xf32>)""")
    yield case("sort", "any comparator", [("i32", x), ("f32", y)],
               ["tensor<4x6xi32>", "tensor<4x6xf32>"], """
  %r:2 = "stablehlo.sort"(%a0, %a1) ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>, %v: tensor<f32>, %w: tensor<f32>):
      %a = stablehlo.convert %p : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.add %a, %v : tensor<f32>
      %d = stablehlo.convert %q : (tensor<i32>) -> tensor<f32>
      %e = stablehlo.add %d, %w : tensor<f32>
      %c = stablehlo.compare LT, %b, %e : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<4x6xi32>, tensor<4x6xf32>)
      -> (tensor<4x6xi32>, tensor<4x6xf32>)""")


def picked() -> Iterator[Case]:
    """select_and_scatter: the gradient of a pooling."""
    for e in ("f32", "f64", "bf16", "i32"):
        for direction in ("GE", "LE"):
            x, g, s = array(e, (4, 6), 1), array(e, (2, 3), 2), tensor(e, ())
            zero = "0" if e == "i32" else "0.0"
            yield case("select_and_scatter", f"{e} {direction}", [(e, x), (e, g)],
                       [tensor(e, (4, 6))], f"""
  %i = stablehlo.constant dense<{zero}> : {s}
  %r = "stablehlo.select_and_scatter"(%a0, %a1, %i) ({{
    ^bb0(%p: {s}, %q: {s}):
      %c = stablehlo.compare {direction}, %p, %q : ({s}, {s}) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%p: {s}, %q: {s}):
      %c = stablehlo.add %p, %q : {s}
      stablehlo.return %c : {s}
  }}) {{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}} : ({tensor(e,
      (4, 6))}, {tensor(e, (2, 3))}, {s}) -> {tensor(e, (4, 6))}""", 1e-4)
