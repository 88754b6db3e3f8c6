"""Complex arithmetic and Fourier transforms."""

from __future__ import annotations

import math
from typing import Any

from graphtool.front import complex_functions as functions
from graphtool.front.complex import Complex, combined
from graphtool.front.names import read
from graphtool.importers.torch.driver.complex_pairs import pair, paired, real_of
from graphtool.importers.torch.driver.table import HANDLERS
from graphtool.importers.torch.kit import Array, Context, Dim, axis_of, o, product

# ---- parts -------------------------------------------------------------------------------------


@paired("view_as_real", "view_as_real_copy")
def view_as_real(c: Context, self: Complex) -> Any:
    """stack(re, im) along a new last axis of size 2."""
    return o.stack(self.real, self.imag, axis=self.ndim)


@paired("view_as_complex", "view_as_complex_copy")
def view_as_complex(c: Context, self: Array) -> Any:
    """The pair (x[..., 0], x[..., 1]) of a real tensor whose last axis is 2."""
    return Complex(*(self.entry(self.ndim - 1, i) for i in (0, 1)))


@paired("complex")
def complex_(c: Context, real: Array, imag: Array) -> Any:
    """The pair (real, imag), both broadcast to the shape of the result."""
    return Complex(*(x.broadcast(c.out.shape) for x in (real, imag)))


@paired("polar")
def polar(c: Context, abs: Array, angle: Array) -> Any:
    """(r·cos φ, r·sin φ)."""
    return Complex(abs * o.cos(angle), abs * o.sin(angle))


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
    return Complex(*(c.full(c.out.shape, x, c.out.dtype) for x in (
        complex(number).real, complex(number).imag)))


@paired("constant_pad_nd")
def constant_pad_nd(c: Context, self: Complex, pad: Any, value: Any = 0) -> Any:
    """Both parts padded: the real one with re(value), the imaginary one with im(value)."""
    plain, number = HANDLERS["aten.constant_pad_nd"], complex(value)
    return Complex(plain(c, self.real, pad, number.real), plain(c, self.imag, pad, number.imag))


# ---- arithmetic --------------------------------------------------------------------------------

def _operands(c: Context, a: Any, b: Any) -> tuple[Complex, Complex]:
    return pair(c, a, c.out.dtype), pair(c, b, c.out.dtype)


def _spread(c: Context, x: Complex) -> Complex:
    return x.each(lambda part: part.broadcast(c.out.shape))


@paired("add")
def add(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a + alpha·b, part by part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other if alpha == 1 else mul(c, other, alpha))
    return _spread(c, a + b)


