"""Fourier transforms along the last axis; a complex number is a pair of tensors.

A line whose length has the factors 2, 3 and 5 only has a kernel. Of other lengths, a long line is
transformed by two factors of its length (Cooley and Tukey), and a short one is multiplied by a
table of cosines and sines. So is a line of open length n, which takes 4·n² operations for each real
line: a run computes n cosines and sines, and the table repeats them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.facets import Lowering
from graphtool.ir.graph import TensorType
from graphtool.ir.trace import like
from graphtool.ops.common import composite, need
from graphtool.symbolic import Dim, known, product, typical_size

_TABLE = 256  # up to this length, a line is transformed by one product
_LEAST = 20  # a product is as fast as the kernel for lines of fewer elements
_MOST = 4096  # elements of a line in the kernel, whose scratch should stay in a cache
_MANY = 16  # lines that the kernel transforms side by side


def _types(real: TensorType, imag: TensorType | None = None, *, inverse: bool = False,
           half: bool = False) -> tuple[TensorType, TensorType]:
    need(real.rank > 0 and real.dtype.is_float and imag in (None, real),
         f"the real and the imaginary part must be float tensors of the same type, got {real} and "
         f"{imag}")
    n = real.shape[-1]
    need(known(n, "<=", 0) is not True, f"a transform needs a line of 1 element or more, not {n}")
    out = TensorType(real.dtype, (*real.shape[:-1], n // 2 + 1 if half else n))
    return out, out


def is_smooth(n: int) -> bool:
    """Whether n has the factors 2, 3 and 5 only."""
    for factor in (2, 3, 5):
        while n > 1 and n % factor == 0:
            n //= factor
    return n == 1


def _vjp(g: Any, _y: Any, real: Any, imag: Any = None, *, inverse: bool, half: bool) -> Any:
    # y = F·x has the gradient x̄ = Fᴴ·ḡ, and Fᴴ is F with the other sign of the exponent
    gr, gi = (None if p is None else _filled_up(p, real.shape[-1]) for p in g)
    if gr is None and gi is None:
        return None, None
    other = gr if gi is None else gi
    assert other is not None
    zero = o.mul(other, 0.0)
    re, im = o.fourier(zero if gr is None else gr, zero if gi is None else gi, inverse=not inverse)
    return re, None if imag is None else im


def _length(real: TensorType, *_: Any, **__: Any) -> tuple[Dim]:
    return (real.shape[-1],)


def _filled_up(x: Any, n: Dim) -> Any:
    short = n - x.shape[-1]
    return x if short == 0 else o.pad(x, lo=(0,) * x.ndim, hi=(*(0,) * (x.ndim - 1), short))


@composite(types=_types, vjp=_vjp, filled=_length)
def fourier(real: Any, imag: Any = None, *, inverse: bool = False, half: bool = False) -> Any:
    """Σₜ x[t]·exp(∓2πi·k·t/n) for each k, or for the first ⌊n/2⌋ + 1 of them with `half`; the
    sign is + with `inverse` → (real, imaginary part). The result is not divided by n. A line of
    open length is multiplied by a table, which takes 4·n² operations for a real line."""
    n = real.shape[-1]
    if _has_kernel(real):
        parts = np.stack(_circle(np.arange(n), n)).astype(real.dtype.numpy)
        result = o.fft(real, imag, real.builder.constant(parts), inverse=inverse, half=half)
        return tuple(result)
    return _by_products(real, imag, inverse, half)


def _has_kernel(x: Any) -> bool:
    """Whether the kernel is the fastest way: a long line alone is cut in pieces before."""
    n, lines = x.shape[-1], typical_size(product(x.shape[:-1]))
    return (isinstance(n, int) and x.dtype in (dtypes.float32, dtypes.float64)
            and _LEAST <= n <= _MOST and is_smooth(n)
            and (lines >= _MANY or n <= _TABLE or _factor(n) == 1))


def _fft_types(real: TensorType, imag: TensorType | None, table: TensorType, *,
               inverse: bool = False, half: bool = False) -> tuple[TensorType, TensorType]:
    out = _types(real, imag, inverse=inverse, half=half)
    n = real.shape[-1]
    need(isinstance(n, int) and is_smooth(n) and real.dtype in (dtypes.float32, dtypes.float64)
         and table == TensorType(real.dtype, (2, n)),
         f"a line of f32 or f64 with the factors 2, 3 and 5 only, and a table for it expected, got "
         f"{real} and {table}")
    return out


@composite(types=_fft_types, lowering=Lowering.STATEMENTS)
def fft(real: Any, imag: Any, table: Any, *, inverse: bool = False, half: bool = False) -> Any:
    """`fourier` by a kernel. The table has the cosines of 2πk/n for each k, then the sines."""
    return _by_products(real, imag, inverse, half)


def _by_products(real: Any, imag: Any, inverse: bool, half: bool) -> Any:
    """The transform by products with tables, in two steps if the line is long."""
    n, sign = real.shape[-1], 1 if inverse else -1
    rows = _factor(n) if isinstance(n, int) and n > _TABLE else 1
    if rows > 1:
        parts = _split(real, imag, rows, n // rows, inverse)
        return tuple(_first(p, n // 2 + 1) for p in parts) if half else parts
    return _turned(real, imag, *_table(real, n, n // 2 + 1 if half else n, n, sign))


def _factor(n: int) -> int:
    """The greatest divisor of n that is not greater than its square root."""
    return max(d for d in range(1, int(n**0.5) + 1) if n % d == 0)


def _circle(k: Any, n: Any) -> tuple[Any, Any]:
    """Cosines and sines of 2πk/n, in float64; values that should be 0 are exactly 0. Both are
    integers, or tensors of int64."""
    k, whole = o.mod(k, n), n if isinstance(n, int) else o.cast(n, dtype=dtypes.float64)
    angle = o.cast(k, dtype=dtypes.float64) * (2 * np.pi) / whole
    return (o.select(o.eq(o.mod(k * 4, n * 2), n), 0.0, o.cos(angle)),
            o.select(o.eq(o.mod(k * 2, n), 0), 0.0, o.sin(angle)))


def _table(x: Any, rows: Dim, columns: Dim, n: Dim, sign: int = 1, half: bool = False
           ) -> tuple[Any, Any]:
    """The cosines and, times `sign`, the sines of 2π·row·column/n. With `half` the rows are those
    of the first half of a spectrum, and count for the other half too."""
    if isinstance(n, int) and isinstance(rows, int) and isinstance(columns, int):
        parts = _circle(np.outer(np.arange(rows), np.arange(columns)), n)
        parts = tuple(t * _counts(np.arange(rows)[:, None], n) for t in parts) if half else parts
        cos, sin = (t.astype(x.dtype.numpy) for t in parts)
        return x.builder.constant(cos), x.builder.constant(sin if sign > 0 else 0 - sin)
    row, size = _line(x, (rows, 1), 0), like(x, o.dim, of=n, dtype=dtypes.int64)
    k = o.reshape(o.mod(row * _line(x, (1, columns), 1), size), shape=(rows, columns, 1))
    parts = _circle(_line(x, (n,), 0), size)
    cos, sin = (o.gather(o.cast(t, dtype=x.dtype), k, axes=(0,)) for t in parts)
    if half:
        cos, sin = (t * o.cast(_counts(row, size), dtype=x.dtype) for t in (cos, sin))
    return cos, sin if sign > 0 else 0.0 - sin


def _counts(k: Any, n: Any) -> Any:
    """How many terms of n, f64, term k of the first half stands for: one, or two conjugates."""
    unpaired = o.or_(o.eq(k, 0), o.eq(k * 2, n))
    return 2.0 - o.cast(unpaired, dtype=dtypes.float64)


def _line(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)


def _matrix(x: Any) -> Any:
    """x with one row axis or more."""
    return x if x.ndim > 1 else o.reshape(x, shape=(1, *x.shape))


def _turned(real: Any, imag: Any, cos: Any, sin: Any) -> tuple[Any, Any]:
    """(real + i·imag)·(cos + i·sin), as matrix products."""
    def by(x: Any, w: Any) -> Any:
        y = o.matmul(_matrix(x), w)
        return y if x.ndim > 1 else o.reshape(y, shape=tuple(y.shape[1:]))
    if imag is None:
        return by(real, cos), by(real, sin)
    return by(real, cos) - by(imag, sin), by(real, sin) + by(imag, cos)


def _split(real: Any, imag: Any, a: int, b: int, inverse: bool) -> tuple[Any, Any]:
    """With t = b·s + r and k = j + a·l: transform over s, multiply by exp(∓2πi·r·j/n), transform
    over r."""
    lead, n = real.shape[:-1], a * b
    last = (*range(len(lead)), len(lead) + 1, len(lead))

    def cut(x: Any) -> Any:  # [..., r, s]
        return x if x is None else o.transpose(o.reshape(x, shape=(*lead, a, b)), perm=last)
    re, im = o.fourier(cut(real), cut(imag), inverse=inverse)
    cos, sin = _table(real, b, a, n, 1 if inverse else -1)
    re, im = re * cos - im * sin, re * sin + im * cos
    re, im = o.fourier(o.transpose(re, perm=last), o.transpose(im, perm=last), inverse=inverse)
    return tuple(o.reshape(o.transpose(x, perm=last), shape=(*lead, n))
                 for x in (re, im))


def _first(x: Any, count: int) -> Any:
    return o.slice(x, start=(0,) * x.ndim, limit=(*x.shape[:-1], count), strides=(1,) * x.ndim)


def _real_types(real: TensorType, imag: TensorType, *, size: Dim) -> TensorType:
    need(real == imag and real.rank > 0 and real.dtype.is_float and known(size, "<=", 0) is not True
         and real.shape[-1] == size // 2 + 1,
         f"the parts of half a spectrum of length {size} expected, got {real} and {imag}")
    return TensorType(real.dtype, (*real.shape[:-1], size))


@composite(types=_real_types, filled=lambda *_, size: (size,))
def fourier_real(real: Any, imag: Any, *, size: Dim) -> Any:
    """The real line of length `size`, times `size`, whose spectrum has this first half.

    Bin 0, and bin size/2 of an even size, are real: their imaginary parts are not read.
    """
    if isinstance(size, int) and ((size > _TABLE and _factor(size) > 1) or (
            size >= _LEAST and is_smooth(size))):
        return _by_mirror(real, imag, size)
    cos, sin = _table(real, size // 2 + 1, size, size, half=True)
    y = o.matmul(_matrix(real), cos) - o.matmul(_matrix(imag), sin)
    return y if real.ndim > 1 else o.reshape(y, shape=(size,))


def _by_mirror(real: Any, imag: Any, size: int) -> Any:
    """Transform the whole spectrum: its second half is the conjugate of the first, in reverse
    order."""
    axis, m = real.ndim - 1, size // 2 + 1
    bins = np.arange(m)
    unpaired = (bins == 0) | (2 * bins == size)
    imag = o.select(real.builder.constant(unpaired), 0.0, imag)

    def rest(x: Any) -> Any:
        inner = o.slice(x, start=(*(0,) * axis, 1), limit=(*x.shape[:-1], size - m + 1),
                        strides=(1,) * x.ndim)
        return o.reverse(inner, axes=(axis,))
    whole = (o.concat(real, rest(real), axis=axis), o.concat(imag, -rest(imag), axis=axis))
    return o.fourier(*whole, inverse=True)[0]
