"""Scalers, linear models and support vector machines of `ai.onnx.ml`, with the class probabilities
that libsvm iterates from those of all pairs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from graphtool.importers.onnx.kit import Refused, dtypes, o, onnx_op, product, trace
from graphtool.importers.onnx.wing import texts
from graphtool.ir.graph import TensorType

# ---- probabilities of pairs of classes ----------------------------------------------------------

SWEEPS, CLOSE, LEAST = 100, 0.005, 1e-7  # libsvm's, and onnxruntime's


def coupled(shares: Any, classes: int) -> Any:
    """The class probabilities [N, classes] as a `while`, from `shares` [N, pairs]: the probability
    of the first class of each pair."""
    rows, k = shares.shape[0], classes
    held = o.clamp(shares, LEAST, 1.0 - LEAST)
    mine, other = (_placed(classes, side) for side in ("first", "second"))
    r = o.linear(held, held.builder.constant(mine)) + o.linear(1.0 - held,
        held.builder.constant(other))
    r = r.reshape((rows, k, k))  # r[i, j]; the diagonal is 0
    back = r.transpose((0, 2, 1))
    eye = np.eye(k, dtype=np.float32)
    scaled = held.builder.constant(eye) * o.reduce_sum(back * back, axes=(2,))
    q = scaled - r * back
    lines = q.transpose((1, 0, 2))  # [k, N, k]
    start = o.broadcast(held.builder.constant(np.full((1, 1), 1 / k, np.float32)), shape=(rows, k))
    moving = o.broadcast(held.builder.constant(np.ones((1, 1), np.bool_)), shape=(rows, 1))
    units = held.builder.constant(eye.reshape(k, 1, k))
    given = [start, moving, q, lines, units]
    types = [x.type for x in given]
    moving = moving & ~_settled(start, q)[2]
    return o.while_(start, moving, *given[2:], cond=trace(_goes_on, types),
                    body=trace(_sweep, types), carries=2, bound=SWEEPS)[0]


def _placed(classes: int, side: str) -> Any:
    """A matrix that writes the shares of pairs to [i, j], or to [j, i] for the second class."""
    pairs = list(itertools.combinations(range(classes), 2))
    out = np.zeros((classes * classes, len(pairs)), np.float32)
    for n, (i, j) in enumerate(pairs):
        out[i * classes + j if side == "first" else j * classes + i, n] = 1
    return out


def _settled(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Q·p [N, k], pᵀQp [N, 1], and whether p has converged, [N, 1]."""
    rows, k = p.shape
    qp = o.reduce_sum(q * p.reshape((rows, 1, k)), axes=(2,)).reshape((rows, k))
    pqp = o.reduce_sum(p * qp, axes=(1,))
    far = o.reduce_max(abs(qp - pqp), axes=(1,))
    return qp, pqp, far < CLOSE / k


def _goes_on(p: Any, moving: Any, *_: Any) -> Any:
    return o.reduce_or(moving, axes=(0, 1)).reshape(())


def _sweep(p: Any, moving: Any, q: Any, lines: Any, units: Any) -> Any:
    """One update of each pₜ in turn; rows that have converged are kept."""
    qp, pqp, _ = _settled(p, q)
    rows, k = p.shape
    row = TensorType(dtypes.float32, (1, k))
    types = [p.type, qp.type, pqp.type, TensorType(dtypes.float32, (rows, k)), row]
    new, _, _ = o.scan(p, qp, pqp, lines, units, body=trace(_step, types), carries=3, xs=2,
                       length=k)
    new = o.select(moving, new, p)
    return new, moving & ~_settled(new, q)[2]


def _step(p: Any, qp: Any, pqp: Any, line: Any, unit: Any) -> Any:
    """The update of one coordinate, where `line` is its row of Q; then p is divided by its sum."""
    length = o.reduce_sum(line * unit, axes=(1,))
    there = o.reduce_sum(qp * unit, axes=(1,))
    by = (pqp - there) / length
    whole = by + 1.0
    pqp = (pqp + by * (by * length + there * 2.0)) / whole / whole
    return ((p + unit * by) / whole, (qp + line * by) / whole, pqp)


DOMAIN = "ai.onnx.ml"


def row(values: Any, like: Any) -> Any:
    """A constant of these values with the dtype of `like`."""
    return like.builder.constant(np.asarray(values, like.dtype.numpy))


@onnx_op("Binarizer", domain=DOMAIN)
def binarizer(x: Any, *, threshold: float = 0.0) -> Any:
    """1 where x is above the threshold, else 0, in x's dtype: `gt`, then `cast`."""
    return (x > (threshold if x.dtype.is_float else int(threshold))).cast(x.dtype)


