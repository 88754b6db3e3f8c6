"""Tensors of real or complex numbers under one arithmetic, so that an algorithm is written once.

The parts are tracers of one type. Matrices have one batch axis: [batch, rows, columns].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from graphtool import ops as o
from graphtool.importers.stablehlo.driver.registry import Refused
from graphtool.ops.matrices import as_tuple, scanned, swap_last_axes
from graphtool.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Numbers:
    """A tensor of numbers; real ones have no imaginary part."""

    real: Any
    imag: Any = None

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes of either part."""
        shape: tuple[Dim, ...] = self.real.shape
        return shape

    @property
    def parts(self) -> tuple[Any, ...]:
        """The tensors: one or two."""
        return (self.real,) if self.imag is None else (self.real, self.imag)

    def each(self, fn: Callable[..., Any], *others: Numbers) -> Numbers:
        """What `fn` makes of the real parts, and of the imaginary ones."""
        return Numbers(*(fn(*xs) for xs in zip(self.parts, *(y.parts for y in others),
                                               strict=True)))

    def __add__(self, y: Numbers) -> Numbers:
        return self.each(o.add, y)

    def __sub__(self, y: Numbers) -> Numbers:
        return self.each(o.sub, y)

    def __mul__(self, y: Any) -> Numbers:
        """Times numbers, or times a real tensor or literal."""
        if not isinstance(y, Numbers):
            return self.each(lambda part: o.mul(part, y))
        return combined(o.mul, self, y)

    def __truediv__(self, y: Any) -> Numbers:
        """Divided by numbers whose squares do not overflow, or by a real tensor."""
        if not isinstance(y, Numbers):
            return self.each(lambda part: o.div(part, y))
        return self.each(lambda part: o.div(part, y.real)) if y.imag is None else (
            self * y.conj() / y.square())

    def conj(self) -> Numbers:
        """With the other sign of the imaginary part."""
        return self if self.imag is None else Numbers(self.real, o.neg(self.imag))

    def square(self) -> Any:
        """|x|², a real tensor."""
        own = o.mul(self.real, self.real)
        return own if self.imag is None else o.add(own, o.mul(self.imag, self.imag))

    def adjoint(self) -> Numbers:
        """The conjugate transpose of each matrix."""
        return self.conj().each(swap_last_axes)

    def where(self, here: Any, other: Numbers | float) -> Numbers:
        """These numbers where `here` is true, elsewhere the others."""
        if isinstance(other, Numbers):
            return self.each(lambda a, b: o.select(here, a, b), other)
        only = Numbers(o.select(here, self.real, other))
        return only if self.imag is None else Numbers(only.real, o.select(here, self.imag, 0.0))


def combined(fn: Callable[..., Any], x: Numbers, y: Numbers) -> Numbers:
    """A product of each kind of part: (a + bi)(c + di) for a bilinear `fn`."""
    if x.imag is None or y.imag is None:
        return Numbers(*(fn(a, b) for a in x.parts for b in y.parts))
    return Numbers(o.sub(fn(x.real, y.real), fn(x.imag, y.imag)),
                   o.add(fn(x.real, y.imag), fn(x.imag, y.real)))


def times(x: Numbers, y: Numbers) -> Numbers:
    """The product of matrices."""
    return combined(o.matmul, x, y)


def known_sizes(x: Numbers) -> tuple[int, int]:
    """Rows and columns. Raises Refused if one of them is open."""
    m, n = x.shape[-2:]
    if not isinstance(m, int) or not isinstance(n, int):
        raise Refused("the rows and columns of the matrix must be numbers, not open sizes")
    return m, n


def tensors(xs: Iterable[Numbers]) -> list[Any]:
    """The tensors of these numbers."""
    return [part for x in xs for part in x.parts]


def looped(step: Callable[..., tuple[Numbers, ...]], count: Dim, held: tuple[Numbers, ...],
           rows: tuple[Numbers, ...] = (), fixed: tuple[Numbers, ...] = (),
           reverse: bool = False) -> tuple[Numbers, ...]:
    """Run `step(*held, j, *rows, *fixed)` for each j below `count`, with row j of each of `rows`:
    the last of what it holds, and its other results stacked."""
    complex_results: list[bool] = []

    def run(*parts: Any) -> tuple[Any, ...]:
        rest = iter(parts)
        before, index = _joined(map(_is_complex, held), rest), next(rest)
        found = step(*before, index, *_joined(map(_is_complex, (*rows, *fixed)), rest))
        complex_results[:] = map(_is_complex, found)
        return tuple(tensors(found))
    parts = [tuple(tensors(xs)) for xs in (held, rows, fixed)]
    made = as_tuple(scanned(run, count, parts[0], parts[1], parts[2], reverse))
    return tuple(_joined(complex_results, iter(made)))


def _is_complex(x: Numbers) -> bool:
    return x.imag is not None


def _joined(kinds: Iterable[bool], parts: Iterator[Any]) -> list[Numbers]:
    return [Numbers(next(parts), next(parts) if two else None) for two in kinds]
