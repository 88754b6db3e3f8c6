"""Complex arithmetic and Fourier transforms, on pairs of real tensors (real, imaginary)."""

from __future__ import annotations

import math
from typing import Any

from graphtool import ops as o
from graphtool.importers.torch.driver.complex_pairs import Pair, modulus, pair, paired, real_of
from graphtool.importers.torch.driver.context import Context, Missing, axis_of
from graphtool.importers.torch.driver.table import HANDLERS
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim

# ---- parts -------------------------------------------------------------------------------------


@paired("view_as_real", "view_as_real_copy")
def view_as_real(c: Context, self: Pair) -> Any:
    """stack(re, im) along a new last axis of size 2."""
    return o.stack(self.real, self.imag, axis=self.ndim)


@paired("view_as_complex", "view_as_complex_copy")
def view_as_complex(c: Context, self: Tracer) -> Any:
    """The pair (x[..., 0], x[..., 1]) of a real tensor whose last axis is 2."""
    n = self.ndim - 1
    return Pair(*(c.reshape(c.window(self, n, i, i + 1), self.shape[:-1]) for i in (0, 1)))


@paired("complex")
def complex_(c: Context, real: Tracer, imag: Tracer) -> Any:
    """The pair (real, imag), both broadcast to the shape of the result."""
    return Pair(*(c.broadcast(x, c.out.shape) for x in (real, imag)))


@paired("polar")
def polar(c: Context, abs: Tracer, angle: Tracer) -> Any:
    """(r·cos φ, r·sin φ)."""
    return Pair(o.mul(abs, o.cos(angle)), o.mul(abs, o.sin(angle)))


@paired("real")
def real(c: Context, self: Pair) -> Any:
    """The real part; no op."""
    return self.real


@paired("imag")
def imag(c: Context, self: Pair) -> Any:
    """The imaginary part; no op."""
    return self.imag


@paired("conj", "_conj", "_conj_copy", "_conj_physical", "conj_physical")
def conj(c: Context, self: Pair) -> Any:
    """(re, −im)."""
    return Pair(self.real, o.neg(self.imag))


@paired("resolve_conj", "resolve_neg")
def resolve(c: Context, self: Pair) -> Any:
    """The operand unchanged: conjugates and negatives are computed at once here."""
    return self


@paired("_to_copy", "to", "_to_dense")
def to_copy(c: Context, self: Any, *_: Any, **__: Any) -> Any:
    """A cast: a real tensor gains an imaginary part of 0; a cast to a real type drops it."""
    if c.complex_out:
        return pair(c, self, c.out.dtype)
    return c.cast(self.real, c.out.dtype)


@paired("full", "full_like", "scalar_tensor", "fill", "empty")
def filled(c: Context, *args: Any, **_: Any) -> Any:
    """Every element is the last operand if that is a number, else 0."""
    number = args[-1] if isinstance(args[-1], (int, float, complex)) else 0
    if not c.complex_out:
        return c.full(c.out.shape, number, c.out.dtype)
    return Pair(*(c.full(c.out.shape, x, c.out.dtype) for x in (
        complex(number).real, complex(number).imag)))


@paired("constant_pad_nd")
def constant_pad_nd(c: Context, self: Pair, pad: Any, value: Any = 0) -> Any:
    """Both parts padded: the real one with re(value), the imaginary one with im(value)."""
    plain, number = HANDLERS["aten.constant_pad_nd"], complex(value)
    return Pair(plain(c, self.real, pad, number.real), plain(c, self.imag, pad, number.imag))


# ---- arithmetic --------------------------------------------------------------------------------

def _operands(c: Context, a: Any, b: Any) -> tuple[Pair, Pair]:
    return pair(c, a, c.out.dtype), pair(c, b, c.out.dtype)


def _spread(c: Context, x: Pair) -> Pair:
    return Pair(c.broadcast(x.real, c.out.shape), c.broadcast(x.imag, c.out.shape))


@paired("add")
def add(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a + alpha·b, part by part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other if alpha == 1 else mul(c, other, alpha))
    return _spread(c, Pair(o.add(a.real, b.real), o.add(a.imag, b.imag)))


@paired("sub", "subtract")
def sub(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a − alpha·b, part by part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other if alpha == 1 else mul(c, other, alpha))
    return _spread(c, Pair(o.sub(a.real, b.real), o.sub(a.imag, b.imag)))


@paired("rsub")
def rsub(c: Context, self: Any, other: Any, alpha: Any = 1) -> Any:
    """b − alpha·a: sub with its operands exchanged."""
    return sub(c, other, self, alpha=alpha)


