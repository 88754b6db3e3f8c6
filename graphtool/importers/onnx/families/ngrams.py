"""TfIdfVectorizer: each n-gram of the pool is compared at every position of a row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.front import Refused
from graphtool.importers.onnx.driver.registry import onnx_op
from graphtool.io.weights import Array
from graphtool.symbolic import known, maximum, minimum


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
