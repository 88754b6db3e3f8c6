"""Products, convolutions, transforms and factors × element types."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.lab.stablehlo_cases.case import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    Case,
    array,
    case,
    tensor,
)

# shapes of both, of the result, and the axes
DOTS: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], str]] = {
    "matrix": ((3, 4), (4, 5), (3, 5), "contracting_dims = [1] x [0]"),
    "turned": ((4, 3), (5, 4), (3, 5), "contracting_dims = [0] x [1]"),
    "vectors": ((4,), (4,), (), "contracting_dims = [0] x [0]"),
    "outer": ((3,), (4,), (3, 4), "contracting_dims = [] x []"),
    "batch": ((2, 3, 4), (2, 4, 5), (2, 3, 5), "batching_dims = [0] x [0], contracting_dims = [2] "
                                               "x [1]"),
    "inner batch": ((3, 2, 4), (4, 5, 2), (2, 3, 5), "batching_dims = [1] x [2], contracting_dims "
                                                     "= [2] x [0]"),
    "two axes": ((3, 4, 2), (4, 2, 5), (3, 5), "contracting_dims = [1, 2] x [0, 1]"),
    "empty": ((3, 0), (0, 5), (3, 5), "contracting_dims = [1] x [0]"),
}


def cases() -> Iterator[Case]:
    for name, (a, b, out, axes) in DOTS.items():
        for e in (*FLOATS, *INTEGERS, *COMPLEX) if name in ("matrix", "batch") else ("f32", "i32"):
            x, y = array(e, a, 1, -1, 1), array(e, b, 2, -1, 1)
            yield case("dot_general", f"{name} {e}", [(e, x), (e, y)], [tensor(e, out)],
                       f"%r = stablehlo.dot_general %a0, %a1, {axes}, precision = [DEFAULT, "
                       f"DEFAULT] : ({tensor(e, a)}, {tensor(e, b)}) -> {tensor(e, out)}", 1e-4)
    for e, to in (("i8", "i32"), ("ui8", "i32"), ("bf16", "f32"), ("f16", "f32"), ("f32", "f64"),
                  ("i16", "i64"), ("f8E4M3FN", "f32"), ("f8E5M2", "f32"),
                  ("i8", "f32")):
        x, y = array(e, (3, 4), 1, -2, 2), array(e, (4, 5), 2, -2, 2)
        yield case("dot_general", f"{e} -> {to}", [(e, x), (e, y)], [tensor(to, (3, 5))],
                   "%r = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : "
                   f"({tensor(e, (3, 4))}, {tensor(e, (4, 5))}) -> {tensor(to, (3, 5))}", 1e-4)
    yield case("dot", "f32", [("f32", array("f32", (3, 4), 1)), ("f32", array("f32", (4,), 2))],
               ["tensor<3xf32>"], '%r = "stablehlo.dot"(%a0, %a1) : (tensor<3x4xf32>, '
               "tensor<4xf32>) -> tensor<3xf32>")
    for config, a, b, out in (("ij,jk->ik", (3, 4), (4, 5), (3, 5)), ("bij,bkj->bik", (2, 3, 4), (
            2, 5, 4), (2, 3, 5)), ("ij,k->ki", (3, 4), (5,), (5, 3))):
        yield case("einsum", config, [("f32", array("f32", a, 1)), ("f32", array("f32", b, 2))],
                   [tensor("f32", out)], f'%r = "stablehlo.einsum"(%a0, %a1) {{einsum_config = '
                   f'"{config}"}} : ({tensor("f32", a)}, {tensor("f32", b)}) -> '
                   f'{tensor("f32", out)}', 1e-4)
    yield from convolutions()
    yield from transforms()
    yield from norms()



CONVS = {
    "plain": ((2, 3, 6, 5), (4, 3, 3, 2), (2, 4, 4, 4), "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
              "", "", 1, 1),
    "last": ((2, 6, 5, 3), (3, 2, 3, 4), (2, 3, 4, 4), "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
             "stride = [2, 1], pad = [[1, 0], [0, 0]], rhs_dilate = [1, 1]", "", 1, 1),
    "groups": ((2, 6, 7), (8, 3, 3), (2, 8, 7), "[b, f, 0]x[o, i, 0]->[b, f, 0]",
               "pad = [[1, 1]]", "", 2, 1),
    "batch groups": ((4, 2, 7), (6, 2, 3), (2, 6, 5), "[b, f, 0]x[o, i, 0]->[b, f, 0]", "", "",
                     1, 2),
    "dilated": ((1, 2, 5, 5), (3, 2, 2, 2), (1, 3, 7, 3), "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
                "lhs_dilate = [2, 1], rhs_dilate = [2, 2]", "", 1, 1),
    "reversed": ((1, 2, 5), (3, 2, 3), (1, 3, 3), "[b, f, 0]x[o, i, 0]->[b, f, 0]",
                 "reverse = [true]", "", 1, 1),
    "mixed": ((6, 2, 3, 5), (3, 4, 3, 2), (4, 2, 4, 4), "[0, b, f, 1]x[i, o, 0, 1]->[f, b, 0, 1]",
              "", "", 1, 1),
    "negative": ((1, 1, 6), (1, 1, 2), (1, 1, 3), "[b, f, 0]x[o, i, 0]->[b, f, 0]",
                 "pad = [[-1, -1]]", "", 1, 1),
    "no space": ((3, 4), (5, 4), (3, 5), "[b, f]x[o, i]->[b, f]", "", "", 1, 1),
}


def convolutions() -> Iterator[Case]:
    for name, (a, b, out, axes, window, _, groups, batch) in CONVS.items():
        for e in (*FLOATS, "i8", "i32", *COMPLEX) if name in ("plain", "last") else ("f32", "i32"):
            x, w = array(e, a, 1, -1, 1), array(e, b, 2, -1, 1)
            yield case("convolution", f"{name} {e}", [(e, x), (e, w)], [tensor(e, out)],
                       f"%r = stablehlo.convolution(%a0, %a1) dim_numbers = {axes}, window = "
                       f"{{{window}}} {{batch_group_count = {batch} : i64, feature_group_count = "
                       f"{groups} : i64}} : ({tensor(e, a)}, {tensor(e, b)}) -> {tensor(e, out)}",
                       1e-4)
    yield case("convolution", "i8 -> i32", [("i8", array("i8", (2, 3, 6), 1)), ("i8", array(
        "i8", (4, 3, 3), 2))], ["tensor<2x4x4xi32>"], "%r = stablehlo.convolution(%a0, %a1) "
        "dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, "
        "feature_group_count = 1 : i64} : (tensor<2x3x6xi8>, tensor<4x3x3xi8>) -> "
        "tensor<2x4x4xi32>")


def transforms() -> Iterator[Case]:
    for e in ("f32", "f64"):
        c = f"complex<{e}>"
        loose = 1e-4 if e == "f32" else 1e-9
        for kind, given, b, sa, sb, n in (("FFT", c, c, (3, 8), (3, 8), "8"),
                                      ("IFFT", c, c, (3, 6), (3, 6), "6"),
                                      ("RFFT", e, c, (3, 7), (3, 4), "7"),
                                      ("IRFFT", c, e, (3, 5), (3, 8), "8"),
                                      ("FFT", c, c, (2, 4, 6), (2, 4, 6), "4, 6"),
                                      ("RFFT", e, c, (2, 4, 6), (2, 4, 4), "4, 6"),
                                      ("IRFFT", c, e, (2, 4, 4), (2, 4, 6), "4, 6"),
                                      ("IFFT", c, c, (2, 3, 4), (2, 3, 4), "2, 3, 4")):
            x = array(given, sa, 1)
            if kind == "IRFFT":  # the numbers of a real signal, which libraries agree on
                real = array(e, sb, 1)
                axes = tuple(range(len(sb) - len(n.split(", ")), len(sb)))
                x = np.fft.rfftn(real, axes=axes).astype(x.dtype)
            yield case("fft", f"{kind} {e} [{n}]", [(given, x)], [tensor(b, sb)],
                       f"%r = stablehlo.fft %a0, type = {kind}, length = [{n}] : "
                       f"({tensor(given, sa)}) -> {tensor(b, sb)}", loose)
    for e in ("f32", "f64", *COMPLEX):
        for shape in ((4, 4), (2, 3, 3)):
            q = array(e, shape, 1)
            turn = np.conj(np.swapaxes(q, -1, -2))
            a = (q @ turn + 4 * np.eye(shape[-1])).astype(q.dtype)
            t = tensor(e, shape)
            for lower in ("true", "false"):
                yield case("cholesky", f"{e} {list(shape)} {lower}", [(e, a)], [t],
                           f"%c = stablehlo.cholesky %a0, lower = {lower} : {t}\n  " + masked(
                               e, shape, lower == "true"), 1e-4)
            right = array(e, (*shape[:-1], 2), 2)
            for left, lower, unit, turned in (
                    ("true", "true", "false", "NO_TRANSPOSE"), ("true", "false", "true",
                    "TRANSPOSE"), ("false", "true", "false", "ADJOINT"), ("false", "false", "true",
                    "NO_TRANSPOSE"), ("true", "true", "false", "ADJOINT")):
                side = right if left == "true" else np.swapaxes(right, -1, -2).copy()
                tb = tensor(e, side.shape)
                yield case("triangular_solve", f"{e} {list(shape)} {left} {lower} {unit} {turned}",
                           [(e, a), (e, side)], [tb], '%r = "stablehlo.triangular_solve"(%a0, %a1)'
                           f" {{left_side = {left}, lower = {lower}, unit_diagonal = {unit}, "
                           f"transpose_a = #stablehlo<transpose {turned}>}} : ({t}, {tb}) -> {tb}",
                           1e-3)


def masked(e: str, shape: tuple[int, ...], lower: bool) -> str:
    """The triangle of %c as %r: what is in the other one is nobody's."""
    n = len(shape)
    whole, t = tensor("i32", shape), tensor(e, shape)
    zero = "(0.0, 0.0)" if e in COMPLEX else "0.0"
    return (f"%i = stablehlo.iota dim = {n - 2} : {whole}\n  %j = stablehlo.iota dim = {n - 1} : "
            f"{whole}\n  %k = stablehlo.compare {'GE' if lower else 'LE'}, %i, %j : ({whole}, "
            f"{whole}) -> {tensor('i1', shape)}\n  %z = stablehlo.constant dense<{zero}> : {t}\n  "
            f"%r = stablehlo.select %k, %c, %z : {tensor('i1', shape)}, {t}")


