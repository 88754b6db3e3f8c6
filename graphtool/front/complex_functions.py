"""Functions of complex numbers, by real functions of both parts.

Formulas of inverse functions are those of Hull, Fairgrieve and Tang, Implementing the Complex
Arcsine and Arccosine Functions Using Exception Handling (1997), without its cases for overflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front.array import pick
from graphtool.front.complex import Complex


def _signed(x: Any, sign: Any) -> Any:
    """x, which is not negative, with the sign of `sign`."""
    return o.select(_below(sign), -x, x)


def _below(x: Any) -> Any:
    """Whether the sign bit is set."""
    return x.bits_as(dtypes.BY_NAME[f"int{x.dtype.bits}"]) < 0


def _number(like: Complex, value: float) -> Complex:
    zero = like.real * 0.0  # of the same shape
    return Complex(pick(o.eq(zero, zero), value, value, zero),
                   pick(o.eq(zero, zero), 0.0, 0.0, zero))


# ---- exponentials and roots --------------------------------------------------------------------

def exp(x: Complex) -> Complex:
    """eᵃ(cos b + i sin b); a real number stays real."""
    grown = o.exp(x.real)
    return Complex(grown * o.cos(x.imag),
                   o.select(o.eq(x.imag, 0.0), x.imag, grown * o.sin(x.imag)))


def expm1(x: Complex) -> Complex:
    """(eᵃ − 1) cos b − 2 sin²(b/2) + i eᵃ sin b."""
    half = o.sin(x.imag * 0.5)
    return Complex(o.expm1(x.real) * o.cos(x.imag) - half * half * 2.0,
                   o.exp(x.real) * o.sin(x.imag))


def log(x: Complex) -> Complex:
    """ln |x| + i arg x; near |x| = 1 by log1p, which loses no digits."""
    big, small = (f(abs(x.real), abs(x.imag)) for f in (o.max, o.min))
    near = 0.5 * o.log1p((big - 1.0) * (big + 1.0) + small * small)
    close = (big > 0.5) & (big < 1.5)
    return Complex(o.select(close, near, o.log(abs(x))), o.atan2(x.imag, x.real))


def log1p(x: Complex) -> Complex:
    """log(1 + x), by log1p(a² + 2a + b²) where that is small."""
    moved = x + 1.0
    square = x.real * (x.real + 2.0) + x.imag * x.imag
    small = abs(square) < 0.5
    return Complex(o.select(small, o.log1p(square) * 0.5, o.log(abs(moved))),
                   o.atan2(x.imag, moved.real))


def sqrt(x: Complex) -> Complex:
    """The root with a real part that is not negative: √((|x| + |a|) / 2) is its greater part."""
    great = o.sqrt((abs(x) + abs(x.real)) * 0.5)
    zero = o.eq(great, 0.0)
    less = o.select(zero, 0.0, abs(x.imag) / (o.select(zero, 1.0, great) * 2.0))
    left = _below(x.real)
    return Complex(o.select(left, less, great), _signed(o.select(left, great, less), x.imag))


def rsqrt(x: Complex) -> Complex:
    """1 / √x."""
    root = sqrt(x)
    return _number(root, 1.0) / root


def cbrt(x: Complex) -> Complex:
    """x to the power ⅓."""
    return power(x, _number(x, 1 / 3))


def power(x: Complex, y: Complex) -> Complex:
    """exp(y · log x); 0 to a positive power is 0, to the power 0 it is 1."""
    result = exp(y * log(x))
    zero = o.eq(x.real, 0.0) & o.eq(x.imag, 0.0)
    none = o.eq(y.real, 0.0) & o.eq(y.imag, 0.0)
    known = zero & (none | (y.real > 0.0))
    return Complex(o.select(known, pick(none, 1.0, 0.0, x.real), result.real),
                   o.select(known, 0.0, result.imag))


def sign(x: Complex) -> Complex:
    """x / |x|; 0 of 0."""
    length = abs(x)
    safe = o.select(o.eq(length, 0.0), 1.0, length)
    return x.each(lambda p: p / safe)


def sigmoid(x: Complex) -> Complex:
    """1 / (1 + e⁻ˣ)."""
    return _number(x, 1.0) / (exp(-x) + 1.0)


# ---- circular and hyperbolic functions ---------------------------------------------------------

def sin(x: Complex) -> Complex:
    """sin a cosh b + i cos a sinh b."""
    return Complex(o.sin(x.real) * o.cosh(x.imag), o.cos(x.real) * o.sinh(x.imag))


def cos(x: Complex) -> Complex:
    """cos a cosh b − i sin a sinh b."""
    return Complex(o.cos(x.real) * o.cosh(x.imag), -(o.sin(x.real) * o.sinh(x.imag)))


def sinh(x: Complex) -> Complex:
    """sinh a cos b + i cosh a sin b."""
    return Complex(o.sinh(x.real) * o.cos(x.imag), o.cosh(x.real) * o.sin(x.imag))


def cosh(x: Complex) -> Complex:
    """cosh a cos b + i sinh a sin b."""
    return Complex(o.cosh(x.real) * o.cos(x.imag), o.sinh(x.real) * o.sin(x.imag))


def tanh(x: Complex) -> Complex:
    """(h(1 + t²) + i t / cosh² a) / (1 + h²t²), with h = tanh a and t = tan b."""
    h, t, c = o.tanh(x.real), o.tan(x.imag), o.cosh(x.real)
    under = 1.0 + h * h * t * t
    return Complex(h * (1.0 + t * t) / under, t / c / c / under)


def tan(x: Complex) -> Complex:
    """−i tanh(ix)."""
    return tanh(x.turned()).turned_back()


def asin(x: Complex) -> Complex:
    """The inverse of sin, with a real part of at most π/2."""
    angle, height = _inverse(x, False)
    return Complex(_signed(angle, x.real), _signed(height, x.imag))


def acos(x: Complex) -> Complex:
    """The inverse of cos, with a real part between 0 and π."""
    angle, height = _inverse(x, True)
    turned = o.select(_below(x.real), math.pi - angle, angle)
    return Complex(turned, _signed(height, -x.imag))


def _inverse(z: Complex, cosine: bool) -> tuple[Any, Any]:
    """The angle asin (or acos) and the height of |a| + i|b|: with distances r and s from −1 and 1,
    A = (r + s) / 2 and B = a / A, they are asin B and log(A + √(A² − 1))."""
    x, y = abs(z.real), abs(z.imag)
    over, under = x + 1.0, x - 1.0
    far, near = abs(Complex(over, y)), abs(Complex(under, y))
    a = (far + near) * 0.5
    b = x / a
    square = y * y

    def share(v: Any) -> Any:  # square / v, which is 0 where both are
        none = o.eq(v, 0.0)
        return o.select(none, 0.0, square / o.select(none, 1.0, v))
    first, second = share(far + over), o.select(x < 1.0, share(near - under), near + under)
    above = (first + second) * 0.5  # A − 1
    height = o.select(a <= 1.5, o.log1p(above + o.sqrt(above * (a + 1.0))),
                      o.log(a + o.sqrt(a * a - 1.0)))
    # √(A² − x²), with (A − x) of the two shares
    rest = o.select(x <= 1.0, first + (near - under), first + share(near + under))
    root = o.sqrt(0.5 * (a + x) * rest)
    steep = b > 0.6417
    if cosine:
        return o.select(steep, o.atan2(root, x), o.acos(o.min(b, 1.0))), height
    return o.select(steep, o.atan2(x, root), o.asin(o.min(b, 1.0))), height


def acosh(x: Complex) -> Complex:
    """acos x turned by i, so that the real part is not negative."""
    y = acos(x)
    return Complex(abs(y.imag), _signed(y.real, x.imag))


def asinh(x: Complex) -> Complex:
    """−i asin(ix)."""
    return asin(x.turned()).turned_back()


def atanh(x: Complex) -> Complex:
    """¼ log1p(4a / ((1 − a)² + b²)) + ½ i atan2(2b, (1 − a)(1 + a) − b²)."""
    left, square = 1.0 - x.real, x.imag * x.imag
    a = abs(x.real)
    apart = 1.0 - a
    grown = o.log1p(a * 4.0 / (apart * apart + square))
    angle = o.atan2(x.imag * 2.0, left * (1.0 + x.real) - square)
    return Complex(_signed(grown * 0.25, x.real), angle * 0.5)


def atan(x: Complex) -> Complex:
    """−i atanh(ix)."""
    return atanh(x.turned()).turned_back()


def atan2(y: Complex, x: Complex) -> Complex:
    """−i log((x + iy) / √(x² + y²))."""
    length = sqrt(x * x + y * y)
    return log((x + y.turned()) / length).turned_back()


def square(x: Complex) -> Complex:
    """x · x."""
    return x * x


def is_finite(x: Complex) -> Any:
    """Whether both parts are finite."""
    return o.is_finite(x.real) & o.is_finite(x.imag)


# what an op does with complex numbers, by its name; `names` says what the formats call it
FUNCTIONS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (
    exp, expm1, log, log1p, sqrt, rsqrt, sign, sigmoid, sin, cos, sinh, cosh, tanh, tan, asin, acos,
    acosh, asinh, atanh, atan, atan2, square, is_finite)} | {
    "abs": Complex.__abs__, "mul": Complex.__mul__, "div": Complex.__truediv__, "pow": power}
