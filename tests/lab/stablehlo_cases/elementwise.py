"""Elementwise operations of StableHLO and CHLO × element types × shapes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.lab.stablehlo_cases.case import (
    COMPLEX,
    EVERY,
    FLOATS,
    INTEGERS,
    NARROW,
    NUMBERS,
    SHAPES,
    SIGNED,
    Case,
    array,
    numpy_of,
    plain,
)

_REAL = (*FLOATS, *INTEGERS)
_WHOLE = tuple(e for e in INTEGERS if not e.endswith("i4"))  # XLA counts a byte's bits
_SMOOTH = (*FLOATS, *COMPLEX)
# operation → its element types, and the range of its argument
UNARY: dict[str, tuple[tuple[str, ...], float, float]] = {
    "abs": ((*FLOATS, *SIGNED), -3, 3), "negate": (NUMBERS, -3, 3), "sign": (
        (*FLOATS, *SIGNED, *COMPLEX), -3, 3), "floor": (FLOATS, -3, 3), "ceil": (FLOATS, -3, 3),
    "round_nearest_even": (FLOATS, -3, 3), "round_nearest_afz": (FLOATS, -3, 3),
    "exponential": (_SMOOTH, -3, 3), "exponential_minus_one": (_SMOOTH, -3, 3),
    "log": (_SMOOTH, 0.1, 9), "log_plus_one": (_SMOOTH, -0.9, 3), "sqrt": (_SMOOTH, 0, 9),
    "rsqrt": (_SMOOTH, 0.1, 9), "cbrt": (FLOATS, -9, 9), "logistic": (_SMOOTH, -3, 3),
    "sine": (_SMOOTH, -3, 3), "cosine": (_SMOOTH, -3, 3), "tan": (_SMOOTH, -1.4, 1.4),
    "tanh": (_SMOOTH, -3, 3), "not": (("i1", *INTEGERS), -3, 3), "popcnt": (_WHOLE, -3, 3),
    "count_leading_zeros": (_WHOLE, -3, 3),
    **{f"chlo.{n}": (_SMOOTH, -0.95, 0.95) for n in ("acos", "asin", "atanh")},
    **{f"chlo.{n}": (_SMOOTH, -3, 3) for n in ("asinh", "atan", "cosh", "sinh", "tan", "square")},
    "chlo.acosh": (_SMOOTH, 1.1, 3), "chlo.conj": (COMPLEX, -3, 3),
    **{f"chlo.{n}": (FLOATS, -3, 3) for n in ("erf", "erfc", "bessel_i1e")},
    "chlo.erf_inv": (FLOATS, -0.95, 0.95), "chlo.lgamma": (FLOATS, 0.1, 5),
    "chlo.digamma": (FLOATS, 0.1, 5),
}
BINARY: dict[str, tuple[tuple[str, ...], float, float]] = {
    **{n: (EVERY, -3, 3) for n in ("add", "multiply")}, "subtract": (NUMBERS, -3, 3),
    "maximum": (("i1", *_REAL), -3, 3), "minimum": (("i1", *_REAL), -3, 3),
    "divide": (NUMBERS, 0.5, 3), "remainder": (_REAL, 1, 3), "power": (
        (*FLOATS, *COMPLEX, "i32", "i64", "ui8"), 1, 2.5), "atan2": (FLOATS, -3, 3),
    **{n: (("i1", *INTEGERS), -3, 3) for n in ("and", "or", "xor")},
    **{n: (INTEGERS, 0, 1) for n in ("shift_left", "shift_right_arithmetic",
                                    "shift_right_logical")},
    "chlo.next_after": (("f32", "f64"), -3, 3), "chlo.polygamma": (("f32", "f64"), 1, 3),
    "chlo.zeta": (("f32", "f64"), 1.5, 4), "chlo.mulhi": (("i32", "ui32", "i64", "ui64"), -3, 3),
}
_SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1.0, 1.0, 1e30])


def cases() -> Iterator[Case]:
    for op, (elements, lo, hi) in UNARY.items():
        for e in elements:
            shapes = SHAPES if e in ("f32", "i32", "complex<f32>") else ((3, 5),)
            for shape in shapes:
                yield plain(op, e, [array(e, shape, 1, lo, hi)], tolerance=_loose(op, e))
    for op, (elements, lo, hi) in BINARY.items():
        for e in elements:
            shapes = SHAPES if e in ("f32", "i32") else ((3, 5),)
            for shape in shapes:
                xs = [array(e, shape, s, lo, hi) for s in (1, 2)]
                if op == "chlo.polygamma":
                    xs[0] = np.round(xs[0])
                if op in ("divide", "remainder"):
                    xs = [array(e, shape, 1), np.where(xs[1] == 0, numpy_of(e).type(1), xs[1])]
                yield plain(op, e, xs, tolerance=_loose(op, e))
    yield from special()
    yield from others()


def _loose(op: str, element: str) -> float:
    if element in ("f64", "complex<f64>"):
        return 1e-10
    return 1e-4 if op.startswith("chlo") or element == "complex<f32>" else 1e-5


def special() -> Iterator[Case]:
    """Infinities, NaN, zeros of both signs and numbers near 0."""
    for op, (elements, _, _) in UNARY.items():
        if "f32" in elements and op not in ("chlo.lgamma", "chlo.digamma", "chlo.bessel_i1e"):
            made = plain(op, "f32", [_SPECIAL.astype(np.float32)])
            yield Case(f"{made.name} special", made.op, made.text, made.inputs)
    for op in ("add", "maximum", "minimum", "divide", "power", "atan2", "remainder", "multiply"):
        a, b = (v.reshape(-1).astype(np.float32) for v in np.meshgrid(_SPECIAL, _SPECIAL))
        made = plain(op, "f32", [a, b])
        yield Case(f"{made.name} special", made.op, made.text, made.inputs)
    for e in ("i8", "i32", "ui8", "ui32", "i64"):
        info = np.iinfo(numpy_of(e))
        a, b = (v.reshape(-1).astype(numpy_of(e)) for v in np.meshgrid(
            [info.min, info.max, 0, 1, info.max - 1], [info.min, info.max, 0, 1, 7]))
        for op in ("add", "multiply", "subtract", "divide", "remainder", "shift_left",
                   "shift_right_logical", "shift_right_arithmetic", "maximum"):
            made = plain(op, e, [a, b])
            yield Case(f"{made.name} special", made.op, made.text, made.inputs)


def others() -> Iterator[Case]:
    for e in EVERY:
        x, y = array(e, (3, 5), 1), array(e, (3, 5), 2)
        directions = ("EQ", "NE") if e in COMPLEX else ("EQ", "NE", "LT", "LE", "GT", "GE")
        for d in directions:
            yield plain("compare", e, [x, np.where(array("i1", (3, 5), 3), x, y)], "i1", attrs=(
                f"{{comparison_direction = #stablehlo<comparison_direction {d}>}}"))
        yield plain("select", e, [array("i1", (3, 5), 3), x, y], elements=["i1", e, e], out=e)
        yield plain("select", e, [array("i1", (), 3), x, y], elements=["i1", e, e], out=e)
    for e in (*FLOATS, *INTEGERS):
        lo, x, hi = array(e, (3, 5), 1, -2, 0), array(e, (3, 5), 2), array(e, (3, 5), 3, 0, 2)
        yield plain("clamp", e, [lo, x, hi])
        yield plain("clamp", e, [lo[0, 0], x, hi[0, 0]])
    for e in ("f16", "f32", "f64"):
        a, b = (v.reshape(-1).astype(numpy_of(e)) for v in np.meshgrid(_SPECIAL, _SPECIAL))
        for d in ("LT", "GE", "EQ"):
            yield plain("compare", e, [a, b], "i1", attrs=(
                "{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = "
                f"#stablehlo<comparison_direction {d}>}}"))
        yield plain("is_finite", e, [_SPECIAL.astype(numpy_of(e))], "i1")
        for n in ("is_inf", "is_pos_inf", "is_neg_inf"):
            yield plain(f"chlo.{n}", e, [_SPECIAL.astype(numpy_of(e))], "i1")
    kinds = ("i1", "i4", "i8", "i32", "i64", "ui4", "ui8", "ui32", "ui64", *FLOATS, *COMPLEX)
    for a in kinds:
        for b in kinds:
            signed = b.startswith("u") and not a.startswith(("u", "i1"))
            yield plain("convert", a, [array(a, (3, 5), 1, 0.0 if signed else -1.9, 1.9)], b)
    for e in NARROW:
        for b in ("f32", "bf16", "i32"):
            low = 0.25 if e == "f8E8M0FNU" else -4.0
            yield plain("convert", e, [array(e, (3, 5), 1, low, 4)], b)
            if b != "i32":
                yield plain("convert", b, [array(b, (3, 5), 1, low, 4)], e)
        if e not in ("f8E8M0FNU", "f4E2M1FN"):
            for op in ("add", "multiply", "maximum"):
                yield plain(op, e, [array(e, (3, 5), s, -2, 2) for s in (1, 2)])
            for op in ("negate", "abs", "tanh"):
                yield plain(op, e, [array(e, (3, 5), 1, -2, 2)])
    for a, b in (("f32", "i32"), ("i32", "f32"), ("f16", "i16"), ("ui64", "f64"), ("i8", "ui8"),
                 ("bf16", "ui16"), ("f8E5M2", "i8")):
        yield plain("bitcast_convert", a, [array(a, (3, 5), 1)], b)
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (2, 1), (8, 3), (3, 23)):
        for e in FLOATS:
            x = np.concatenate([array(e, (40,), 1), _SPECIAL.astype(numpy_of(e))])
            yield plain("reduce_precision", e, [x], attrs=(
                f"{{exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32}}"))
    for e in ("f32", "f64"):
        half = [array(e, (3, 5), s) for s in (1, 2)]
        yield plain("complex", e, half, f"complex<{e}>")
        for op in ("real", "imag", "abs"):
            yield plain(op, f"complex<{e}>", [array(f"complex<{e}>", (3, 5), 1)], e)
    yield from broadcasts()


def broadcasts() -> Iterator[Case]:
    """CHLO's operations on operands of other shapes."""
    for op in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "atan2",
               "remainder", "next_after"):
        yield plain(f"chlo.broadcast_{op}", "f32", [array("f32", (5,), 1, 0.5, 3),
                                                   array("f32", (3, 5), 2, 0.5, 3)])
        yield plain(f"chlo.broadcast_{op}", "f32", [array("f32", (3, 1), 1, 0.5, 3),
                                                   array("f32", (3, 5), 2, 0.5, 3)])
    for op in ("and", "or", "xor", "shift_left", "shift_right_logical"):
        yield plain(f"chlo.broadcast_{op}", "i32", [array("i32", (3, 5), 1, 0, 1),
                                                   array("i32", (5,), 2, 0, 1)])
    yield plain("chlo.broadcast_compare", "f32", [array("f32", (3, 5), 1), array("f32", (), 2)],
                "i1", attrs="{comparison_direction = #chlo<comparison_direction LT>}")
    yield plain("chlo.broadcast_complex", "f32", [array("f32", (3, 5), 1), array("f32", (5,), 2)],
                "complex<f32>")
    yield plain("chlo.broadcast_add", "complex<f32>", [array("complex<f32>", (3, 5), 1),
                                                      array("complex<f32>", (5,), 2)])
    yield plain("chlo.constant_like", "f32", [array("f32", (3, 5), 1)],
                attrs="{value = 3.5 : f32}")