@onnx_op("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(x: Any, indices: Any) -> Any:
    """The named columns of the last axis, as a `gather`; a vector counts as one row."""
    at = indices.reshape((product(indices.shape), 1))
    x = x if x.ndim > 1 else x.unsqueeze(0)
    y = o.gather(x, at, axes=(x.ndim - 1,))
    return y.transpose((*range(1, x.ndim), 0))


@onnx_op("Scaler", domain=DOMAIN)
def scaler(x: Any, *, offset: Any, scale: Any) -> Any:
    """(x − offset) · scale in float32; both have one entry for each feature or one for all."""
    x = x.cast(dtypes.float32)
    return (x - row(offset, x)) * row(scale, x)


@onnx_op("Normalizer", domain=DOMAIN)
def normalizer(x: Any, *, norm: str = "MAX") -> Any:
    """x divided by the norm of its last axis, in float32; a row of norm 0 is unchanged."""
    x = x.cast(dtypes.float32)
    over = (x.ndim - 1,)
    size = {"MAX": lambda: o.reduce_max(x, axes=over),
            "L1": lambda: o.reduce_sum(abs(x), axes=over),
            "L2": lambda: o.sqrt(o.reduce_sum(x * x, axes=over))}[norm]()
    return x / o.select(o.eq(size, 0.0), 1.0, size)


@onnx_op("Imputer", domain=DOMAIN)
def imputer(x: Any, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Any:
    """A `select` that replaces one value (or NaN) by the given values."""
    if x.dtype.is_float:
        missing = o.is_nan(x) if replaced_value_float != replaced_value_float else o.eq(
            x, replaced_value_float)
        return o.select(missing, row(imputed_value_floats, x), x)
    return o.select(o.eq(x, replaced_value_int64), row(imputed_value_int64s, x), x)


@onnx_op("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*xs: Any, inputdimensions: Any = None) -> Any:
    """All inputs flattened to [N, features] in float32, as one `concat` along axis 1."""
    flat = [x.reshape((x.shape[0], product(x.shape[1:]))).cast(dtypes.float32) for x in xs]
    return o.concat(*flat, axis=1) if len(flat) > 1 else flat[0]


# ---- what scores become -------------------------------------------------------------------------

def transformed(y: Any, how: str) -> Any:
    """The scores y after ONNX's post transform `how`. Raises Refused for an unknown name."""
    match how:
        case "NONE":
            return y
        case "LOGISTIC":
            return o.sigmoid(y)
        case "SOFTMAX":
            return o.softmax(y, axis=y.ndim - 1)
        case "SOFTMAX_ZERO":  # scores of 0 stay 0, and count for nothing
            zero = o.eq(y, 0.0)
            e = o.select(zero, 0.0, o.exp(o.sub(y, o.reduce_max(y, axes=(y.ndim - 1,)))))
            return o.div(e, o.reduce_sum(e, axes=(y.ndim - 1,)))
        case "PROBIT":
            return o.mul(o.erf_inv(o.sub(o.mul(y, 2.0), 1.0)), math.sqrt(2.0))
    raise Refused(f"the post_transform {how!r} is not supported")


def labelled(y: Any, names: Any, how: str, shares: bool) -> Any:
    """The label of each row, and its scores.

    If two classes have one score, it belongs to the second class. With `shares` it is a probability
    and the first class has the rest to 1; otherwise it is a margin and the first class has its
    negative.
    """
    if y.shape[1] > 1:
        best = o.arg_reduce(y, kind="max", axis=1)
        return [texts.at(names, best, y), transformed(y, how)]
    yes = (y.reshape((y.shape[0],)) > (0.5 if shares else 0.0)).cast(dtypes.int64)
    label = texts.at(names, yes.reshape((y.shape[0], 1)), y)
    both = o.concat(-y, y, axis=1)
    match how:
        case "LOGISTIC":
            return [label, o.sigmoid(both)]
        case "PROBIT":
            return [label, transformed(o.concat(o.sub(1.0, y), y, axis=1), how)]
    return [label, o.concat(1.0 - y, y, axis=1) if shares else both]


# ---- linear models -----------------------------------------------------------------------------

@onnx_op("LinearRegressor", domain=DOMAIN)
def linear_regressor(x: Any, *, coefficients: Any, intercepts: Any = None,
                     post_transform: str = "NONE", targets: int = 1) -> Any:
    """`linear` with constant weights [targets, features], then the post transform,
    f32[N, targets]."""
    x = x.cast(dtypes.float32)
    w = row(coefficients, x)
    y = o.linear(x, w.reshape((targets, len(coefficients) // targets)))
    return transformed(y if intercepts is None else y + row(intercepts, x), post_transform)


@onnx_op("LinearClassifier", domain=DOMAIN)
def linear_classifier(x: Any, *, classlabels_ints: Any = None, classlabels_strings: Any = None,
                      coefficients: Any, intercepts: Any = None, multi_class: int = 0,
                      post_transform: str = "NONE") -> Any:
    """The label [N] and the scores [N, classes] of a `linear` with constant weights."""
    names = texts.of(classlabels_ints, classlabels_strings)
    x = x.cast(dtypes.float32)
    rows = len(intercepts) if intercepts else len(coefficients) // int(x.shape[1])
    w = row(coefficients, x).reshape((rows, len(coefficients) // rows))
    y = o.linear(x, w)
    y = y if not intercepts else y + row(intercepts, x)
    if rows > 1:
        return labelled(y, names, post_transform, False)
    label, _ = labelled(y, names, "NONE", False)
    if len(names) == 1:
        return [label, transformed(y, post_transform)]
    y = transformed(y, "LOGISTIC") if post_transform == "LOGISTIC" else y
    return [label, o.concat(1.0 - y, y, axis=1)]


# ---- support vector machines -------------------------------------------------------------------

def _kernel(x: Any, vectors: Any, kind: str, params: Any) -> Any:
    """The kernel function of each row of x and each support vector, [N, vectors]."""
    gamma, offset, degree = (*params, 0.0, 0.0, 0.0)[:3] if params else (0.0, 0.0, 0.0)
    if kind == "RBF":
        square = o.reduce_sum(x * x, axes=(1,)) + row((vectors * vectors).sum(1), x) - o.linear(x,
            row(vectors, x)) * 2.0
        return o.exp(o.max(square, 0.0) * -gamma)
    dot = o.linear(x, row(vectors, x))
    if kind == "LINEAR":
        return dot
    dot = dot * gamma + offset
    match kind:
        case "POLY":
            return o.pow(dot, degree)
        case "SIGMOID":
            return o.tanh(dot)
    raise Refused(f"the kernel_type {kind!r} is not supported")


@onnx_op("SVMRegressor", domain=DOMAIN)
def svm_regressor(x: Any, *, coefficients: Any, kernel_params: Any = None,
                  kernel_type: str = "LINEAR", n_supports: int = 0, one_class: int = 0,
                  post_transform: str = "NONE", rho: Any, support_vectors: Any = None) -> Any:
    """The kernel values times the coefficients (a `linear`) plus rho, f32[N, 1].

    With `one_class` it is 1 or −1 by the sign.
    """
    x = x.cast(dtypes.float32)
    like = x
    if n_supports:
        vectors = np.reshape(np.asarray(support_vectors), (n_supports, -1))
        like = _kernel(x, vectors, kernel_type, kernel_params)
    y = o.linear(like, row(coefficients, x).reshape((1, len(coefficients)))) + rho[0]
    if one_class:
        return o.select(y > 0.0, x.builder.constant(np.ones((1, 1), np.float32)), -1.0)
    return transformed(y, post_transform)


@onnx_op("SVMClassifier", domain=DOMAIN)
def svm_classifier(x: Any, *, classlabels_ints: Any = None, classlabels_strings: Any = None,
                   coefficients: Any, kernel_params: Any = None, kernel_type: str = "LINEAR",
                   post_transform: str = "NONE", prob_a: Any = None, prob_b: Any = None, rho: Any,
                   support_vectors: Any = None, vectors_per_class: Any = None) -> Any:
    """The label [N] and the scores of a support vector machine.

    Each pair of classes has a margin, computed as one `linear` over the kernel values. The margin's
    sign is a vote for one class of the pair, and the class with most votes is the label.
    """
    names = texts.of(classlabels_ints, classlabels_strings)
    x, classes = x.cast(dtypes.float32), len(names)
    if not vectors_per_class:
        w = np.reshape(np.asarray(coefficients), (classes, -1))
        return labelled(o.linear(x, row(w, x)) + rho[0], names, post_transform, False)
    count = sum(vectors_per_class)
    pairs = _pairs(np.reshape(np.asarray(coefficients), (classes - 1, count)), vectors_per_class)
    vectors = np.reshape(np.asarray(support_vectors), (count, -1))
    margins = o.linear(_kernel(x, vectors, kernel_type, kernel_params), row(pairs, x)) + row(rho, x)
    best = o.arg_reduce(_votes(margins, classes), kind="max", axis=1)
    scores = margins if classes > 2 else o.concat(-margins, margins, axis=1)
    if prob_a:  # of two classes as well: the iteration ends before it has their exact shares
        far = margins * row(prob_a, x) + row(prob_b, x)
        scores = coupled(1.0 - o.sigmoid(far), classes)
    return [texts.at(names, best, x), transformed(scores, post_transform)]


def _pairs(coefficients: Any, sizes: Any) -> Any:
    """The weight of each support vector in the margin of each pair of classes, [pairs, vectors]."""
    starts = np.cumsum((0, *sizes))
    out = []
    for i, j in itertools.combinations(range(len(sizes)), 2):
        line = np.zeros(coefficients.shape[1])
        for mine, other in ((i, j - 1), (j, i)):
            part = slice(starts[mine], starts[mine + 1])
            line[part] = coefficients[other, part]
        out.append(line)
    return np.stack(out)


def _votes(margins: Any, classes: int) -> Any:
    """How many pairs each class wins. A margin above 0 is a vote for the first class of its
    pair."""
    first, second = (np.zeros((classes, margins.shape[1]), np.float32) for _ in range(2))
    for pair, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        first[i, pair] = second[j, pair] = 1
    won = (margins > 0.0).cast(dtypes.float32)
    return o.linear(won, margins.builder.constant(first)) + o.linear(1.0 - won,
        margins.builder.constant(second))
