"""Class names, which are numbers or strings: the encoders of `ai.onnx.ml`, and scores by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.io.weights import Array

DOMAIN = "ai.onnx.ml"
_UNUSED = "_Unused"


def of(numbers: Any, words: Any) -> Array:
    """The class names of a classifier, from the attribute that holds them.

    Raises Refused if neither does.
    """
    if numbers:
        return np.asarray(numbers, np.int64)
    if words:
        return np.asarray(words, dtypes.string.numpy)
    raise Refused("a classifier without labels is not supported; give classlabels_ints or "
                  "classlabels_strings")


def at(names: Array, i: Any, like: Any) -> Any:
    """The names at positions i, as a `gather` from a constant."""
    return o.gather(like.builder.constant(names), i, axes=(0,))


@onnx_op("ZipMap", domain=DOMAIN)
def zip_map(x: Any, *, classlabels_int64s: Any = None, classlabels_strings: Any = None) -> Any:
    """The scores unchanged: column i is the entry of label i in ONNX's map."""
    return x


@onnx_op("OneHotEncoder", domain=DOMAIN)
def one_hot_encoder(x: Any, *, cats_int64s: Any = None, cats_strings: Any = None,
                    zeros: int = 1) -> Any:
    """x with a new last axis, 1 at the matching category and else 0: `eq` with a constant."""
    words = x.dtype is dtypes.string
    if (cats_strings if words else cats_int64s) is None:
        raise Refused(f"the operator has no categories for elements of type {x.dtype.short}")
    row = np.asarray(cats_strings, dtypes.string.numpy) if words else np.asarray(
        cats_int64s, np.int64)
    wide = (x if words else x.cast(dtypes.int64)).reshape((*x.shape, 1))
    return o.eq(wide, x.builder.constant(row)).cast(dtypes.float32)


@onnx_op("CategoryMapper", domain=DOMAIN)
def category_mapper(x: Any, *, cats_int64s: Any, cats_strings: Any, default_int64: int = -1,
                    default_string: str = _UNUSED) -> Any:
    """Strings as their numbers, or numbers as their strings; see `looked_up`."""
    words = np.asarray(cats_strings, dtypes.string.numpy)
    numbers = np.asarray(cats_int64s, np.int64)
    if x.dtype is dtypes.string:
        return looked_up(x, words, numbers, default_int64)
    return looked_up(x, numbers, words, default_string)


@onnx_op("LabelEncoder", domain=DOMAIN)
def label_encoder_1(x: Any, *, classes_strings: Any, default_int64: int = -1,
                    default_string: str = _UNUSED) -> Any:
    """Strings as their positions in the list, or positions as strings."""
    return category_mapper(x, cats_int64s=range(len(classes_strings)),
                           cats_strings=classes_strings, default_int64=default_int64,
                           default_string=default_string)


@onnx_op("LabelEncoder", since=2, domain=DOMAIN)
def label_encoder(x: Any, *, default_float: float = -0.0, default_int64: int = -1,
                  default_string: str = _UNUSED, default_tensor: Any = None,
                  keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
                  keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None,
                  values_strings: Any = None, values_tensor: Any = None) -> Any:
    """Each key replaced by its value, from whichever attributes hold them; see `looked_up`."""
    kinds = np.float32, np.int64, dtypes.string.numpy
    keys = _first(keys_tensor, zip((keys_floats, keys_int64s, keys_strings), kinds, strict=True))
    values = _first(values_tensor, zip((values_floats, values_int64s, values_strings), kinds,
                                       strict=True))
    default: Any = {"f": default_float, "i": default_int64, "T": default_string}.get(
        values.dtype.kind, 0)
    if values_tensor is not None and default_tensor is not None:
        default = default_tensor
    return looked_up(x, keys, values, default)


def _first(tensor_form: Any, rows: Any) -> Array:
    if tensor_form is not None:
        return np.asarray(tensor_form)
    found = next(((row, kind) for row, kind in rows if row is not None), None)
    if found is None:
        raise Refused("an encoder without keys or values is not supported")
    return np.asarray(found[0], found[1])


def looked_up(x: Any, keys: Array, values: Array, default: Any) -> Any:
    """The value whose key equals x, else the default: `eq` with all keys, `arg_reduce`, `gather`.

    A NaN equals a NaN here.
    """
    row = keys if keys.dtype == x.dtype.numpy else keys.astype(x.dtype.numpy)
    wide = x.reshape((*x.shape, 1))
    match = o.eq(wide, x.builder.constant(row))
    if x.dtype.is_float and np.isnan(row).any():
        match = match | o.is_nan(wide) & x.builder.constant(np.isnan(row))
    found = o.arg_reduce(match.cast(dtypes.int8), kind="max", axis=x.ndim)
    none = ~o.reduce_or(match, axes=(x.ndim,)).reshape(tuple(x.shape))
    fallback = np.full((1,) * x.ndim, np.asarray(default).reshape(-1)[0], values.dtype)
    return o.select(none, x.builder.constant(fallback), at(values, found, x))
