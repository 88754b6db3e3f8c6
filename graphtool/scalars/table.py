"""The table of scalar functions that both IRs share: graph elementwise ops and loop expressions.

A row gives the name, numpy's function, C's text, the result type, the operand kinds, and the
derivative. In C text `{0}` is the first operand and `{t}` the suffix of its type (`f32`); a row
with a precedence is an operator, printed with as few parentheses as C allows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from graphtool.dtypes import DType
from graphtool.scalars.special import (
    digamma,
    elementwise,
    erf_inv,
    i0e,
    i1e,
    igamma,
    igammac,
    lgamma,
    polygamma,
)
from graphtool.symbolic import Entry, conditions, maximum, minimum, spans
from graphtool.symbolic.conditions import Condition, compared
from graphtool.symbolic.spans import Span

Array = np.ndarray[Any, Any]
# derivative(o, g, y, *x): o is the namespace of ops, g the gradient of the result y, x the operands
Derivative = Callable[..., tuple[Any, ...]]

FLOAT, INT, BOOL, STRING = "float", "int", "bool", "string"
NUMERIC = (FLOAT, INT)
ANY = (FLOAT, INT, BOOL)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One scalar function. `result` "same" is the operands' type; `flops` is a nominal cost.

    `wide` says that the function loses digits in 16 bits, or leaves the range of float16; `exact`,
    that its result is a value of the operands' type, so that nothing is rounded; `bits`, that it
    depends on the bits of the operands, so that another type gives another result; `adds`, that it
    is a sum or a difference. `known(dtype, *entries)` computes it on sizes and conditions; it is
    None where the result is neither.
    `span` gives the least and the most of the result from those of the operands; with two
    operands, whether they are integers comes last.
    `decompose(o, *x)`: the same bits by other ops, for formats that lack the function.
    """

    name: str
    numpy: Callable[..., Array]
    c: str
    arity: int = 1
    result: Literal["same", "bool"] = "same"
    kinds: tuple[str, ...] = (FLOAT,)
    prec: int = 0
    commutative: bool = False
    flops: int = 1
    derivative: Derivative | None = None
    wide: bool = False
    exact: bool = False
    bits: bool = False
    adds: bool = False
    known: Callable[..., Entry | None] | None = None
    span: Callable[..., Span] | None = None
    decompose: Callable[..., Any] | None = None
    doc: str = ""


def _truncating_div(a: Array, b: Array) -> Array:
    if np.issubdtype(np.result_type(a), np.integer):
        safe = np.where(b == 0, np.ones_like(b), b)
        quotient = np.floor_divide(a, safe)
        quotient = quotient + ((quotient < 0) & (quotient * safe != a)).astype(quotient.dtype)
        return np.asarray(np.where(b == 0, np.zeros_like(quotient), quotient))
    return np.divide(a, b)


def _rem(a: Array, b: Array) -> Array:
    if np.issubdtype(np.result_type(a), np.integer):
        safe = np.where(b == 0, np.ones_like(b), b)
        return np.where(b == 0, np.zeros_like(a), np.fmod(a, safe))
    return np.fmod(a, b)


def _mod(a: Array, b: Array) -> Array:
    if np.issubdtype(np.result_type(a), np.integer):
        safe = np.where(b == 0, np.ones_like(b), b)
        return np.where(b == 0, np.zeros_like(a), np.mod(a, safe))
    return np.mod(a, b)


def _pow(a: Array, b: Array) -> Array:
    if not np.issubdtype(np.result_type(a), np.integer):
        y = np.power(a, b)
        # numpy may take √a, which is NaN at −∞ and −0 at −0; C99 (F.10.4.4) says ∞ and 0
        root = np.where(np.isneginf(a), -a, y + y.dtype.type(0))
        return np.where(np.equal(b, 0.5), root, y)
    negative = b < 0
    power = np.power(a, np.where(negative, np.zeros_like(b), b))
    inverse = np.where(a == 1, a, np.where(a == -1, np.where(b % 2 == 0, -a, a), np.zeros_like(a)))
    return np.where(negative, inverse, power).astype(np.result_type(a))


def _shift(a: Array, b: Array, left: bool) -> Array:
    bits = a.dtype.itemsize * 8
    count = np.clip(b, 0, bits - 1).astype(a.dtype)
    moved = np.left_shift(a, count) if left else np.right_shift(a, count)
    beyond = np.zeros_like(a) if left or a.dtype.kind == "u" else np.where(a < 0, -1, 0)
    return np.where((b >= bits) | (b < 0), beyond, moved).astype(a.dtype)


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(np.result_type(x))


