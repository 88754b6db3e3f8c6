"""How much a node can lengthen an error: Lipschitz constants in the Euclidean norm.

|W|·e, which the enclosures use, lets all errors add up; ‖W‖·‖e‖, with the largest singular value,
is smaller by about the root of the width in each layer. So deep networks need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np

from graphtool import ops as o
from graphtool.analysis.enclosure import Array, Enclosure
from graphtool.ir.facets import Movement
from graphtool.ir.graph import Node
from graphtool.ir.op import Op

Operands = Sequence[Any]
MORE = 1 + 1e-9  # than numpy rounds away in singular values


def gains(node: Node, xs: Operands) -> list[float]:
    """For each operand, by how much the length of its error is multiplied at most, for numbers
    within `xs`; ∞ where it is not known."""
    if node.op.movement is not Movement.NONE:
        return [_repeats(node, x) for x in xs]
    rule = _GAINS.get(node.op)
    return [float(g) * MORE for g in rule(node, xs)] if rule else [np.inf] * len(xs)


def lengths(x: Array, count: int) -> Array:
    """The Euclidean norm of each of so many examples along axis 0, or of the whole for 1."""
    return np.asarray(np.linalg.norm(x.reshape(count, -1), axis=1)) * MORE


def _repeats(node: Node, x: Any) -> float:
    """Each element is at most so often in a broadcast result; other ops repeat none."""
    size = x.lo.size if isinstance(x, Enclosure) else 1
    grows = Movement.REPEATS in node.op.movement
    return float(np.sqrt(_size(node) / size)) if grows and size else 1.0


def _size(node: Node) -> float:
    """The number of elements of the result."""
    return float(np.prod(cast(tuple[int, ...], node.outputs[0].type.shape)))


def _most(x: Any) -> Any:
    """The greatest magnitude of an operand, the real one and the computed one."""
    return float(x.most.max(initial=0.0)) if isinstance(x, Enclosure) else abs(x)


def _wide(node: Node, x: Any) -> float:
    """What broadcasting an operand of an elementwise op adds."""
    size = x.lo.size if isinstance(x, Enclosure) else 1
    return float(np.sqrt(_size(node) / max(size, 1)))


def _each(node: Node, xs: Operands) -> list[float]:
    """Of a sum, an extreme, and what is no steeper than 1."""
    return [_wide(node, x) for x in xs]


def _product(node: Node, xs: Operands) -> list[float]:
    a, b = xs
    return [_most(b) * _wide(node, a), _most(a) * _wide(node, b)]


def _quotient(node: Node, xs: Operands) -> list[float]:
    a, b = xs
    low, high = b.computed if isinstance(b, Enclosure) else (np.float64(b), np.float64(b))
    least = float(np.where((low > 0) | (high < 0), np.minimum(np.abs(low), np.abs(high)), 0).min())
    if least == 0:
        return [np.inf, np.inf]
    return [_wide(node, a) / least, _most(a) * _wide(node, b) / least**2]


def _largest(x: Enclosure) -> float:
    """The largest singular value of any of the matrices in the last two axes."""
    low, high = x.computed
    middle = (low + high) / 2
    if not np.isfinite(middle).all():
        return np.inf
    rest = np.sqrt(((high - low)**2).sum(axis=(-2, -1))) / 2
    return float((_norms(middle.tobytes(), middle.shape) + rest).max(initial=0.0))


@lru_cache(64)
def _norms(x: bytes, shape: tuple[int, ...]) -> Array:
    return np.asarray(np.linalg.norm(np.frombuffer(x).reshape(shape), 2, axis=(-2, -1)))


def _matmul(node: Node, xs: Operands) -> list[float]:
    """‖A·B‖ ≤ ‖A‖₂·‖B‖ in the Frobenius norm; one operand may serve several matrices."""
    a, b = xs
    count = np.prod(cast(tuple[int, ...], node.outputs[0].type.shape[:-2]))
    once = [np.sqrt(count / max(np.prod(x.lo.shape[:-2]), 1)) for x in xs]
    return [_largest(b) * once[0], _largest(a) * once[1]]


def _conv(node: Node, xs: Operands) -> list[float]:
    """The largest singular value of Σ wₜ·exp(iω·t) over all ω, whatever stride, padding and
    dilation.

    Between the points of a grid of n in each direction it is larger by at most 1/cos(π·d/n), where
    d = (taps − 1)/2 is the degree (Ehlich and Zeller, 1964).
    """
    w = xs[1]
    if not ((w.lo == w.hi).all() and (w.err == 0).all() and node.attrs["batch_groups"] == 1):
        return [np.inf, np.inf]
    largest = _filter(w.lo.tobytes(), w.lo.shape, node.attrs["groups"])
    return [largest, np.inf]


@lru_cache(64)
def _filter(w: bytes, shape: tuple[int, ...], groups: int) -> float:
    taps = shape[2:]
    points = [4 * k if k > 1 else 1 for k in taps]
    waves = np.fft.fftn(np.frombuffer(w).reshape(shape), points, axes=tuple(range(2, len(shape))))
    waves = np.moveaxis(waves.reshape(groups, -1, *waves.shape[1:]), (1, 2), (-2, -1))
    between = np.prod([np.cos(np.pi * (k - 1) / 2 / n) for k, n in zip(taps, points, strict=True)])
    return float(np.linalg.norm(waves, 2, axis=(-2, -1)).max(initial=0.0) / between)


def _sum(node: Node, xs: Operands) -> list[float]:
    return [float(np.sqrt(xs[0].lo.size / max(_size(node), 1)))]


def _erf(node: Node, xs: Operands) -> list[float]:
    return [2 / np.sqrt(np.pi)]


def _select(node: Node, xs: Operands) -> list[float]:
    return [0.0, *_each(node, xs[1:])]


def _softmax(_: Node, __: Operands) -> list[float]:
    """‖diag(p) − p·pᵀ‖ ≤ 1/2."""
    return [0.5]


def _norm(node: Node, xs: Operands) -> list[float]:
    """(I − 1·1ᵀ/n − y·yᵀ/n)/√(v + ε) shortens but for the root."""
    x, scale = (*xs, None)[:2]
    axes = tuple(a % x.lo.ndim for a in node.attrs["axes"])
    low, high = x.computed
    middle, rest = (low + high) / 2, (high - low) / 2
    if node.op is o.layer_norm:
        middle = middle - middle.mean(axis=axes, keepdims=True)
    least = np.maximum(np.sqrt((middle**2).mean(axis=axes)) - np.sqrt((rest**2).mean(axis=axes)), 0)
    root = np.sqrt(least**2 + node.attrs["epsilon"]).min(initial=np.inf)
    return [(1.0 if scale is None else _most(scale)) / root, np.inf, 1.0][:len(xs)]


Rule = Callable[[Node, Operands], Sequence[float]]
_GAINS: dict[Op, Rule] = {
    **dict.fromkeys((o.add, o.sub, o.neg, o.max, o.min, o.relu, o.clamp, o.cast, o.tanh, o.atan,
                     o.sigmoid), _each),
    o.mul: _product, o.div: _quotient, o.matmul: _matmul, o.conv: _conv, o.reduce_sum: _sum,
    o.erf: _erf,
    o.select: _select, o.softmax: _softmax, o.layer_norm: _norm, o.rms_norm: _norm}
