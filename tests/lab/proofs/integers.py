"""Graphs of layers whose operands are bytes with a scale and a zero point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from graphtool import ops as o
from graphtool.dtypes import float32
from graphtool.ir.graph import Graph
from tests.lab.proofs.patterns import WORDS, M, N, P, graph


def _real(q: Any, zero: Any, scale: Any) -> Any:
    """(q − zero)·scale in float32."""
    return (o.cast(q, dtype=float32) - o.cast(zero, dtype=float32)) * scale


def _dequantised(layer: Callable[..., Any], x: tuple[Any, ...], w: tuple[Any, ...],
                 ) -> Iterator[Graph]:
    """A layer of two operands of bytes, with any scales and zero points."""
    for p, q in product(WORDS[:2], repeat=2):
        yield graph(lambda x, zx, sx, w, zw, sw: layer(_real(x, zx, sx), _real(w, zw, sw)),
                    (p, x), (p, ()), (float32, ()), (q, w), (q, ()), (float32, ()))


def int_products() -> Iterator[Graph]:
    """Products of matrices."""
    for k, s, t in product((1, 3, 64, 33025), (False, True), (False, True)):
        yield from _dequantised(
            lambda x, w, s=s, t=t: o.matmul(x, w, transpose_a=s, transpose_b=t),
            (k, M) if s else (M, k), (P, k) if t else (k, P))


def int_layers() -> Iterator[Graph]:
    """Linear layers."""
    for k in (1, 3, 64, 33025):
        yield from _dequantised(lambda x, w: o.linear(x, w), (N, k), (P, k))


def int_convs() -> Iterator[Graph]:
    """Convolutions."""
    for last, stride, groups in product((False, True), (1, 2), (1, 2)):
        yield from _dequantised(
            lambda x, w, last=last, s=stride, g=groups: o.conv(
                x, w, strides=(s, s), padding=((1, 1), (1, 1)), groups=g, channels_last=last),
            (N, 9, 9, 4) if last else (N, 4, 9, 9), (6, 4 // groups, 3, 3))
