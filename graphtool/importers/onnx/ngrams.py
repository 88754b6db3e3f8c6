"""TfIdfVectorizer on numbers: each n-gram of the pool is compared at every place of a row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.importers.onnx.registry import Refused, onnx_op
from graphtool.importers.onnx.values import cast, dtype_of, reshape, tensor
from graphtool.ir.op import ops as o
from graphtool.weights import Array


@onnx_op("TfIdfVectorizer", since=9)
def tfidf_vectorizer(x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int,
                     mode: str, ngram_counts: Any, ngram_indexes: Any, pool_int64s: Any = None,
                     pool_strings: Any = None, weights: Any = None) -> Any:
    """How often each n-gram of the pool stands in a row, with up to max_skip_count gaps."""
    if pool_int64s is None or not isinstance(x.shape[-1], int):
        raise Refused("n-grams of strings, or of a symbolic length")
    rows = x if x.ndim == 2 else reshape(x, (1, x.shape[0]))
    length, counts = rows.shape[1], None
    for n, (first, last) in enumerate(zip(ngram_counts, (*ngram_counts[1:], len(pool_int64s)),
                                          strict=True), 1):
        grams = np.asarray(pool_int64s[first:last], np.int64).reshape(-1, n)
        done = sum((b - a) // k for k, (a, b) in enumerate(
            pairwise(ngram_counts[:n]), 1))
        if not min_gram_length <= n <= max_gram_length or not len(grams):
            continue
        place = np.zeros((len(grams), max(ngram_indexes) + 1), np.float32)
        place[np.arange(len(grams)), ngram_indexes[done:done + len(grams)]] = 1
        for skip in range(max_skip_count + 1 if n > 1 else 1):
            at = np.arange(length)[:, None] + np.arange(n)[None] * (skip + 1)
            at = at[at[:, -1] < length]
            if not len(at):
                continue
            found = _matches(rows, at, grams)
            part = o.matmul(found, tensor(place, x))
            counts = part if counts is None else o.add(counts, part)
    if counts is None:
        counts = o.broadcast(tensor(np.zeros((1, 1), np.float32), x),
                             shape=(rows.shape[0], max(ngram_indexes) + 1))
    return _weighted(counts, mode, weights, ngram_indexes, x)


def _matches(rows: Any, at: Array, grams: Array) -> Any:
    """[rows, grams]: at how many of the places `at` each gram stands."""
    seen = o.gather(rows, tensor(at.reshape(-1, 1), rows), axes=(1,))  # [places·n, rows]
    seen = reshape(seen, (*at.shape, rows.shape[0], 1))
    pool = tensor(grams.T.reshape(1, at.shape[1], 1, -1).astype(dtype_of(rows).numpy), rows)
    every = o.reduce_and(o.eq(seen, pool), axes=(1,))
    total = o.reduce_sum(cast(every, dtypes.float32), axes=(0,))
    return reshape(total, (rows.shape[0], len(grams)))


def _weighted(counts: Any, mode: str, weights: Any, indexes: Any, x: Any) -> Any:
    scale = np.ones(max(indexes) + 1, np.float32)
    if weights is not None:
        scale[list(indexes)] = weights
    present = cast(o.gt(counts, 0.0), dtypes.float32)
    y = {"TF": counts, "IDF": present, "TFIDF": counts}[mode]
    y = y if mode == "TF" or weights is None else o.mul(y, tensor(scale, x))
    return y if x.ndim == 2 else reshape(y, (y.shape[1],))
