"""Kernel ops of an optimised graph, said in plain ops again: panels are unpacked on the way, and
choices of a kernel left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool.exporters.onnx.registry import Ref, form
from graphtool.exporters.onnx.writer import Writer
from graphtool.ir.graph import Node
from graphtool.ir.op import ops as o
from graphtool.ops.target import G


def _columns(b: Any, n: int) -> Any:
    """[…, P, K, nr] as […, K, n]."""
    lead, (panels, k, nr) = b.shape[:-3], b.shape[-3:]
    rank = len(lead)
    wide = o.reshape(o.transpose(b, perm=(*range(rank), rank + 1, rank, rank + 2)),
                     shape=(*lead, k, panels * nr))
    return o.slice(wide, start=(0,) * wide.ndim, limit=(*lead, k, n), strides=(1,) * wide.ndim)


def _pack(b: Any, *, nr: int, transpose: bool, **_: Any) -> Any:
    rank = b.ndim - 2
    b = o.transpose(b, perm=(*range(rank), rank + 1, rank)) if transpose else b
    k, n = b.shape[-2:]
    panels = -(-n // nr)
    wide = o.pad(b, lo=(0,) * b.ndim, hi=(*(0,) * (b.ndim - 1), panels * nr - n))
    split = o.reshape(wide, shape=(*b.shape[:-2], k, panels, nr))
    return o.transpose(split, perm=(*range(rank), rank + 1, rank, rank + 2))


def _matmul(a: Any, b: Any, *, n: int, **_: Any) -> Any:
    return o.matmul(a, _columns(b, n))


def _conv(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
          **_: Any) -> Any:
    groups, _, kh, deep, _ = w.shape
    kw = window[1]
    c, size = deep // kw, channels // groups
    rows = _columns(o.transpose(w, perm=(0, 2, 1, 3, 4)), size)  # [G, KH, KW·C, O/G]
    plain = o.transpose(o.reshape(rows, shape=(groups, kh, kw, c, size)), perm=(0, 4, 3, 1, 2))
    return o.conv(x, o.reshape(plain, shape=(channels, c, kh, kw)), strides=strides,
                  rhs_dilation=dilation, groups=groups, channels_last=True)


def _pack_conv(w: Any, *, nr: int, groups: int, **_: Any) -> Any:
    out, c, kh, kw = w.shape
    size = out // groups
    panels = -(-size // nr)
    wide = o.pad(o.reshape(w, shape=(groups, size, c, kh, kw)), lo=(0,) * 5,
                 hi=(0, panels * nr - size, 0, 0, 0))
    split = o.transpose(o.reshape(wide, shape=(groups, panels, nr, c, kh, kw)),
                        perm=(0, 1, 4, 5, 3, 2))
    return o.reshape(split, shape=(groups, panels, kh, kw * c, nr))


def _depthwise(x: Any, w: Any, *, strides: Any, dilation: Any, **_: Any) -> Any:
    kh, kw, c = w.shape
    plain = o.reshape(o.transpose(w, perm=(2, 0, 1)), shape=(c, 1, kh, kw))
    return o.conv(x, plain, strides=strides, rhs_dilation=dilation, groups=c, channels_last=True)


def _winograd(x: Any, w: Any, *, channels: int, tile: int, groups: int = 1, **_: Any) -> Any:
    """The plain weights are g = G⁺·U·(G⁺)ᵀ."""
    n, c = tile + 2, x.shape[3] // groups
    back = np.linalg.pinv(G[tile]).astype(x.dtype.numpy)
    u = o.reshape(_columns(w, channels), shape=(n, n, c * channels))
    left = o.reshape(o.matmul(back, o.reshape(u, shape=(n, n * c * channels))),
                     shape=(3, n, c * channels))
    g = o.matmul(back, left)  # [3, 3, C·O]
    plain = o.transpose(o.reshape(g, shape=(3, 3, c, channels)), perm=(3, 2, 0, 1))
    return o.conv(x, plain, channels_last=True, groups=groups)


def _pooled(x: Any, *, kind: str, window: Any, strides: Any, dilation: Any, **_: Any) -> Any:
    return o.reduce_window(x, kind=kind, window=(1, *window, 1), strides=(1, *strides, 1),
                           window_dilation=(1, *dilation, 1))


_PLAIN: dict[str, Callable[..., Any]] = {
    "pack": _pack, "pack_conv": _pack_conv, "matmul_packed": _matmul,
    "conv_packed": _conv, "depthwise": _depthwise, "winograd": _winograd, "pooled": _pooled}


@form(*_PLAIN)
def plain(w: Writer, node: Node, *xs: Ref) -> Any:
    return w.restate(lambda *xs: _PLAIN[node.op.name](*xs, **node.attrs), xs)
