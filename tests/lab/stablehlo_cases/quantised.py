"""Quantised types beside their definition in NumPy: jaxlib does not read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.lab.stablehlo_cases.case import Array, Case, array

# name → type, low, high, scale, zero; scales of an axis are shaped for two axes
KINDS: dict[str, tuple[str, int, int, Any, Any]] = {
    "i8": ("!quant.uniform<i8:f32, 0.05:-30>", -128, 127, 0.05, -30),
    "u8": ("!quant.uniform<u8:f32, 0.1:7>", 0, 255, 0.1, 7),
    "i16": ("!quant.uniform<i16:f32, 0.001>", -32768, 32767, 0.001, 0),
    "narrow": ("!quant.uniform<i8<-127:127>:f32, 0.04:0>", -127, 127, 0.04, 0),
    "axis": ("!quant.uniform<i8:f32:1, {0.05:1, 0.1:-2, 0.2, 0.02:5}>", -128, 127,
             np.array([[0.05, 0.1, 0.2, 0.02]], np.float32), np.array([[1, -2, 0, 5]])),
}
_STORED = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "narrow": np.int8, "axis": np.int8}


def quantised(x: Array, kind: str) -> Array:
    _, low, high, scale, zero = KINDS[kind]
    steps = np.round(x / np.float32(scale)) + zero
    out: Array = np.clip(steps, low, high).astype(_STORED[kind])
    return out


def number(q: Array, kind: str) -> Array:
    _, _, _, scale, zero = KINDS[kind]
    out: Array = ((q.astype(np.float32) - zero) * np.float32(scale)).astype(np.float32)
    return out


def cases() -> Iterator[Case]:
    x, y = array("f32", (3, 4), 1), array("f32", (3, 4), 2)
    for name, (text, *_) in KINDS.items():
        q, r, t = quantised(x, name), quantised(y, name), f"tensor<3x4x{text}>"

        def of(op: str, takes: str, gives: str, inputs: list[Array], want: Array,
               name: str = name) -> Case:
            arguments = ", ".join(f"%a{i}: {k}" for i, k in enumerate(takes.split(" and ")))
            used = ", ".join(f"%a{i}" for i in range(len(inputs)))
            kinds = takes.replace(" and ", ", ")
            return Case(f"{op} quantised {name}", op, f"func.func public @main({arguments}) -> "
                        f'{gives} {{\n  %r = "stablehlo.{op}"({used}) : ({kinds}) -> {gives}\n  '
                        f"return %r : {gives}\n}}\n", inputs, 1e-5, [want])
        yield of("uniform_quantize", "tensor<3x4xf32>", t, [x], q)
        yield of("uniform_dequantize", t, "tensor<3x4xf32>", [q], number(q, name))
        both: dict[str, Callable[..., Any]] = {
            "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "subtract": np.subtract}
        for op, fn in both.items():
            want = quantised(fn(number(q, name), number(r, name)), name)
            yield of(op, f"{t} and {t}", t, [q, r], want)
        yield of("negate", t, t, [q], quantised(-number(q, name), name))
        yield of("tanh", t, t, [q], quantised(np.tanh(number(q, name)), name))
    i8, t = KINDS["i8"][0], "tensor<3x4x" + KINDS["i8"][0] + ">"
    a, w = quantised(x, "i8"), quantised(array("f32", (5, 4), 3), "axis")
    product = number(a, "i8") @ number(w, "axis").T
    u8 = f"tensor<3x5x{KINDS['u8'][0]}>"
    turned = "!quant.uniform<i8:f32:0, {0.05:1, 0.1:-2, 0.2, 0.02:5}>"
    for gives, want in ((u8, quantised(product, "u8")), ("tensor<3x5xf32>", product)):
        left = t if gives is u8 else "tensor<3x4xf32>"
        yield Case(f"dot_general quantised {gives[:12]}", "dot_general",
          f"""func.func public @main(%a: {left}, %b: tensor<4x5x{turned}>) -> {gives} {{
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({left},
      tensor<4x5x{turned}>) -> {gives}
  return %r : {gives}
}}
""", [a if gives is u8 else number(a, "i8"), w.T.copy()], 1e-4, [want])
    yield Case("transpose quantised", "transpose", f"""func.func public @main(%a: {t})
      -> tensor<4x3x{i8}> {{
  %r = stablehlo.transpose %a, dims = [1, 0] : ({t}) -> tensor<4x3x{i8}>
  return %r : tensor<4x3x{i8}>
}}
""", [a], 1e-5, [a.T])