@paired("mul", "multiply")
def mul(c: Context, self: Any, other: Any) -> Any:
    """(ac − bd, ad + bc); a real factor multiplies both parts."""
    for x, y in ((self, other), (other, self)):
        factor = real_of(y)
        if factor is not None and isinstance(x, Pair):
            by = c.cast(factor, x.dtype)
            return Pair(o.mul(x.real, by), o.mul(x.imag, by))
    a, b = _operands(c, self, other)
    return _times(a, b)


def _times(a: Pair, b: Pair, op: Any = o.mul) -> Pair:
    return Pair(o.sub(op(a.real, b.real), op(a.imag, b.imag)),
                o.add(op(a.real, b.imag), op(a.imag, b.real)))


@paired("div", "divide", "true_divide")
def div(c: Context, self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """a·b̄ / |b|²; a real divisor divides both parts."""
    factor = real_of(other)
    if factor is not None:
        by = c.cast(factor, self.dtype)
        return Pair(o.div(self.real, by), o.div(self.imag, by))
    a, b = _operands(c, self, other)
    return _over(a, b)


def _over(a: Pair, b: Pair) -> Pair:
    """a·b̄ / |b|², with b divided by max(|re b|, |im b|) first, so that |b|² cannot overflow."""
    big = o.max(o.abs(b.real), o.abs(b.imag))
    scale = o.select(o.eq(big, 0.0), 1.0, big)
    unit = Pair(o.div(b.real, scale), o.neg(o.div(b.imag, scale)))
    size = o.mul(o.add(o.mul(unit.real, unit.real), o.mul(unit.imag, unit.imag)), scale)
    top = _times(a, unit)
    return Pair(o.div(top.real, size), o.div(top.imag, size))


@paired("reciprocal")
def reciprocal(c: Context, self: Pair) -> Any:
    """1 / z by complex division."""
    return _over(pair(c, 1.0, self.dtype), self)


@paired("abs")
def abs_(c: Context, self: Pair) -> Any:
    """√(re² + im²), scaled so that squares do not overflow."""
    return modulus(self)


@paired("angle")
def angle(c: Context, self: Pair) -> Any:
    """atan2(im, re), in radians."""
    return o.atan2(self.imag, self.real)


@paired("sgn")
def sgn(c: Context, self: Pair) -> Any:
    """z / |z|, and 0 for z = 0."""
    size = modulus(self)
    by = o.select(o.eq(size, 0.0), 1.0, size)
    return Pair(o.div(self.real, by), o.div(self.imag, by))


@paired("square")
def square(c: Context, self: Pair) -> Any:
    """z·z by complex multiplication."""
    return _times(self, self)


@paired("exp")
def exp(c: Context, self: Pair) -> Any:
    """exp(re)·(cos im, sin im)."""
    return polar(c, o.exp(self.real), self.imag)


@paired("log")
def log(c: Context, self: Pair) -> Any:
    """(log |z|, atan2(im, re))."""
    return Pair(o.log(modulus(self)), o.atan2(self.imag, self.real))


@paired("sqrt")
def sqrt(c: Context, self: Pair) -> Any:
    """√|z| at half the angle: the principal root."""
    return polar(c, o.sqrt(modulus(self)), o.mul(o.atan2(self.imag, self.real), 0.5))


@paired("pow")
def pow(c: Context, self: Any, exponent: Any) -> Any:
    """z·z·… for an exponent of 1 to 4, else exp(b·log a)."""
    n = real_of(exponent)
    if isinstance(n, (int, float)) and n in (1, 2, 3, 4):
        y = self
        for _ in range(int(n) - 1):
            y = _times(y, self)
        return y
    a, b = _operands(c, self, exponent)
    return exp(c, _times(log(c, a), b))


# ---- products of matrices ----------------------------------------------------------------------

def _product(plain: str) -> Any:
    def fn(c: Context, self: Any, other: Any) -> Any:
        def by(a: Tracer, b: Tracer) -> Any:
            return HANDLERS[plain](c, a, b)
        if isinstance(self, Pair) and isinstance(other, Pair):
            return _times(self, other, by)
        if isinstance(self, Pair):
            return Pair(by(self.real, other), by(self.imag, other))
        return Pair(by(self, other.real), by(self, other.imag))
    return fn


for _name in ("mm", "bmm", "matmul", "mv", "dot", "outer"):
    paired(_name)(_product(f"aten.{_name}"))


@paired("vdot")
def vdot(c: Context, self: Pair, other: Pair) -> Any:
    """Σ conj(a)·b of two vectors; rank 0."""
    return _product("aten.dot")(c, conj(c, self), other)


# ---- comparison, choice ------------------------------------------------------------------------

@paired("eq")
def eq(c: Context, self: Any, other: Any) -> Any:
    """bool: both parts are equal."""
    kind = next(x.dtype for x in (self, other) if isinstance(x, Pair))
    a, b = pair(c, self, kind), pair(c, other, kind)
    return o.and_(o.eq(a.real, b.real), o.eq(a.imag, b.imag))


@paired("ne")
def ne(c: Context, self: Any, other: Any) -> Any:
    """bool: a part differs."""
    return o.not_(eq(c, self, other))


@paired("where")
def where(c: Context, condition: Tracer, self: Any, other: Any) -> Any:
    """select(condition, a, b) of each part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other)
    return _spread(c, Pair(o.select(condition, a.real, b.real),
                           o.select(condition, a.imag, b.imag)))


@paired("isnan")
def isnan(c: Context, self: Pair) -> Any:
    """bool: a part is NaN."""
    return o.or_(o.is_nan(self.real), o.is_nan(self.imag))


@paired("isfinite")
def isfinite(c: Context, self: Pair) -> Any:
    """bool: both parts are finite."""
    return o.and_(o.is_finite(self.real), o.is_finite(self.imag))


# ---- Fourier transforms ------------------------------------------------------------------------

def _last(c: Context, x: Any, axis: int, f: Any) -> Pair:
    """f applied along one axis: the axis is moved last, f is called, the axis is moved back."""
    n = (x if isinstance(x, Tracer) else x.real).ndim
    perm = [*(i for i in range(n) if i != axis), axis]
    back = [perm.index(i) for i in range(n)]
    moved = (c.transpose(x, perm), None) if isinstance(x, Tracer) else (
        c.transpose(x.real, perm), c.transpose(x.imag, perm))
    real, imag = f(*moved)
    return Pair(c.transpose(real, back), c.transpose(imag, back))


def _length(n: Dim) -> int:
    if not isinstance(n, int):
        raise Missing("a Fourier transform of symbolic length is not supported; fix that size "
                      "for the export")
    return n


def _scaled(x: Any, dims: list[Dim], mode: int) -> Any:
    """x divided by 1 (mode 0), by √points (mode 1) or by the number of points (mode 2)."""
    points = math.prod(_length(d) for d in dims)
    if not mode or points == 1:
        return x
    by = 1 / (math.sqrt(points) if mode == 1 else points)
    return Pair(o.mul(x.real, by), o.mul(x.imag, by)) if isinstance(x, Pair) else o.mul(x, by)


def _along(c: Context, x: Any, axes: list[int], inverse: bool) -> Any:
    for axis in axes:
        _length(x.shape[axis])
        x = _last(c, x, axis, lambda re, im: o.fourier(re, im, inverse=inverse))
    return x


@paired("_fft_c2c")
def fft_c2c(c: Context, self: Pair, dim: tuple[int, ...], normalization: int,
            forward: bool) -> Any:
    """Complex Fourier transform along each axis of `dim`, forward or inverse, then the scale."""
    axes = [axis_of(d, self.ndim) for d in dim]
    sizes = [self.shape[a] for a in axes]
    return _scaled(_along(c, self, axes, not forward), sizes, normalization)


@paired("_fft_r2c")
def fft_r2c(c: Context, self: Tracer, dim: tuple[int, ...], normalization: int,
            onesided: bool) -> Any:
    """Real to complex: `dim[-1]` first (its half with `onesided`), then the other axes."""
    axes = [axis_of(d, self.ndim) for d in dim]
    sizes = [_length(self.shape[a]) for a in axes]
    half = _last(c, self, axes[-1], lambda re, im: o.fourier(re, im, half=onesided))
    return _scaled(_along(c, half, axes[:-1], False), list(sizes), normalization)


@paired("_fft_c2r")
def fft_back(c: Context, self: Pair, dim: tuple[int, ...], normalization: int,
             last_dim_size: Dim) -> Any:
    """Complex to real: inverse along all axes but `dim[-1]`, then n/2 + 1 terms to n reals."""
    axes = [axis_of(d, self.ndim) for d in dim]
    size, last = _length(last_dim_size), axes[-1]
    x = _along(c, self, axes[:-1], True)
    perm = [*(i for i in range(x.ndim) if i != last), last]
    half = [c.window(c.transpose(p, perm), x.ndim - 1, 0, size // 2 + 1) for p in (x.real, x.imag)]
    y = c.transpose(o.fourier_real(*half, size=size), [perm.index(i) for i in range(x.ndim)])
    return _scaled(y, [*(self.shape[a] for a in axes[:-1]), size], normalization)
