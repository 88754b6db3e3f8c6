"""What ops do to numbers with an error: for each op, the enclosure of its results.

A meaning gets the node, the enclosures of its operands, and the precision of its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphtool import ops as o
from graphtool.analysis.enclosure import (
    EXACT,
    Array,
    Enclosure,
    Precision,
    added,
    enclosed,
    inverse,
    limited,
    multiplied,
    negative,
    rising,
    rounded,
)
from graphtool.errors import InputError
from graphtool.interp import evaluate_op
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import Op

Operands = Sequence[Any]
Meaning = Callable[[Node, Operands, Precision], Enclosure]


def _sum_of(node: Node, xs: Operands, p: Precision) -> Enclosure:
    """Σ over axes."""
    (x,), axes = xs, tuple(a % xs[0].lo.ndim for a in node.attrs["axes"])
    lo, hi, err, most = (v.sum(axis=axes, keepdims=True) for v in (x.lo, x.hi, x.err, x.most))
    terms = int(np.prod([x.lo.shape[a] for a in axes]))
    return enclosed(lo, hi, err + (p.sums(terms, most) if terms > 1 else 0))


def _contraction(node: Node, xs: Operands, p: Precision) -> Enclosure:
    """A product or a convolution, as sums of products of two enclosures.

    The centre and radius of a product of intervals: a·b ∈ m·n ± (|m|·s + r·|n| + r·s).
    """
    a, b = xs
    def of(x: Array, y: Array) -> Any:
        if not (x.any() and y.any()):
            return 0.0
        attrs = {**node.attrs, "dtype": None}
        return np.asarray(evaluate_op(node.op, [x, y], attrs)[0], np.float64)
    (m, r), (n, s) = ((np.add(v.lo, v.hi) / 2, np.subtract(v.hi, v.lo) / 2) for v in (a, b))
    for x in (a, b):
        if not np.isfinite(x.most).all():
            raise InputError("GT0534", f"an operand of {node.op.name} is unbounded",
                             where=node.outputs[0].hint)
    centre, radius = of(m, n), of(np.abs(m), s) + of(r, np.abs(n) + s)
    real = [np.maximum(np.abs(v.lo), np.abs(v.hi)) for v in (a, b)]
    err = of(real[0], b.err) + of(a.err, real[1] + b.err)
    most = of(a.most, b.most)
    terms = int(of(np.ones_like(a.lo), np.ones_like(b.lo)).max(initial=0)) if p.unit else 0
    return enclosed(centre - radius - _slack(most), centre + radius + _slack(most),
                    err + _slack(err) + p.sums(terms, most))


def _slack(most: Any) -> Any:
    """More than float64 rounds away in sums of up to a million terms with these magnitudes."""
    return most * 1e-9


def _extreme(greater: bool) -> Meaning:
    fn = np.maximum if greater else np.minimum

    def of(node: Node, xs: Operands, _: Precision) -> Enclosure:
        a, b = xs
        lo, hi = fn(a.lo, b.lo), fn(a.hi, b.hi)
        (la, ha), (lb, hb) = a.computed, b.computed
        first, second = (la >= hb, lb >= ha) if greater else (ha <= lb, hb <= la)
        err = np.where(first, a.err, np.where(second, b.err, np.maximum(a.err, b.err)))
        return Enclosure(*np.broadcast_arrays(lo, hi, err))
    return of


def _reduced(greater: bool) -> Meaning:
    fn = np.max if greater else np.min

    def of(node: Node, xs: Operands, _: Precision) -> Enclosure:
        (x,) = xs
        axes = tuple(a % x.lo.ndim for a in node.attrs["axes"])
        return Enclosure(fn(x.lo, axis=axes, keepdims=True), fn(x.hi, axis=axes, keepdims=True),
                         x.err.max(axis=axes, keepdims=True))
    return of


def _windows(node: Node, xs: Operands, p: Precision) -> Enclosure:
    """Sums and extremes over windows."""
    (x,), kind = xs, node.attrs["kind"]
    if kind not in ("sum", "max", "min"):
        raise InputError("GT0534", f"no error bound of a windowed {kind} is known")

    def of(v: Array, kind: str) -> Array:
        return np.asarray(evaluate_op(node.op, [v], {**node.attrs, "kind": kind})[0], np.float64)
    lo, hi = of(x.lo, kind), of(x.hi, kind)
    if kind != "sum":
        return Enclosure(lo, hi, np.maximum(of(x.err, "max"), 0))
    terms = int(np.prod(node.attrs["window"]))
    return enclosed(lo, hi, of(x.err, "sum") + p.sums(terms, of(x.most, "sum")))


def _softmax(node: Node, xs: Operands, p: Precision) -> Enclosure:
    """pᵢ = 1 / Σⱼ exp(xⱼ − xᵢ). Errors of x up to e change it by a factor between exp(−2e) and
    exp(2e); each step rounds, the difference in the exponent by its own magnitude."""
    (x,), axis = xs, node.attrs["axis"]
    top, least = x.hi.max(axis=axis, keepdims=True), x.lo.max(axis=axis, keepdims=True)
    up, down = np.exp(x.hi - top), np.exp(x.lo - top)
    lo = down / (down + up.sum(axis=axis, keepdims=True) - up)
    hi = up / (up + down.sum(axis=axis, keepdims=True) - down)
    e = x.err.max(axis=axis, keepdims=True)
    far = np.maximum(top - x.lo, least - x.lo).max(axis=axis, keepdims=True) + 2 * e
    far = np.minimum(far, 1 - np.log(p.least)) if p.least else 0.0  # beyond it, exp is 0
    terms = x.lo.shape[axis]
    factor = np.exp(2 * e + 2 * p.unit * far) * (1 + 2 * _UNITS[o.exp] * p.unit) ** 2 * (
        1 + 2 * (terms + 2) * p.unit)
    err = np.fmin(hi * (factor - 1) + (terms + 2) * 4 * p.least, 1 + 4 * (terms + 2) * p.unit)
    return limited(enclosed(lo, hi, err), 0.0, 1.0)  # both are between 0 and about 1


def _norm(centre: bool) -> Meaning:
    """x / √(mean x² + ε) of x, or of x less its mean; both in real arithmetic at most √n.

    With d the error of x, its root mean square differs by rms(d), so the result differs by at most
    2·max|d| / √(v + ε), where v is the least mean square; rounding adds to d.
    """
    def of(node: Node, xs: Operands, p: Precision) -> Enclosure:
        x, *affine = xs
        axes = tuple(a % x.lo.ndim for a in node.attrs["axes"])
        n, eps = int(np.prod([x.lo.shape[a] for a in axes])), node.attrs["epsilon"]
        over: dict[str, Any] = {"axis": axes, "keepdims": True}
        lo, hi, d = x.lo, x.hi, x.err
        if centre:
            lo, hi = x.lo - x.hi.mean(**over), x.hi - x.lo.mean(**over)
            mean_error = x.err.mean(**over) + p.sums(n, x.most.mean(**over)) + p.rounds(
                x.most.max(**over))
            d = x.err + mean_error + p.rounds(2 * x.most.max(**over))
        nearest = np.where((lo <= 0) & (hi >= 0), 0, np.minimum(np.abs(lo), np.abs(hi)))
        worst = np.maximum(np.abs(lo), np.abs(hi))
        small = np.sqrt((nearest**2).mean(**over) + eps)
        computed = np.maximum(small - np.sqrt((d**2).mean(**over)), np.sqrt(eps))
        relative = (n + 8) * p.unit / (1 - (n + 8) * p.unit)  # of mean, square, root and quotient
        size = np.minimum((worst + d) / computed, np.sqrt(n) * (1 + d.max(**over) / computed))
        root = np.sqrt(n)
        err = np.minimum(2 * d.max(**over) / computed + relative * size + p.least * n / computed,
                         2 * root * (1 + relative))  # both are at most √n
        large = np.sqrt((worst**2).mean(**over) + eps)
        y = limited(enclosed(lo / np.where(lo < 0, small, large),
                             hi / np.where(hi > 0, small, large), err), -root, root)
        for fn, v in zip((_product_of, _added), affine, strict=False):
            y = y if v is None else fn(node, (y, v), p)
        return y
    return of


def _product_of(node: Node, xs: Operands, p: Precision) -> Enclosure:
    out = rounded(multiplied(*xs), p)
    square = isinstance(node.inputs[0], Value) and node.inputs[0] is node.inputs[1]
    return limited(out, 0.0, np.inf) if square else out


def _added(_: Node, xs: Operands, p: Precision) -> Enclosure:
    return rounded(added(*xs), p)


def _relu(_: Node, xs: Operands, __: Precision) -> Enclosure:
    (x,) = xs
    err = np.where(x.computed[1] <= 0, 0.0, x.err)
    return Enclosure(np.maximum(x.lo, 0), np.maximum(x.hi, 0), err)


def _clamped(node: Node, xs: Operands, p: Precision) -> Enclosure:
    x, low, high = xs
    x = x if low is None else _extreme(True)(node, (x, low), p)
    return x if high is None else _extreme(False)(node, (x, high), p)


def _whole(_: Node, xs: Operands, __: Precision) -> Enclosure:
    """The nearest whole number: where the computed number may lie on the other side of a half, one
    more or less."""
    (x,) = xs
    low, high = x.computed
    same = np.rint(low) == np.rint(high)
    return Enclosure(np.rint(x.lo), np.rint(x.hi),
                     np.where(same | (x.err == 0), 0.0, np.ceil(x.err)))


def _cast(node: Node, xs: Operands, p: Precision) -> Enclosure:
    """Into another type: a float is rounded; to an integer it is cut towards 0 and to the range."""
    (x,), kind = xs, node.outputs[0].type.dtype
    if kind.is_float:
        return rounded(x, p)
    low, high = float(kind.low), float(kind.high)

    def cut(v: Array) -> Array:
        return np.asarray(np.trunc(np.clip(v, low, high)))
    least, most = (cut(v) for v in x.computed)
    err = np.where(x.err == 0, 0.0, np.minimum(np.ceil(x.err), most - least))
    return Enclosure(cut(x.lo), cut(x.hi), err)


_UNITS = {o.exp: 2, o.expm1: 2, o.log: 2, o.log1p: 4, o.tanh: 10, o.sigmoid: 5, o.erf: 12,
          o.sqrt: 1, o.atan: 3}  # twice docs/numerics.md's, in halves of a unit in the last place
_RISING: dict[Op, tuple[Callable[..., Any], Callable[[Array, Array], Array]]] = {
    o.exp: (np.exp, lambda lo, hi: np.exp(hi)),
    o.expm1: (np.expm1, lambda lo, hi: np.exp(hi)),
    o.log: (np.log, lambda lo, hi: np.where(lo > 0, 1 / lo, np.inf)),
    o.log1p: (np.log1p, lambda lo, hi: np.where(lo > -1, 1 / (1 + lo), np.inf)),
    o.sqrt: (np.sqrt, lambda lo, hi: np.where(lo > 0, 0.5 / np.sqrt(np.maximum(lo, 1e-300)),
                                              np.inf)),
    o.tanh: (np.tanh, lambda lo, hi: np.ones_like(lo)),
    o.atan: (np.arctan, lambda lo, hi: np.ones_like(lo)),
    o.sigmoid: (lambda x: 1 / (1 + np.exp(-x)), lambda lo, hi: np.full_like(lo, 0.25)),
    o.erf: (np.vectorize(math.erf, otypes=[np.float64]),
            lambda lo, hi: np.full_like(lo, 2 / np.sqrt(np.pi)))}


def _risen(node: Node, xs: Operands, p: Precision) -> Enclosure:
    f, slope = _RISING[node.op]
    return rounded(rising(f, slope, xs[0]), p, _UNITS[node.op])


def _compared(node: Node, xs: Operands, _: Precision) -> Enclosure:
    """0 or 1, and between them where the numbers, or the computed ones, may be on either side."""
    (al, ah), (bl, bh) = (x.computed for x in xs)
    if node.op in (o.gt, o.ge):
        al, ah, bl, bh = bl, bh, al, ah
    if node.op in (o.lt, o.gt):
        sure, never = ah < bl, al >= bh
    elif node.op in (o.le, o.ge):
        sure, never = ah <= bl, al > bh
    else:
        sure, never = (al == ah) & (al == bl) & (al == bh), (ah < bl) | (al > bh)
    if node.op is o.ne:
        sure, never = never, sure
    lo, hi = sure.astype(float), 1.0 - never
    return Enclosure(lo, hi, np.where((xs[0].err == 0) & (xs[1].err == 0), 0.0, hi - lo))


def _no_number(_: Node, xs: Operands, __: Precision) -> Enclosure:
    """Whether a number is NaN or infinite: only one without a bound may be."""
    open_ = 1.0 - np.isfinite(xs[0].most)
    return Enclosure(0 * open_, open_, open_)


def _denied(_: Node, xs: Operands, __: Precision) -> Enclosure:
    (x,) = xs
    return Enclosure(1 - x.hi, 1 - x.lo, x.err)


def _chosen(_: Node, xs: Operands, p: Precision) -> Enclosure:
    """One of two numbers; where errors decide which, the computed may be the other one. In real
    arithmetic the number is then between them, and its error half of what is between them."""
    chosen, a, b = xs
    first, second = chosen.computed[0] >= 1, chosen.computed[1] <= 0
    def of(x: Array, y: Array, both: Array) -> Array:
        return np.where(first, x, np.where(second, y, both))
    (al, ah), (bl, bh) = a.computed, b.computed
    low, high = np.minimum(al, bl), np.maximum(ah, bh)
    if p is EXACT:
        middle = (low + high) / 2
        return enclosed(of(a.lo, b.lo, middle), of(a.hi, b.hi, middle),
                        of(a.err, b.err, (high - low) / 2))
    both = np.where(chosen.err == 0, np.maximum(a.err, b.err), high - low)
    return enclosed(of(a.lo, b.lo, np.minimum(a.lo, b.lo)), of(a.hi, b.hi, np.maximum(a.hi, b.hi)),
                    of(a.err, b.err, both))


LOGIC: dict[Op, Meaning] = {
    **dict.fromkeys((o.lt, o.le, o.gt, o.ge, o.eq, o.ne), _compared),
    o.and_: _extreme(False), o.or_: _extreme(True), o.not_: _denied,
    o.is_nan: _no_number, o.is_inf: _no_number}
MEANING: dict[Op, Meaning] = {
    **LOGIC, o.select: _chosen,
    o.add: _added, o.sub: lambda n, xs, p: rounded(added(xs[0], negative(xs[1])), p),
    o.mul: _product_of, o.div: lambda n, xs, p: rounded(multiplied(xs[0], inverse(xs[1])), p, 1),
    o.neg: lambda n, xs, p: negative(xs[0]), o.max: _extreme(True), o.min: _extreme(False),
    o.matmul: _contraction, o.conv: _contraction, o.reduce_sum: _sum_of,
    o.reduce_max: _reduced(True), o.reduce_min: _reduced(False), o.reduce_window: _windows,
    o.softmax: _softmax, o.layer_norm: _norm(True), o.rms_norm: _norm(False), o.relu: _relu,
    o.clamp: _clamped, o.cast: _cast, o.round: _whole, **dict.fromkeys(_RISING, _risen)}
