"""`ai.onnx.ml` on numbers: scalers, encoders and linear models. Trees are in `trees`."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import cast, dtype_of, reshape, tensor, transpose
from graphtool.ir.op import ops as o
from graphtool.symbolic import product

DOMAIN = "ai.onnx.ml"


def row(values: Any, like: Any) -> Any:
    return tensor(np.asarray(values, dtype_of(like).numpy), like)


@onnx_op("Binarizer", domain=DOMAIN)
def binarizer(x: Any, *, threshold: float = 0.0) -> Any:
    return cast(o.gt(x, threshold if dtype_of(x).is_float else int(threshold)), dtype_of(x))


@onnx_op("ArrayFeatureExtractor", domain=DOMAIN)
def array_feature_extractor(x: Any, indices: Any) -> Any:
    """Columns of the last axis; a vector counts as one row."""
    at = reshape(indices, (indices.shape[-1], 1))
    x = x if x.ndim > 1 else reshape(x, (1, *x.shape))
    y = o.gather(x, at, axes=(x.ndim - 1,))
    return transpose(y, (*range(1, x.ndim), 0))


@onnx_op("Scaler", domain=DOMAIN)
def scaler(x: Any, *, offset: Any, scale: Any) -> Any:
    x = cast(x, dtypes.float32)
    return o.mul(o.sub(x, row(offset, x)), row(scale, x))


@onnx_op("Normalizer", domain=DOMAIN)
def normalizer(x: Any, *, norm: str = "MAX") -> Any:
    x = cast(x, dtypes.float32)
    over = (x.ndim - 1,)
    size = {"MAX": lambda: o.reduce_max(x, axes=over),
            "L1": lambda: o.reduce_sum(o.abs(x), axes=over),
            "L2": lambda: o.sqrt(o.reduce_sum(o.mul(x, x), axes=over))}[norm]()
    return o.div(x, o.select(o.eq(size, 0.0), 1.0, size))


@onnx_op("Imputer", domain=DOMAIN)
def imputer(x: Any, *, imputed_value_floats: Any = None, imputed_value_int64s: Any = None,
            replaced_value_float: float = 0.0, replaced_value_int64: int = 0) -> Any:
    if dtype_of(x).is_float:
        missing = o.is_nan(x) if replaced_value_float != replaced_value_float else o.eq(
            x, replaced_value_float)
        return o.select(missing, row(imputed_value_floats, x), x)
    return o.select(o.eq(x, replaced_value_int64), row(imputed_value_int64s, x), x)


@onnx_op("FeatureVectorizer", domain=DOMAIN)
def feature_vectorizer(*xs: Any, inputdimensions: Any = None) -> Any:
    flat = [cast(reshape(x, (x.shape[0], product(x.shape[1:]))), dtypes.float32) for x in xs]
    return o.concat(*flat, axis=1) if len(flat) > 1 else flat[0]


@onnx_op("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(x: Any, *, cats_int64s: Any, zeros: int = 1) -> Any:
    """A new last axis with 1 where the category is met."""
    wide = reshape(cast(x, dtypes.int64), (*x.shape, 1))
    return cast(o.eq(wide, tensor(np.asarray(cats_int64s, np.int64), x)), dtypes.float32)


@onnx_op("LabelEncoder", since=2, domain=DOMAIN)
def label_encoder(x: Any, *, default_float: float = 0.0, default_int64: int = -1,
                  default_tensor: Any = None, keys_floats: Any = None, keys_int64s: Any = None,
                  keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None,
                  values_tensor: Any = None) -> Any:
    keys = next((k for k in (keys_tensor, keys_int64s, keys_floats) if k is not None), None)
    if keys is None:
        raise Refused("keys that are not numbers")
    if values_tensor is not None:
        values, default = values_tensor, default_tensor
    elif values_floats is not None:
        values, default = np.asarray(values_floats, np.float32), default_float
    elif values_int64s is not None:
        values, default = np.asarray(values_int64s, np.int64), default_int64
    else:
        raise Refused("values that are not numbers")
    fallback = np.asarray(0 if default is None else default, values.dtype).reshape(-1)[:1]
    match = o.eq(reshape(x, (*x.shape, 1)), row(np.asarray(keys), x))
    found = o.arg_reduce(cast(match, dtypes.int8), kind="max", axis=x.ndim)
    hit = o.gather(tensor(np.asarray(values), x), found, axes=(0,))
    none = o.not_(reshape(o.reduce_or(match, axes=(x.ndim,)), tuple(x.shape)))
    return o.select(none, tensor(fallback.reshape((1,) * x.ndim), x), hit)


# ---- linear models -----------------------------------------------------------------------------

def transformed(y: Any, how: str) -> Any:
    match how:
        case "NONE":
            return y
        case "LOGISTIC":
            return o.sigmoid(y)
        case "SOFTMAX":
            return o.softmax(y, axis=y.ndim - 1)
    raise Refused(f"the post transform {how}")


@onnx_op("LinearRegressor", domain=DOMAIN)
def linear_regressor(x: Any, *, coefficients: Any, intercepts: Any = None,
                     post_transform: str = "NONE", targets: int = 1) -> Any:
    x = cast(x, dtypes.float32)
    w = row(coefficients, x)
    y = o.linear(x, reshape(w, (targets, len(coefficients) // targets)))
    return transformed(y if intercepts is None else o.add(y, row(intercepts, x)),
                        post_transform)


@onnx_op("LinearClassifier", domain=DOMAIN)
def linear_classifier(x: Any, *, classlabels_ints: Any, coefficients: Any, intercepts: Any,
                      multi_class: int = 0, post_transform: str = "NONE") -> Any:
    x = cast(x, dtypes.float32)
    rows = len(intercepts)
    if rows != len(classlabels_ints):
        raise Refused("a binary classifier with one score")
    w = reshape(row(coefficients, x), (rows, len(coefficients) // rows))
    scores = o.add(o.linear(x, w), row(intercepts, x))
    best = o.arg_reduce(scores, kind="max", axis=1)
    labels = o.gather(tensor(np.asarray(classlabels_ints, np.int64), x), best, axes=(0,))
    return labels, transformed(scores, post_transform)
