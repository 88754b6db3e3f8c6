"""Complex numbers as two tensors: a graph has no complex type.

Real numbers are those without an imaginary part, so that an algorithm is written once for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ops.matrices import swap_last_axes
from graphtool.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Complex:
    """A tensor of complex numbers: the real and the imaginary part, of one type."""

    real: Any
    imag: Any = None

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of either part."""
        return self.real.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.real.ndim  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        """The element type of each part."""
        return self.real.dtype  # type: ignore[no-any-return]

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tensors: one or two."""
        return (self.real,) if self.imag is None else (self.real, self.imag)

    def each(self, fn: Callable[..., Any], *others: Complex) -> Complex:
        """What `fn` makes of the real parts, and of the imaginary ones."""
        return Complex(*(fn(*xs) for xs in zip(self.parts, *(y.parts for y in others),
                                               strict=True)))

    # ---- arithmetic ----------------------------------------------------------------------------

    def __neg__(self) -> Complex:
        return self.each(o.neg)

    def __add__(self, y: Any) -> Complex:
        """Plus complex numbers, or a real tensor or number."""
        return self.each(o.add, y) if isinstance(y, Complex) else Complex(self.real + y, self.imag)

    def __sub__(self, y: Any) -> Complex:
        return self.each(o.sub, y) if isinstance(y, Complex) else Complex(self.real - y, self.imag)

    def __mul__(self, y: Any) -> Complex:
        """Times complex numbers, or a real tensor or number."""
        return combined(o.mul, self, y) if isinstance(y, Complex) else self.each(lambda p: p * y)

    def __truediv__(self, y: Any) -> Complex:
        """x·ȳ / |y|², with y divided by its greater part first, so that no square overflows."""
        if not isinstance(y, Complex):
            return self.each(lambda p: p / y)
        if y.imag is None:
            return self.each(lambda p: p / y.real)
        scale = o.max(abs(y.real), abs(y.imag))
        unit = y.each(lambda p: p / scale)
        top, square = self * unit.conj(), scale * unit.square()
        return top.each(lambda p: p / square)

    def __abs__(self) -> Any:
        """|x|: the greater part times √(1 + ratio²), so that no square overflows; 0 stays 0."""
        if self.imag is None:
            return abs(self.real)
        a, b = abs(self.real), abs(self.imag)
        big = o.max(a, b)
        ratio = o.min(a, b) / o.select(o.eq(big, 0), 1, big)
        return o.select(o.is_inf(big), big, big * o.sqrt(ratio * ratio + 1))

    def conj(self) -> Complex:
        """With the other sign of the imaginary part."""
        return self if self.imag is None else Complex(self.real, -self.imag)

    def turned(self) -> Complex:
        """Times i."""
        return Complex(-self.imag, self.real)

    def turned_back(self) -> Complex:
        """Times −i."""
        return Complex(self.imag, -self.real)

    def square(self) -> Any:
        """|x|², a real tensor."""
        squared = self.real * self.real
        return squared if self.imag is None else squared + self.imag * self.imag

    def adjoint(self) -> Complex:
        """The conjugate transpose of each matrix."""
        return self.conj().each(swap_last_axes)

    def where(self, here: Any, other: Complex | float) -> Complex:
        """These numbers where `here` is true, elsewhere the others."""
        if isinstance(other, Complex):
            return self.each(lambda a, b: o.select(here, a, b), other)
        only = Complex(o.select(here, self.real, other))
        return only if self.imag is None else Complex(only.real, o.select(here, self.imag, 0.0))


def combined(fn: Callable[..., Any], x: Complex, y: Complex) -> Complex:
    """(a + bi)(c + di) for a bilinear `fn`, with four real products."""
    if x.imag is None or y.imag is None:
        return Complex(*(fn(a, b) for a in x.parts for b in y.parts))
    return Complex(fn(x.real, y.real) - fn(x.imag, y.imag),
                   fn(x.real, y.imag) + fn(x.imag, y.real))


def times(x: Complex, y: Complex) -> Complex:
    """The product of matrices."""
    return combined(o.matmul, x, y)


def tensors(xs: Iterable[Complex]) -> list[Any]:
    """The tensors of these numbers."""
    return [part for x in xs for part in x.parts]
