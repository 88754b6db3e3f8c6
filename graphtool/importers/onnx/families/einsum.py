"""Einsum: any equation, as diagonals, sums, transposes and one `matmul` for each further
operand."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.importers.onnx.kit import Dim, Refused, o, onnx_op, product


def parse(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """One string of labels for each operand, and the result's string.

    The axes of an ellipsis get circled digits as labels. Raises ValueError if the equation does not
    fit `ranks`.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} has {len(terms)} operands, {len(ranks)} given")
    free = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    most = max((f for f, t in zip(free, terms, strict=True) if "..." in t), default=0)
    dots = "".join(chr(0x2460 + i) for i in range(most))
    full = [t.replace("...", dots[most - f:]) for t, f in zip(terms, free, strict=True)]
    if any(len(t) != r for t, r in zip(full, ranks, strict=True)):
        raise ValueError(f"{equation!r} does not fit operands of ranks {ranks}")
    if arrow:
        return full, right.replace("...", dots)
    seen = "".join(full)
    return full, dots + "".join(sorted(c for c in set(seen) if seen.count(c) == 1
                                       and c not in dots))


@onnx_op("Einsum", since=12)
def einsum(*xs: Any, equation: str) -> Any:
    """The operands joined from left to right by `matmul`, then the remaining sums and a
    `transpose`."""
    terms, out = parse(equation, [x.ndim for x in xs])
    sides = [_diagonal(x, t) for x, t in zip(xs, terms, strict=True)]
    x, labels = sides[0]
    for k, (y, other) in enumerate(sides[1:], 2):
        needed = set(out).union(*(t for _, t in sides[k:]))
        x, labels = _contracted(x, labels, y, other, needed)
    x, labels = _summed(x, labels, set(out))
    return x.transpose([labels.index(c) for c in out])


def _diagonal(x: Any, labels: str) -> tuple[Any, str]:
    """x with each label once: axes that share a label are reduced to their diagonal."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            n = x.shape[first]
            if not isinstance(n, int):
                raise Refused("the diagonal of a symbolic size is not supported; fix that size "
                              "with --dynamic NAME=SIZE")
            pairs = x.builder.constant(np.repeat(np.arange(n)[:, None], 2, 1))
            rest = [i for i in range(len(labels)) if i not in (first, second)]
            x = o.gather(x, pairs, axes=(first, second))
            labels = c + "".join(labels[i] for i in rest)
    return x, labels


def _summed(x: Any, labels: str, kept: set[str]) -> tuple[Any, str]:
    axes = tuple(i for i, c in enumerate(labels) if c not in kept)
    if not axes:
        return x, labels
    y = o.reduce_sum(x, axes=axes)
    return (y.reshape(tuple(d for i, d in enumerate(x.shape) if i not in axes)),
            "".join(c for i, c in enumerate(labels) if i not in axes))


def _contracted(x: Any, a: str, y: Any, b: str, kept: set[str]) -> tuple[Any, str]:
    """The product of two operands, summed over the labels that no later operand needs."""
    x, a = _summed(x, a, kept | set(b))
    y, b = _summed(y, b, kept | set(a))
    sizes: dict[str, Dim] = {}
    for labels, t in ((a, x), (b, y)):
        for c, d in zip(labels, t.shape, strict=True):
            sizes[c] = d if sizes.get(c, 1) == 1 else sizes[c]
    batch = [c for c in a if c in b and c in kept]
    inner = [c for c in a if c in b and c not in kept]
    rows = [c for c in a if c not in b]
    columns = [c for c in b if c not in a]
    left = _matrix(x, a, batch, rows, inner, sizes)
    right = _matrix(y, b, batch, inner, columns, sizes)
    z = o.matmul(left, right)
    shape = tuple(sizes[c] for c in (*batch, *rows, *columns))
    return (z.reshape(shape), "".join((*batch, *rows, *columns)))


def _matrix(x: Any, labels: str, batch: list[str], first: list[str], second: list[str],
            sizes: dict[str, Dim]) -> Any:
    """x as [batch, rows, columns], broadcast to the sizes of the labels."""
    order = [*batch, *first, *second]
    x = x.transpose([labels.index(c) for c in order])
    shape = tuple(sizes[c] for c in order)
    x = x if tuple(x.shape) == shape else o.broadcast(x, shape=shape)
    return x.reshape((product(sizes[c] for c in batch), product(sizes[c] for c in first),
                      product(sizes[c] for c in second)))