@paired("sub", "subtract")
def sub(c: Context, self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """a − alpha·b, part by part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other if alpha == 1 else mul(c, other, alpha))
    return _spread(c, a - b)


@paired("rsub")
def rsub(c: Context, self: Any, other: Any, alpha: Any = 1) -> Any:
    """b − alpha·a: sub with its operands exchanged."""
    return sub(c, other, self, alpha=alpha)


@paired("mul", "multiply")
def mul(c: Context, self: Any, other: Any) -> Any:
    """(ac − bd, ad + bc); a real factor multiplies both parts."""
    for x, y in ((self, other), (other, self)):
        factor = real_of(y)
        if factor is not None and isinstance(x, Complex):
            return x * c.cast(factor, x.dtype)
    a, b = _operands(c, self, other)
    return a * b


@paired("div", "divide", "true_divide")
def div(c: Context, self: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """a·b̄ / |b|²; a real divisor divides both parts."""
    factor = real_of(other)
    if factor is not None:
        return self / c.cast(factor, self.dtype)
    a, b = _operands(c, self, other)
    return a / b


@paired("reciprocal")
def reciprocal(c: Context, self: Complex) -> Any:
    """1 / z by complex division."""
    return pair(c, 1.0, self.dtype) / self


# of one operand; conjugates and negatives are computed at once here
_UNARY: dict[tuple[str, ...], Any] = {
    ("real",): lambda x: x.real, ("imag",): lambda x: x.imag,
    ("conj", "_conj", "_conj_copy", "_conj_physical", "conj_physical"): Complex.conj,
    ("resolve_conj", "resolve_neg"): lambda x: x,
    ("angle",): lambda x: o.atan2(x.imag, x.real), ("sgn",): functions.sign,
    ("isnan",): lambda x: o.is_nan(x.real) | o.is_nan(x.imag)}
_UNARY |= {(name,): functions.FUNCTIONS[w.op] for name, (w, *_) in read("aten").items()
           if w.op in functions.FUNCTIONS and w.count == 1}
for _names, _fn in _UNARY.items():
    paired(*_names)(lambda c, self, fn=_fn: fn(self))


@paired("pow")
def pow(c: Context, self: Any, exponent: Any) -> Any:
    """z·z·… for an exponent of 1 to 4, else exp(b·log a)."""
    n = real_of(exponent)
    if isinstance(n, (int, float)) and n in (1, 2, 3, 4):
        y = self
        for _ in range(int(n) - 1):
            y = y * self
        return y
    return functions.power(*_operands(c, self, exponent))


# ---- products of matrices ----------------------------------------------------------------------

def _product(plain: str) -> Any:
    def fn(c: Context, self: Any, other: Any) -> Any:
        def by(a: Array, b: Array) -> Any:
            return HANDLERS[plain](c, a, b)
        if isinstance(self, Complex) and isinstance(other, Complex):
            return combined(by, self, other)
        if isinstance(self, Complex):
            return self.each(lambda part: by(part, other))
        return other.each(lambda part: by(self, part))
    return fn


for _name in ("mm", "bmm", "matmul", "mv", "dot", "outer"):
    paired(_name)(_product(f"aten.{_name}"))


@paired("vdot")
def vdot(c: Context, self: Complex, other: Complex) -> Any:
    """Σ conj(a)·b of two vectors; rank 0."""
    return _product("aten.dot")(c, self.conj(), other)


# ---- comparison, choice ------------------------------------------------------------------------

@paired("eq")
def eq(c: Context, self: Any, other: Any) -> Any:
    """bool: both parts are equal."""
    kind = next(x.dtype for x in (self, other) if isinstance(x, Complex))
    a, b = pair(c, self, kind), pair(c, other, kind)
    return o.eq(a.real, b.real) & o.eq(a.imag, b.imag)


@paired("ne")
def ne(c: Context, self: Any, other: Any) -> Any:
    """bool: a part differs."""
    return ~eq(c, self, other)


@paired("where")
def where(c: Context, condition: Array, self: Any, other: Any) -> Any:
    """select(condition, a, b) of each part, broadcast to the shape of the result."""
    a, b = _operands(c, self, other)
    return _spread(c, a.where(condition, b))


# ---- Fourier transforms ------------------------------------------------------------------------

def _last(x: Any, axis: int, f: Any) -> Complex:
    """f applied along one axis: the axis is moved last, f is called, the axis is moved back."""
    parts = (x, None) if isinstance(x, Array) else (x.real, x.imag)
    result = f(*(p if p is None else p.moveaxis(axis, -1) for p in parts))
    return Complex(*(y.moveaxis(-1, axis) for y in result))


def _scaled(c: Context, x: Any, dims: list[Dim], mode: int) -> Any:
    """x divided by 1 (mode 0), by √points (mode 1) or by the number of points (mode 2)."""
    points = product(dims)
    if not mode or points == 1:
        return x
    if isinstance(points, int):
        return x * (1 / (math.sqrt(points) if mode == 1 else points))
    count = c.number(points, x.dtype)
    return x * (1.0 / (o.sqrt(count) if mode == 1 else count))


def _along(x: Any, axes: list[int], inverse: bool) -> Any:
    for axis in axes:
        x = _last(x, axis, lambda re, im: o.fourier(re, im, inverse=inverse))
    return x


@paired("_fft_c2c")
def fft_c2c(c: Context, self: Complex, dim: tuple[int, ...], normalization: int,
            forward: bool) -> Any:
    """Complex Fourier transform along each axis of `dim`, forward or inverse, then the scale."""
    axes = [axis_of(d, self.ndim) for d in dim]
    sizes = [self.shape[a] for a in axes]
    return _scaled(c, _along(self, axes, not forward), sizes, normalization)


@paired("_fft_r2c")
def fft_r2c(c: Context, self: Array, dim: tuple[int, ...], normalization: int,
            onesided: bool) -> Any:
    """Real to complex: `dim[-1]` first (its half with `onesided`), then the other axes."""
    axes = [axis_of(d, self.ndim) for d in dim]
    sizes = [self.shape[a] for a in axes]
    half = _last(self, axes[-1], lambda re, im: o.fourier(re, im, half=onesided))
    return _scaled(c, _along(half, axes[:-1], False), list(sizes), normalization)


@paired("_fft_c2r")
def fft_back(c: Context, self: Complex, dim: tuple[int, ...], normalization: int,
             last_dim_size: Dim) -> Any:
    """Complex to real: inverse along all axes but `dim[-1]`, then n/2 + 1 terms to n reals."""
    axes = [axis_of(d, self.ndim) for d in dim]
    size, last = last_dim_size, axes[-1]
    x = _along(self, axes[:-1], True)
    half = [p.moveaxis(last, -1).take(-1, 0, size // 2 + 1) for p in (x.real, x.imag)]
    y = o.fourier_real(*half, size=size).moveaxis(-1, last)
    return _scaled(c, y, [*(self.shape[a] for a in axes[:-1]), size], normalization)
