"""Graphs of rules that compute with the numbers of the graph: of each kind of number a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.dtypes import bool_, dtype, float32
from graphtool.ir.graph import Graph
from tests.lab.proofs.patterns import EVERY, FLOATS, SHAPES, WORDS, M, N, floats, graph

Fn = Callable[..., Any]
SIGNED = (-7.0, -1.0, 0.0, 0.5, 3.0)  # sums and products of two of them are exact in 16 bits
WHOLE = (-128, -1, 0, 3, 2**31 - 1)


def chained(op: Fn, whole: bool) -> Iterator[Graph]:
    """f(f(x, a), b) of two numbers."""
    numbers: tuple[float, ...] = WHOLE if whole else SIGNED
    for kind in WORDS if whole else FLOATS:
        for a, b in product(numbers, repeat=2):
            if not kind.is_integer or kind.low <= min(a, b) <= max(a, b) <= kind.high:
                yield graph(lambda x, a=a, b=b: op(op(x, a), b), (kind, (N, M)))


def extremes(op: Fn) -> Iterator[Graph]:
    """The same of an extreme, of all types."""
    yield from chained(op, False)
    yield from chained(op, True)


def above() -> Iterator[Graph]:
    """max(x, a) > b."""
    for kind, a, b in product(FLOATS, SIGNED, SIGNED):
        yield graph(lambda x, a=a, b=b: o.gt(o.max(x, a), b), (kind, (N, M)))


def choices() -> Iterator[Graph]:
    """A choice in the arm of a choice, with one value in both; operands broadcast in all ways."""
    for kind, (s, t) in product(EVERY, product(SHAPES, repeat=2)):
        yield graph(lambda a, b, x, y: o.select(a, x, o.select(b, x, y)),
                    (bool_, s), (bool_, t), (kind, (N, M)), (kind, (N, M)))
    for s in SHAPES:
        yield floats(lambda x, y: o.select(o.gt(x, 0.0), x, o.select(o.gt(y, x), x, y)), s, (N, M))


def clamped() -> Iterator[Graph]:
    """A cast of a clamped number."""
    for kind, a, (lo, hi) in product(
            (dtype("float16"), float32), WORDS[:4],
            ((0.0, 127.0), (0.0, 255.0), (-128.0, 127.0), (-32768.0, 32767.0), (0.0, 65535.0))):
        yield graph(lambda x, lo=lo, hi=hi, a=a: o.cast(o.clamp(x, lo, hi), dtype=a), (kind, (N,)))


def runs() -> Iterator[Graph]:
    """A gather of rows or columns at equal distances."""
    for axis, line in product((0, 1), ([2], [0, 1, 2], [1, 4, 7], [3, 5])):
        at = np.array(line, np.int64).reshape(-1, 1)
        shape = (N + 9, M) if axis == 0 else (M, N + 9)
        yield floats(lambda x, at=at, axis=axis: o.gather(x, x.builder.constant(at), axes=(axis,)),
                     shape)
