"""What the templates of recurrences compute, in numpy: as meaning.py says it of the others."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphtool.loops.site import Site

Array = np.ndarray[Any, Any]
F = np.float64
_KEPT = (5, 3, 4, 1, 1)  # parts of the state's size that a step keeps, by kind


def _read(site: Site, name: str, size: int, *place: int) -> Array:
    """The elements at GT_NAME(place), 0 where it is left out."""
    if not site.has(f"GT_{name}"):
        return np.zeros(size)
    x, stride = site.pointer(f"GT_{name}", *place), site.number(f"GT_{name}S")
    return x[:(size - 1) * stride + 1:stride].astype(F)


def _give(site: Site, name: str, x: Array, *place: int) -> None:
    if site.has(f"GT_{name}"):
        stride = site.number(f"GT_{name}S")
        site.pointer(f"GT_{name}", *place)[:(x.size - 1) * stride + 1:stride] = x


def _weights(site: Site, d: int, rows: int, columns: int) -> Array:
    """[rows, columns] of what comes in panels of columns, or lies as the strides say."""
    x = site.pointer("GT_R", d)
    if nr := site.number("GT_PANEL") * site.lanes:
        packed = x[:-(-columns // nr) * rows * nr].reshape(-1, rows, nr).astype(F)
        return np.moveaxis(packed, 0, 1).reshape(rows, -1)[:, :columns]
    strides = (site.number("GT_RK"), site.number("GT_RC"))
    shape = (rows, columns)
    return as_strided(x, shape, tuple(s * x.itemsize for s in strides)).astype(F)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _order(site: Site, d: int) -> range:
    """The steps in the order of the forward pass."""
    turns = range(site.number("GT_STEPS"))
    return turns[::-1] if site.number("GT_REVERSE") or d == 1 else turns


def _sequences(site: Site) -> product[tuple[int, int]]:
    return product(range(site.number("GT_DIRS")), range(site.number("GT_ROWS")))


def steps(site: Site) -> None:
    n = site.number("GT_H")
    for d, b in _sequences(site):
        h, c = (_read(site, name, n, d, b) for name in ("H0", "C0"))
        for s in _order(site, d):
            h, c, kept = _cell(site, s, d, b, h, c)
            _give(site, "Y", h, s, d, b)
            _give(site, "KEPT", kept, s, d, b)
        _give(site, "HN", h, d, b)
        _give(site, "CN", c, d, b)


def _cell(site: Site, s: int, d: int, b: int, h: Array, c: Array) -> tuple[Array, Array, Array]:
    """One step: the gates from the projections p of the input and the products of the state."""
    kind, n = site.number("GT_KIND"), h.size
    size = site.number("GT_GATES") * n
    p = _read(site, "P", size, s, d, b)
    r, bias = _weights(site, d, n, size), _read(site, "B", size, d)
    sums = h @ r + bias
    if kind == 0:
        i, o, f, g = np.split(p + sums, 4)
        i, o, f, g = _sigmoid(i), _sigmoid(o), _sigmoid(f), np.tanh(g)
        c = f * c + i * g
        return o * np.tanh(c), c, np.concatenate([i, o, f, g, c])
    if kind in (1, 2):
        z, reset = _sigmoid(p[:n] + sums[:n]), _sigmoid(p[n:2 * n] + sums[n:2 * n])
        own = sums[2 * n:] if kind == 2 else (reset * h) @ r[:, 2 * n:] + bias[2 * n:]
        new = np.tanh(p[2 * n:] + (reset * own if kind == 2 else own))
        h = (1 - z) * new + z * h
        return h, c, np.concatenate([z, reset, new, own][:_KEPT[kind]])
    h = np.tanh(p + sums) if kind == 3 else np.maximum(p + sums, 0)
    return h, c, h


def back(site: Site) -> None:
    """From the last step to the first, by what the steps have kept."""
    n, kind = site.number("GT_H"), site.number("GT_KIND")
    for d, b in _sequences(site):
        dh, dc = (_read(site, name, n, d, b) for name in ("GH", "GC"))
        order = list(_order(site, d))
        for at in reversed(range(len(order))):
            s = order[at]
            if at and kind == 0:
                before = _read(site, "KEPT", 5 * n, order[at - 1], d, b)[4 * n:]
            elif at:
                before = _read(site, "Y", n, order[at - 1], d, b)
            else:
                before = _read(site, "C0" if kind == 0 else "H0", n, d, b)
            dh, dc, dp = _cell_back(site, d, dh + _read(site, "GY", n, s, d, b), dc, before,
                                    _read(site, "KEPT", _KEPT[kind] * n, s, d, b))
            _give(site, "DP", dp, s, d, b)
        _give(site, "DH", dh, d, b)
        _give(site, "DC", dc, d, b)


def _cell_back(site: Site, d: int, dh: Array, dc: Array, before: Array,
               kept: Array) -> tuple[Array, Array, Array]:
    """The cotangents of the states before a step, and of its projections."""
    kind, n = site.number("GT_KIND"), dh.size
    turned = _weights(site, d, site.number("GT_GATES") * n, n) if site.number("GT_PANEL") else (
        _weights(site, d, n, site.number("GT_GATES") * n).T)
    parts = np.split(kept, _KEPT[kind])
    if kind == 0:
        i, o, f, g, c = parts
        top = np.tanh(c)
        dc = dc + dh * o * (1 - top * top)
        dp = np.concatenate([dc * g * i * (1 - i), dh * top * o * (1 - o),
                             dc * before * f * (1 - f), dc * i * (1 - g * g)])
        return dp @ turned, dc * f, dp
    if kind in (1, 2):
        z, reset, new = parts[:3]
        dn, dz = dh * (1 - z) * (1 - new * new), dh * (before - new) * z * (1 - z)
        inner = dn * parts[3] if kind == 2 else dn @ turned[2 * n:] * before
        gates = np.concatenate([dz, inner * reset * (1 - reset)])
        passed = (dn * reset) @ turned[2 * n:] if kind == 2 else dn @ turned[2 * n:] * reset
        return dh * z + passed + gates @ turned[:2 * n], dc, np.concatenate([gates, dn])
    dp = dh * (1 - kept * kept) if kind == 3 else np.where(kept > 0, dh, 0)
    return dp @ turned, dc, dp
