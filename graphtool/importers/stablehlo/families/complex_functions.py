"""Functions of complex numbers, by real functions of both parts.

Formulas of inverse functions are those of Hull, Fairgrieve and Tang, Implementing the Complex
Arcsine and Arccosine Functions Using Exception Handling (1997), without its cases for overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.importers.stablehlo.driver.context import Context
from graphtool.importers.stablehlo.driver.parts import PAIRED, Pair
from graphtool.importers.stablehlo.driver.values import dtype_of
from graphtool.importers.stablehlo.families.complex_numbers import divide, multiply, paired, size
from graphtool.importers.stablehlo.families.elementwise import bits_as


class Real:
    """Arithmetic on real values of one context, so that formulas read as such."""

    def __init__(self, ctx: Context, row: Any) -> None:
        self.ctx, self.row = ctx, row

    def __getattr__(self, name: str) -> Callable[..., Any]:
        op = getattr(o, name)

        def apply(*xs: Any) -> Any:
            return self.ctx.apply(op, *(np.full((), x, self.row) if isinstance(x, (int, float))
                                        else x for x in xs))
        return apply

    def where(self, pred: Any, a: Any, b: Any) -> Any:
        """a where pred is true, else b; both may be numbers."""
        made = [np.full((), x, self.row) if isinstance(x, (int, float)) else x for x in (a, b)]
        return self.ctx.apply(o.select, pred, *made, kept=(0, 1, 2))

    def below(self, x: Any) -> Any:
        """Whether the sign bit is set."""
        whole = dtypes.BY_NAME[f"int{dtype_of(x).bits}"]
        return self.ctx.apply(o.lt, bits_as(self.ctx, x, whole), np.zeros((), whole.numpy))

    def signed(self, x: Any, sign: Any) -> Any:
        """x, which is not negative, with the sign of `sign`."""
        return self.where(self.below(sign), self.neg(x), x)

    def times(self, *xs: Any) -> Any:
        """The product of all."""
        out = xs[0]
        for x in xs[1:]:
            out = self.mul(out, x)
        return out


def _real(ctx: Context, x: Pair) -> Real:
    return Real(ctx, dtype_of(x.real).numpy)


# ---- exponentials and roots --------------------------------------------------------------------

@paired("exponential")
def exponential(ctx: Context, x: Pair) -> Pair:
    """eᵃ(cos b + i sin b); a real number stays real."""
    r = _real(ctx, x)
    grown = r.exp(x.real)
    real = r.eq(x.imag, 0.0)
    return Pair(r.mul(grown, r.cos(x.imag)), r.where(real, x.imag, r.mul(grown, r.sin(x.imag))))


@paired("exponential_minus_one")
def expm1(ctx: Context, x: Pair) -> Pair:
    """(eᵃ − 1) cos b − 2 sin²(b/2) + i eᵃ sin b."""
    r = _real(ctx, x)
    half = r.sin(r.mul(x.imag, 0.5))
    return Pair(r.sub(r.mul(r.expm1(x.real), r.cos(x.imag)), r.times(half, half, 2.0)),
                r.mul(r.exp(x.real), r.sin(x.imag)))


@paired("log")
def log(ctx: Context, x: Pair) -> Pair:
    """ln |x| + i arg x; near |x| = 1 by log1p, which loses no digits."""
    r = _real(ctx, x)
    big, small = (f(r.abs(x.real), r.abs(x.imag)) for f in (r.max, r.min))
    near = r.mul(0.5, r.log1p(r.add(r.mul(r.sub(big, 1.0), r.add(big, 1.0)), r.mul(small, small))))
    close = r.and_(r.gt(big, 0.5), r.lt(big, 1.5))
    return Pair(r.where(close, near, r.log(size(ctx, x))), r.atan2(x.imag, x.real))


@paired("log_plus_one")
def log1p(ctx: Context, x: Pair) -> Pair:
    """log(1 + x), by log1p(a² + 2a + b²) where that is small."""
    r = _real(ctx, x)
    moved = Pair(r.add(x.real, 1.0), x.imag)
    square = r.add(r.mul(x.real, r.add(x.real, 2.0)), r.mul(x.imag, x.imag))
    small = r.lt(r.abs(square), 0.5)
    return Pair(r.where(small, r.mul(r.log1p(square), 0.5), r.log(size(ctx, moved))),
                r.atan2(x.imag, moved.real))


@paired("sqrt")
def sqrt(ctx: Context, x: Pair) -> Pair:
    """The root with a real part that is not negative: √((|x| + |a|) / 2) is its greater part."""
    r = _real(ctx, x)
    a = r.abs(x.real)
    great = r.sqrt(r.mul(r.add(size(ctx, x), a), 0.5))
    zero = r.eq(great, 0.0)
    less = r.where(zero, 0.0, r.div(r.abs(x.imag), r.mul(r.where(zero, 1.0, great), 2.0)))
    left = r.below(x.real)
    return Pair(r.where(left, less, great), r.signed(r.where(left, great, less), x.imag))


@paired("rsqrt")
def rsqrt(ctx: Context, x: Pair) -> Pair:
    """1 / √x."""
    root = sqrt(ctx, x)
    return divide(ctx, _number(root, 1.0, ctx), root)


def _number(like: Pair, value: float, ctx: Context) -> Pair:
    r = _real(ctx, like)
    zero = r.mul(like.real, 0.0)
    return Pair(r.where(r.eq(zero, zero), value, value), r.where(r.eq(zero, zero), 0.0, 0.0))


@paired("cbrt")
def cbrt(ctx: Context, x: Pair) -> Pair:
    """x to the power ⅓."""
    return power(ctx, x, _number(x, 1 / 3, ctx))


@paired("power")
def power(ctx: Context, x: Pair, y: Pair) -> Pair:
    """exp(y · log x); 0 to a positive power is 0, to the power 0 it is 1."""
    r = _real(ctx, x)
    found = exponential(ctx, multiply(ctx, y, log(ctx, x)))
    zero = r.and_(r.eq(x.real, 0.0), r.eq(x.imag, 0.0))
    none = r.and_(r.eq(y.real, 0.0), r.eq(y.imag, 0.0))
    known = r.and_(zero, r.or_(none, r.gt(y.real, 0.0)))
    return Pair(r.where(known, r.where(none, 1.0, 0.0), found.real),
                r.where(known, 0.0, found.imag))


@paired("sign")
def sign(ctx: Context, x: Pair) -> Pair:
    """x / |x|; 0 of 0."""
    r = _real(ctx, x)
    length = size(ctx, x)
    safe = r.where(r.eq(length, 0.0), 1.0, length)
    return Pair(r.div(x.real, safe), r.div(x.imag, safe))


@paired("logistic")
def logistic(ctx: Context, x: Pair) -> Pair:
    """1 / (1 + e⁻ˣ)."""
    r = _real(ctx, x)
    grown = exponential(ctx, Pair(r.neg(x.real), r.neg(x.imag)))
    return divide(ctx, _number(x, 1.0, ctx), Pair(r.add(grown.real, 1.0), grown.imag))


def _square(ctx: Context, x: Pair) -> Pair:
    return multiply(ctx, x, x)


# ---- circular and hyperbolic functions ---------------------------------------------------------

@paired("sine")
def sine(ctx: Context, x: Pair) -> Pair:
    """sin a cosh b + i cos a sinh b."""
    r = _real(ctx, x)
    return Pair(r.mul(r.sin(x.real), r.cosh(x.imag)), r.mul(r.cos(x.real), r.sinh(x.imag)))


@paired("cosine")
def cosine(ctx: Context, x: Pair) -> Pair:
    """cos a cosh b − i sin a sinh b."""
    r = _real(ctx, x)
    return Pair(r.mul(r.cos(x.real), r.cosh(x.imag)),
                r.neg(r.mul(r.sin(x.real), r.sinh(x.imag))))


def sinh(ctx: Context, x: Pair) -> Pair:
    """sinh a cos b + i cosh a sin b."""
    r = _real(ctx, x)
    return Pair(r.mul(r.sinh(x.real), r.cos(x.imag)), r.mul(r.cosh(x.real), r.sin(x.imag)))


def cosh(ctx: Context, x: Pair) -> Pair:
    """cosh a cos b + i sinh a sin b."""
    r = _real(ctx, x)
    return Pair(r.mul(r.cosh(x.real), r.cos(x.imag)), r.mul(r.sinh(x.real), r.sin(x.imag)))


@paired("tanh")
def tanh(ctx: Context, x: Pair) -> Pair:
    """(h(1 + t²) + i t / cosh² a) / (1 + h²t²), with h = tanh a and t = tan b."""
    r = _real(ctx, x)
    h, t, c = r.tanh(x.real), r.tan(x.imag), r.cosh(x.real)
    under = r.add(1.0, r.times(h, h, t, t))
    return Pair(r.div(r.mul(h, r.add(1.0, r.mul(t, t))), under),
                r.div(r.div(r.div(t, c), c), under))


@paired("tan")
def tan(ctx: Context, x: Pair) -> Pair:
    """−i tanh(ix)."""
    r = _real(ctx, x)
    y = tanh(ctx, Pair(r.neg(x.imag), x.real))
    return Pair(y.imag, r.neg(y.real))


def asin(ctx: Context, x: Pair) -> Pair:
    """The inverse of sin, with a real part of at most π/2."""
    r, angle, height = _inverse(ctx, x, False)
    return Pair(r.signed(angle, x.real), r.signed(height, x.imag))


def acos(ctx: Context, x: Pair) -> Pair:
    """The inverse of cos, with a real part between 0 and π."""
    r, angle, height = _inverse(ctx, x, True)
    turned = r.where(r.below(x.real), r.sub(float(np.pi), angle), angle)
    return Pair(turned, r.signed(height, r.neg(x.imag)))


def _inverse(ctx: Context, z: Pair, cosine: bool) -> tuple[Real, Any, Any]:
    """The angle asin (or acos) and the height of |a| + i|b|: with distances r and s from −1 and 1,
    A = (r + s) / 2 and B = a / A, they are asin B and log(A + √(A² − 1))."""
    r = _real(ctx, z)
    x, y = r.abs(z.real), r.abs(z.imag)
    over, under = r.add(x, 1.0), r.sub(x, 1.0)
    far, near = size(ctx, Pair(over, y)), size(ctx, Pair(under, y))
    a = r.mul(r.add(far, near), 0.5)
    b = r.div(x, a)
    square = r.mul(y, y)

    def share(v: Any) -> Any:  # square / v, which is 0 where both are
        return r.where(r.eq(v, 0.0), 0.0, r.div(square, r.where(r.eq(v, 0.0), 1.0, v)))
    inside = r.lt(x, 1.0)
    first, second = share(r.add(far, over)), r.where(
        inside, share(r.sub(near, under)), r.add(near, under))
    above = r.mul(r.add(first, second), 0.5)  # A − 1
    height = r.where(r.le(a, 1.5), r.log1p(r.add(above, r.sqrt(r.mul(above, r.add(a, 1.0))))),
                     r.log(r.add(a, r.sqrt(r.sub(r.mul(a, a), 1.0)))))
    # √(A² − x²), with (A − x) of the two shares
    rest = r.where(r.le(x, 1.0), r.add(first, r.sub(near, under)),
                   r.add(first, share(r.add(near, under))))
    root = r.sqrt(r.times(0.5, r.add(a, x), rest))
    steep = r.gt(b, 0.6417)
    if cosine:
        return r, r.where(steep, r.atan2(root, x), r.acos(r.min(b, 1.0))), height
    return r, r.where(steep, r.atan2(x, root), r.asin(r.min(b, 1.0))), height


def acosh(ctx: Context, x: Pair) -> Pair:
    """acos x turned by i, so that the real part is not negative."""
    r, y = _real(ctx, x), acos(ctx, x)
    return Pair(r.abs(y.imag), r.signed(y.real, x.imag))


def asinh(ctx: Context, x: Pair) -> Pair:
    """−i asin(ix)."""
    r = _real(ctx, x)
    y = asin(ctx, Pair(r.neg(x.imag), x.real))
    return Pair(y.imag, r.neg(y.real))


def atanh(ctx: Context, x: Pair) -> Pair:
    """¼ log1p(4a / ((1 − a)² + b²)) + ½ i atan2(2b, (1 − a)(1 + a) − b²)."""
    r = _real(ctx, x)
    left, square = r.sub(1.0, x.real), r.mul(x.imag, x.imag)
    a = r.abs(x.real)
    apart = r.sub(1.0, a)
    grown = r.log1p(r.div(r.mul(a, 4.0), r.add(r.mul(apart, apart), square)))
    angle = r.atan2(r.mul(x.imag, 2.0), r.sub(r.mul(left, r.add(1.0, x.real)), square))
    return Pair(r.signed(r.mul(grown, 0.25), x.real), r.mul(angle, 0.5))


def atan(ctx: Context, x: Pair) -> Pair:
    """−i atanh(ix)."""
    r = _real(ctx, x)
    y = atanh(ctx, Pair(r.neg(x.imag), x.real))
    return Pair(y.imag, r.neg(y.real))


@paired("atan2")
def atan2(ctx: Context, y: Pair, x: Pair) -> Pair:
    """−i log((x + iy) / √(x² + y²))."""
    r = _real(ctx, x)
    xx, yy = multiply(ctx, x, x), multiply(ctx, y, y)
    length = sqrt(ctx, Pair(r.add(xx.real, yy.real), r.add(xx.imag, yy.imag)))
    turned = Pair(r.sub(x.real, y.imag), r.add(x.imag, y.real))
    found = log(ctx, divide(ctx, turned, length))
    return Pair(found.imag, r.neg(found.real))


@paired("is_finite")
def is_finite(ctx: Context, x: Pair) -> Any:
    """Whether both parts are finite."""
    return ctx.apply(o.and_, ctx.apply(o.is_finite, x.real), ctx.apply(o.is_finite, x.imag))


for _fn in (sinh, cosh, asin, acos, acosh, asinh, atanh, atan, tan):
    PAIRED[f"chlo.{_fn.__name__}"] = _fn
PAIRED["chlo.square"] = _square
