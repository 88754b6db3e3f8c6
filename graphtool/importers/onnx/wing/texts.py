"""Operators on texts: strings, names of classes, n-grams; and on encoded images. Operators that
only move elements take strings in the other families."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from graphtool.importers.onnx.driver.computed import entry, fresh
from graphtool.importers.onnx.kit import Refused, dtypes, o, onnx_op
from graphtool.io.weights import Array
from graphtool.ops.strings import CHANNELS
from graphtool.symbolic import known, maximum, minimum, product

# ---- strings and encoded images -----------------------------------------------------------------

@onnx_op("StringSplit", since=20, fold=False)
def string_split(x: Any, *, delimiter: str = "", maxsplit: int | None = None) -> Any:
    """`string_split`: the parts of each string, and how many there are. Their number is
    symbolic."""
    return o.string_split(x, delimiter=delimiter, most=maxsplit, size=fresh(x, None))


@onnx_op("StringNormalizer", since=10, fold=False)
def string_normalizer(x: Any, *, case_change_action: str = "NONE", is_case_sensitive: int = 0,
                      locale: str = "", stopwords: Any = None) -> Any:
    """`string_normalize`. Upper and lower case follow Unicode whatever the locale is."""
    return o.string_normalize(x, case=case_change_action, stopwords=stopwords or (),
                              case_sensitive=bool(is_case_sensitive),
                              size=fresh(x, maximum(product(x.shape), 1)))


@onnx_op("Tokenizer", domain="com.microsoft", fold=False)
def tokenizer(x: Any, *, mark: int, mincharnum: int, pad_value: str, separators: Any = None,
              stopwords: Any = None, tokenexp: str = "") -> Any:
    """`string_tokens`; single letters if the only separator is the empty string."""
    if stopwords:
        raise Refused("a tokenizer with stop words is not supported")
    letters = not tokenexp and tuple(separators or ("",)) == ("",)
    return o.string_tokens(x, tokens="(?s)." if letters else tokenexp,
                           separators=() if letters or tokenexp else separators, least=mincharnum,
                           marks=bool(mark), fill=pad_value, size=fresh(x, None))


@onnx_op("ImageDecoder", since=20, fold=False)
def image_decoder(x: Any, *, pixel_format: str = "RGB") -> Any:
    """`decode_image`, u8[H, W, channels]. `image_shape` reads the sizes at run time."""
    if pixel_format not in CHANNELS:
        raise Refused(f"the pixel_format {pixel_format!r} is not supported")
    size = o.image_shape(x, pixels=pixel_format)
    shape = (entry(size, 0), entry(size, 1), CHANNELS[pixel_format])
    return o.decode_image(x, shape=shape, pixels=pixel_format)


# ---- names of classes ---------------------------------------------------------------------------

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
    first = next(((row, kind) for row, kind in rows if row is not None), None)
    if first is None:
        raise Refused("an encoder without keys or values is not supported")
    return np.asarray(first[0], first[1])


def looked_up(x: Any, keys: Array, values: Array, default: Any) -> Any:
    """The value whose key equals x, else the default: `eq` with all keys, `arg_reduce`, `gather`.

    A NaN equals a NaN here.
    """
    row = keys if keys.dtype == x.dtype.numpy else keys.astype(x.dtype.numpy)
    wide = x.unsqueeze()
    match = o.eq(wide, x.builder.constant(row))
    if x.dtype.is_float and np.isnan(row).any():
        match = match | o.is_nan(wide) & x.builder.constant(np.isnan(row))
    index = o.arg_reduce(match.cast(dtypes.int8), kind="max", axis=x.ndim)
    none = ~o.reduce_or(match, axes=(x.ndim,)).reshape(tuple(x.shape))
    fallback = np.full((1,) * x.ndim, np.asarray(default).reshape(-1)[0], values.dtype)
    return o.select(none, x.builder.constant(fallback), at(values, index, x))


# ---- n-grams ------------------------------------------------------------------------------------

@onnx_op("TfIdfVectorizer", since=9)
def tfidf_vectorizer(x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
                     mode: str, ngram_counts: Any, ngram_indexes: Any, pool_int64s: Any = None,
                     pool_strings: Any = None, weights: Any = None) -> Any:
    """How often each n-gram of the pool occurs in a row, with up to max_skip_count items between
    its members.

    The counts are `eq`, `reduce_sum` and a `matmul` that sorts them into their columns.
    """
    words = x.dtype is dtypes.string
    given = pool_strings if words else pool_int64s
    if given is None:
        raise Refused(f"the operator has no pool of n-grams for elements of type {x.dtype.short}")
    pool = np.asarray(given, dtypes.string.numpy if words else np.int64)
    rows = x if x.ndim == 2 else x.reshape((1, x.shape[0]))
    counts = None
    for n, (first, last) in enumerate(zip(ngram_counts, (*ngram_counts[1:], len(pool)),
                                          strict=True), 1):
        grams = pool[first:last].reshape(-1, n)
        done = sum((b - a) // k for k, (a, b) in enumerate(
            pairwise(ngram_counts[:n]), 1))
        if not min_gram_length <= n <= max_gram_length or not len(grams):
            continue
        place = np.zeros((len(grams), max(ngram_indexes) + 1), np.float32)
        place[np.arange(len(grams)), ngram_indexes[done:done + len(grams)]] = 1
        for step in range(1, max_skip_count + 2 if n > 1 else 2):
            if known(rows.shape[1], "<=", (n - 1) * step) is True:
                continue
            part = o.matmul(_matches(rows, step, grams), x.builder.constant(place))
            counts = part if counts is None else counts + part
    if counts is None:
        counts = o.broadcast(x.builder.constant(np.zeros((1, 1), np.float32)),
                             shape=(rows.shape[0], max(ngram_indexes) + 1))
    return _weighted(counts, mode, weights, ngram_indexes, x)


def _matches(rows: Any, step: int, grams: Array) -> Any:
    """How often each n-gram occurs in a row if its items are `step` positions apart,
    [rows, grams]."""
    length, n = rows.shape[1], grams.shape[1]
    count = maximum(length - (n - 1) * step, 0)
    every: Any = None
    for k in range(n):
        start = minimum(k * step, length)  # beyond the end there are no places
        seen = rows.take(1, start, start + count).reshape((rows.shape[0], count, 1))
        item = grams[:, k].reshape(1, 1, -1).astype(rows.dtype.numpy)
        match = o.eq(seen, rows.builder.constant(item))
        every = match if every is None else every & match
    total = o.reduce_sum(every.cast(dtypes.float32), axes=(1,))
    return total.reshape((rows.shape[0], len(grams)))


def _weighted(counts: Any, mode: str, weights: Any, indexes: Any, x: Any) -> Any:
    scale = np.ones(max(indexes) + 1, np.float32)
    if weights is not None:
        scale[list(indexes)] = weights
    present = (counts > 0.0).cast(dtypes.float32)
    y = {"TF": counts, "IDF": present, "TFIDF": counts}[mode]
    y = y if mode == "TF" or weights is None else y * x.builder.constant(scale)
    return y if x.ndim == 2 else y.reshape((y.shape[1],))