def norms() -> Iterator[Case]:
    x, s, o = array("f32", (4, 3, 5), 1), array("f32", (3,), 2), array("f32", (3,), 3)
    v, g = array("f32", (3,), 4, 0.5, 2), array("f32", (4, 3, 5), 5)
    attrs = "{epsilon = 0.001 : f32, feature_index = 1 : i64}"
    t, f = "tensor<4x3x5xf32>", "tensor<3xf32>"
    e = "f32"
    yield case("batch_norm_inference", e, [(e, x), (e, s), (e, o), (e, s), (e, v)], [t],
               f'%r = "stablehlo.batch_norm_inference"(%a0, %a1, %a2, %a3, %a4) {attrs} : ({t}, '
               f"{f}, {f}, {f}, {f}) -> {t}", 1e-4)
    yield case("batch_norm_training", e, [(e, x), (e, s), (e, o)], [t, f, f],
               f'%r:3 = "stablehlo.batch_norm_training"(%a0, %a1, %a2) {attrs} : ({t}, {f}, {f}) '
               f"-> ({t}, {f}, {f})", 1e-4)
    yield case("batch_norm_grad", e, [(e, x), (e, s), (e, o), (e, v), (e, g)], [t, f, f],
               f'%r:3 = "stablehlo.batch_norm_grad"(%a0, %a1, %a2, %a3, %a4) {attrs} : ({t}, {f}, '
               f"{f}, {f}, {t}) -> ({t}, {f}, {f})", 1e-3)