def _fn(name: str, f: Callable[..., Array], d: Derivative | None, *, flops: int = 10,
        arity: int = 1, kinds: tuple[str, ...] = (FLOAT,), commutative: bool = False,
        **more: Any) -> Scalar:
    """A row whose C text is a call of `gt_NAME_TYPE`."""
    operands = ", ".join(f"{{{i}}}" for i in range(arity))
    return Scalar(name, f, f"gt_{name}_{{t}}({operands})", arity, kinds=kinds, flops=flops,
                  commutative=commutative, derivative=d, **more)


def _masked(o: Any, mask: Any, x: Any, otherwise: Any) -> Any:
    """x where mask, else the other: masks *before* an op, so that NaN cannot leak back."""
    return o.select(mask, x, otherwise)


def _pow_derivative(o: Any, g: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    # d(aᵇ)/da = b·aᵇ⁻¹, 0 at b = 0;  d(aᵇ)/db = aᵇ·log a, 0 where a < 0, or a = 0 and b >= 0
    if isinstance(b, (int, float)):
        return g * (o.pow(a, b - 1) * b) if b else g * 0.0, None
    if isinstance(a, (int, float)):
        if a == 0:
            return None, o.select(o.lt(b, 0), g * -math.inf, 0.0)
        return None, g * y * (math.log(a) if a > 0 else 0.0)
    zero, positive = o.eq(b, 0), o.or_(o.gt(a, 0), o.and_(o.eq(a, 0), o.lt(b, 0)))
    da = o.select(zero, 0.0, o.pow(a, o.sub(_masked(o, zero, 1.0, b), 1)) * b)
    return g * da, g * y * o.select(positive, o.log(_masked(o, positive, a, 1.0)), 0.0)


def _share_tie(o: Any, g: Any, y: Any, a: Any, b: Any, wins: Any) -> tuple[Any, Any]:
    # a tie splits evenly, as torch does; NaN goes to the operand it came from
    half = o.select(o.eq(a, b), o.mul(g, 0.5), 0.0)

    def share(mine: Any, other: Any) -> Any:
        if isinstance(mine, (int, float)):
            return None
        return o.select(o.or_(wins(mine, other), o.is_nan(mine)), g, half)
    return share(a, b), share(b, a)


def _atan2_derivative(o: Any, g: Any, _y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    square = a * a + b * b
    safe = o.select(o.eq(square, 0), 1.0, square)
    return g * b / safe, o.neg(g * a / safe)


def _gamma_density(o: Any, a: Any, x: Any) -> Any:
    # xᵃ⁻¹·e⁻ˣ / Γ(a); torch has no gradient by a either
    log = lgamma(a) if isinstance(a, (int, float)) else o.lgamma(a)
    return o.exp((a - 1.0) * o.log(x) - x - log)


def _sizes(fn: Callable[..., Entry | None], of_floats: bool = True) -> Callable[..., Entry | None]:
    """`fn` of sizes, as integers or as whole floats; None of truth values."""
    def on(dtype: DType, *xs: Entry) -> Entry | None:
        truths = any(isinstance(x, (bool, Condition)) for x in xs)
        return None if truths or (dtype.is_float and not of_floats) else fn(*xs)
    return on


def _truths(fn: Callable[..., Entry | None]) -> Callable[..., Entry | None]:
    """`fn` of whatever the elements are."""
    return lambda _, *xs: fn(*xs)


_same = _sizes(lambda a: a)  # a size is a whole number


def _compared(sign: Any, turned: bool = False) -> Callable[..., Entry | None]:
    return lambda a, b: compared(sign, b, a) if turned else compared(sign, a, b)


_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

TABLE: tuple[Scalar, ...] = (
    # ---- arithmetic -------------------------------------------------------------------------
    Scalar("add", np.add, "{0} + {1}", 2, kinds=NUMERIC, prec=12, commutative=True,
           derivative=lambda o, g, y, a, b: (g, g), known=_sizes(lambda a, b: a + b),
           span=spans.added, adds=True, doc="a + b"),
    Scalar("sub", np.subtract, "{0} - {1}", 2, kinds=NUMERIC, prec=12,
           derivative=lambda o, g, y, a, b: (g, o.neg(g)), known=_sizes(lambda a, b: a - b),
           span=lambda a, b, _: spans.added(a, spans.negative(b)), adds=True, doc="a − b"),
    Scalar("mul", np.multiply, "{0} * {1}", 2, kinds=NUMERIC, prec=13, commutative=True,
           derivative=lambda o, g, y, a, b: (g * b, g * a), known=_sizes(lambda a, b: a * b),
           span=spans.multiplied, doc="a·b"),
    Scalar("div", _truncating_div, "{0} / {1}", 2, kinds=NUMERIC, prec=13, flops=4,
           derivative=lambda o, g, y, a, b: (g / b, o.neg(g * y / b)),
           known=_sizes(conditions.quotient, of_floats=False), span=spans.divided,
           doc="a / b; of integers the quotient cut towards 0, and 0 where b = 0"),
    _fn("rem", _rem, lambda o, g, y, a, b: (g, o.neg(g * o.trunc(a / b))), arity=2, kinds=NUMERIC,
        known=_sizes(conditions.remainder), span=spans.remainder,
        doc="a − b·trunc(a / b), with the sign of a, as fmod in C; of integers 0 where b = 0"),
    _fn("mod", _mod, lambda o, g, y, a, b: (g, o.neg(g * o.floor(a / b))), arity=2, kinds=NUMERIC,
        known=_sizes(conditions.modulo), span=spans.modulo,
        doc="a − b·⌊a / b⌋, with the sign of b, as % in Python; of integers 0 where b = 0"),
    _fn("pow", _pow, _pow_derivative, arity=2, kinds=NUMERIC, flops=20,
        wide=True, doc="aᵇ; of integers cut towards 0 where b is negative"),
    _fn("max", np.maximum, lambda o, g, y, a, b: _share_tie(o, g, y, a, b, o.gt), arity=2,
        kinds=ANY, commutative=True, flops=1, exact=True, known=_sizes(maximum),
        span=spans.larger, doc="the greater of a and b; NaN if one is NaN"),
    _fn("min", np.minimum, lambda o, g, y, a, b: _share_tie(o, g, y, a, b, o.lt), arity=2,
        kinds=ANY, commutative=True, flops=1, exact=True, known=_sizes(minimum),
        span=spans.smaller, doc="the lesser of a and b; NaN if one is NaN"),
    _fn("atan2", np.arctan2, _atan2_derivative, arity=2, flops=20,
        doc="the angle of the point (b, a) in radians, in [−π, π]"),
    Scalar("neg", np.negative, "-{0}", kinds=NUMERIC, prec=14, exact=True,
           derivative=lambda o, g, y, x: (o.neg(g),), known=_sizes(lambda a: -a),
           span=spans.negative, doc="−x"),
    _fn("abs", np.abs, lambda o, g, y, x: (g * o.sign(x),), kinds=NUMERIC, flops=1, exact=True,
        known=_sizes(conditions.magnitude), span=spans.distance, doc="|x|"),
    _fn("sign", np.sign, lambda o, g, y, x: (None,), kinds=NUMERIC, flops=1, exact=True,
        known=_sizes(conditions.sign_of), doc="−1, 0 or 1, by the sign of x"),
    # ---- rounding ---------------------------------------------------------------------------
    _fn("floor", np.floor, lambda o, g, y, x: (None,), flops=1, exact=True, known=_same,
        span=spans.rounded, doc="⌊x⌋: the greatest whole number that is at most x"),
    _fn("ceil", np.ceil, lambda o, g, y, x: (None,), flops=1, exact=True, known=_same,
        span=spans.rounded, doc="⌈x⌉: the least whole number that is at least x"),
    _fn("round", np.rint, lambda o, g, y, x: (None,), flops=1, exact=True, known=_same,
        span=spans.rounded, doc="the nearest whole number; of two equally near ones the even one"),
    _fn("trunc", np.trunc, lambda o, g, y, x: (None,), flops=1, exact=True, known=_same,
        span=spans.rounded, decompose=lambda o, x: o.select(o.lt(x, 0.0), o.ceil(x), o.floor(x)),
        doc="the whole part of x, cut towards 0"),
    # ---- exponentials and powers ------------------------------------------------------------
    _fn("exp", np.exp, lambda o, g, y, x: (g * y,), wide=True, doc="eˣ"),
    _fn("expm1", np.expm1, lambda o, g, y, x: (g * (y + 1.0),),
        wide=True, doc="eˣ − 1, without loss of digits near 0"),
    _fn("log", np.log, lambda o, g, y, x: (g / x,), wide=True, doc="the natural logarithm of x"),
    _fn("log1p", np.log1p, lambda o, g, y, x: (g / (x + 1.0),),
        wide=True, doc="log(1 + x), without loss of digits near 0"),
    _fn("sqrt", np.sqrt, lambda o, g, y, x: (g * 0.5 / y,), flops=4,
        doc="√x; its gradient at 0 is ∞"),
    _fn("rsqrt", lambda x: 1 / np.sqrt(x), lambda o, g, y, x: (g * -0.5 * y * y * y,), flops=5,
        wide=True, decompose=lambda o, x: o.div(1.0, o.sqrt(x)), doc="1 / √x"),
    _fn("sigmoid", _sigmoid, lambda o, g, y, x: (g * y * (1.0 - y),), span=lambda _: (0, 1),
        doc="1 / (1 + e⁻ˣ)"),
    # ---- trigonometry -----------------------------------------------------------------------
    _fn("sin", np.sin, lambda o, g, y, x: (g * o.cos(x),), doc="the sine of x in radians"),
    _fn("cos", np.cos, lambda o, g, y, x: (o.neg(g * o.sin(x)),), doc="the cosine of x in radians"),
    _fn("tan", np.tan, lambda o, g, y, x: (g * (y * y + 1.0),), flops=15,
        wide=True, doc="the tangent of x in radians"),
    _fn("asin", np.arcsin, lambda o, g, y, x: (g * o.rsqrt(1.0 - x * x),), flops=15,
        wide=True, doc="the angle in [−π/2, π/2] whose sine is x"),
    _fn("acos", np.arccos, lambda o, g, y, x: (o.neg(g * o.rsqrt(1.0 - x * x)),), flops=15,
        wide=True, doc="the angle in [0, π] whose cosine is x"),
    _fn("atan", np.arctan, lambda o, g, y, x: (g / (x * x + 1.0),), flops=15,
        doc="the angle in (−π/2, π/2) whose tangent is x"),
    _fn("sinh", np.sinh, lambda o, g, y, x: (g * o.cosh(x),), flops=15,
        wide=True, doc="(eˣ − e⁻ˣ) / 2"),
    _fn("cosh", np.cosh, lambda o, g, y, x: (g * o.sinh(x),), flops=15,
        wide=True, doc="(eˣ + e⁻ˣ) / 2"),
    _fn("tanh", np.tanh, lambda o, g, y, x: (g * (1.0 - y * y),), span=lambda _: (-1, 1),
        doc="(eˣ − e⁻ˣ) / (eˣ + e⁻ˣ)"),
    _fn("asinh", np.arcsinh, lambda o, g, y, x: (g * o.rsqrt(x * x + 1.0),), flops=15,
        doc="log(x + √(x² + 1))"),
    _fn("acosh", np.arccosh, lambda o, g, y, x: (g * o.rsqrt(x * x - 1.0),), flops=15,
        doc="log(x + √(x² − 1)); NaN below 1"),
    _fn("atanh", np.arctanh, lambda o, g, y, x: (g / (1.0 - x * x),), flops=15,
        doc="½·log((1 + x) / (1 − x))"),
    # ---- special functions ------------------------------------------------------------------
    _fn("erf", elementwise(math.erf),
        lambda o, g, y, x: (g * _TWO_OVER_ROOT_PI * o.exp(o.neg(x * x)),), flops=15,
        doc="the error function 2/√π·∫₀ˣ exp(−t²) dt (DLMF 7.2.1)"),
    _fn("erfc", elementwise(math.erfc),
        lambda o, g, y, x: (g * -_TWO_OVER_ROOT_PI * o.exp(o.neg(x * x)),), flops=25,
        doc="1 − erf(x), without loss of digits where erf is near 1 (DLMF 7.2.2)"),
    _fn("erf_inv", elementwise(erf_inv),
        lambda o, g, y, x: (g * (1 / _TWO_OVER_ROOT_PI) * o.exp(y * y),), flops=40,
        wide=True, doc="the y with erf(y) = x; ±∞ at ±1"),
    _fn("lgamma", elementwise(lgamma), lambda o, g, y, x: (g * o.digamma(x),), flops=40,
        wide=True, doc="log|Γ(x)| (DLMF 5.2.1)"),
    _fn("digamma", elementwise(digamma), lambda o, g, y, x: (g * o.polygamma(1, x),), flops=60,
        wide=True, doc="Γ′(x) / Γ(x) (DLMF 5.2.2)"),
    _fn("polygamma", elementwise(polygamma), lambda o, g, y, n, x: (
        None, g * o.polygamma(n + 1, x)), arity=2, flops=200,
        doc="the a-th derivative of digamma at b, a a whole number ≥ 0 (DLMF 5.15)"),
    _fn("igamma", elementwise(igamma), lambda o, g, y, a, x: (
        None, g * _gamma_density(o, a, x)), arity=2, flops=200,
        doc="P(a, b) = ∫₀ᵇ tᵃ⁻¹·e⁻ᵗ dt / Γ(a) (DLMF 8.2.4)"),
    _fn("igammac", elementwise(igammac), lambda o, g, y, a, x: (
        None, o.neg(g * _gamma_density(o, a, x))), arity=2, flops=200,
        doc="Q(a, b) = 1 − P(a, b) (DLMF 8.2.4)"),
    _fn("i0e", elementwise(i0e), lambda o, g, y, x: (g * (o.i1e(x) - o.sign(x) * y),), flops=80,
        doc="e^−|x|·I₀(x), I₀ being the modified Bessel function (DLMF 10.25)"),
    _fn("i1e", elementwise(i1e), lambda o, g, y, x: (g * o.select(
        o.eq(x, 0), 0.5, o.i0e(x) - y * (o.sign(x) + 1.0 / o.select(o.eq(x, 0), 1.0, x))),),
        flops=80, doc="e^−|x|·I₁(x), I₁ being the modified Bessel function (DLMF 10.25)"),
    _fn("next_after", np.nextafter, lambda o, g, y, a, b: (o.select(o.eq(a, b), 0.0, g), None),
        arity=2, flops=4, bits=True, doc="the float beside a on the way to b (IEEE 754)"),
    # ---- comparison -------------------------------------------------------------------------
    *(Scalar(name, f, f"{{0}} {sign} {{1}}", 2, result="bool", kinds=(*ANY, STRING), prec=prec,
             commutative=name in ("eq", "ne"), derivative=lambda o, g, y, a, b: (None, None),
             known=_truths(_compared(asked)), doc=f"whether a {said} b")
      for name, f, sign, prec, said, asked in (
          ("eq", np.equal, "==", 9, "equals", "=="),
          ("ne", np.not_equal, "!=", 9, "differs from", "!="),
          ("lt", np.less, "<", 10, "is less than", "<"),
          ("le", np.less_equal, "<=", 10, "is at most", "<="))),
    *(Scalar(name, f, f"{{0}} {sign} {{1}}", 2, result="bool", kinds=(*ANY, STRING), prec=10,
             derivative=lambda o, g, y, a, b: (None, None),
             known=_truths(_compared(asked, turned=True)), doc=f"whether a {said} b")
      for name, f, sign, said, asked in (
          ("gt", np.greater, ">", "is greater than", "<"),
          ("ge", np.greater_equal, ">=", "is at least", "<="))),
    Scalar("is_nan", np.isnan, "gt_is_nan_{t}({0})", result="bool",
           derivative=lambda o, g, y, x: (None,), doc="whether x is NaN"),
    Scalar("is_inf", np.isinf, "gt_is_inf_{t}({0})", result="bool",
           derivative=lambda o, g, y, x: (None,), doc="whether x is +∞ or −∞"),
    Scalar("is_finite", np.isfinite, "gt_is_finite_{t}({0})", result="bool",
           derivative=lambda o, g, y, x: (None,),
           decompose=lambda o, x: o.not_(o.or_(o.is_nan(x), o.is_inf(x))),
           doc="whether x is neither NaN nor infinite"),
    # ---- bits and logic (on bool: logical) --------------------------------------------------
    Scalar("and", np.bitwise_and, "{0} & {1}", 2, kinds=(INT, BOOL), prec=8, commutative=True,
           known=_truths(conditions.both), doc="a and b, bit by bit"),
    Scalar("or", np.bitwise_or, "{0} | {1}", 2, kinds=(INT, BOOL), prec=6, commutative=True,
           known=_truths(conditions.either), doc="a or b, bit by bit"),
    Scalar("xor", np.bitwise_xor, "{0} ^ {1}", 2, kinds=(INT, BOOL), prec=7, commutative=True,
           doc="either a or b, bit by bit"),
    Scalar("not", np.invert, "~{0}", kinds=(INT, BOOL), prec=14, known=_truths(conditions.negated),
           doc="not x, bit by bit"),
    _fn("shift_left", lambda a, b: _shift(a, b, True), None, arity=2, kinds=(INT,), flops=1,
        doc="a·2ᵇ: the bits of a moved up by b places; 0 from the width of the type on"),
    _fn("shift_right", lambda a, b: _shift(a, b, False), None, arity=2, kinds=(INT,), flops=1,
        doc="⌊a / 2ᵇ⌋: the bits of a moved down by b places; its sign is repeated"),
)
BY_NAME = {row.name: row for row in TABLE}
