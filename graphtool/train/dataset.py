"""The examples: arrays by name, split and ordered by a seed, cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.dtypes import converted, dtype
from graphtool.errors import InputError, listed
from graphtool.io import npz
from graphtool.train.model import TrainModel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Data:
    """Arrays with one example for each index of axis 0, and the indices that train and validate;
    if `held` is given, the validation indices are indices of its arrays."""

    arrays: Mapping[str, Array]
    train: Array
    val: Array
    held: Mapping[str, Array] | None = None

    def batch(self, rows: Array) -> dict[str, Array]:
        """The arrays of the training examples `rows`, by name."""
        return {n: a[rows] for n, a in self.arrays.items()}

    def held_back(self, rows: Array) -> dict[str, Array]:
        """The arrays of some validation examples, by name."""
        return {n: a[rows] for n, a in (self.held or self.arrays).items()}


def load(path: Path, model: TrainModel, val: float | Path, seed: int, shuffle: bool) -> Data:
    """The data of an .npz file; `val` is the share for validation, or another file with that data.

    Raises InputError GT307x if the data do not fit the model.
    """
    if not isinstance(val, Path):
        return prepared(npz.load(path), model, val, seed, shuffle, str(path))
    data = prepared(npz.load(path), model, 0.0, seed, shuffle, str(path))
    held, n = _arrays(npz.load(val), model, str(val))
    for name, a in held.items():
        if a.shape[1:] != (expected := data.arrays[name].shape)[1:]:
            raise InputError("GT2213", f"{name} has the shape {list(a.shape)}, but the training "
                                       f"data have {list(expected)}", where=str(val))
    return replace(data, val=np.arange(n), held=held)


def prepared(given: Mapping[str, Array], model: TrainModel, val: float, seed: int, shuffle: bool,
             where: str = "") -> Data:
    """The model's arrays in its types, split by the seed, or at the end without `shuffle`."""
    arrays, n = _arrays(given, model, where)
    held = round(n * val)
    if n - held < 1:
        raise InputError("GT3073", f"{n} examples, {held} of them to validate", where=where)
    order = shuffled(seed, 0, n) if shuffle else np.arange(n)
    return Data(arrays, order[:n - held], order[n - held:])


def _arrays(given: Mapping[str, Array], model: TrainModel, where: str) -> tuple[
        dict[str, Array], int]:
    """(the arrays that the model needs, in its dtypes; the number of examples)."""
    missing = [n for n in model.data if n not in given]
    if missing:
        raise InputError("GT3071", f"the data have no array {missing[0]!r}", where=where,
                         hint=f"the model needs {listed(model.data)}; the file has {listed(given)}")
    arrays = {n: _typed(n, given[n], kind, where) for n, kind in model.types().items()}
    counts = {n: len(a) if a.ndim else 0 for n, a in arrays.items()}
    n = min(counts.values())
    if len(set(counts.values())) != 1:
        raise InputError("GT3072", f"the arrays differ in length: {counts}", where=where)
    return arrays, n


def shuffled(seed: int, epoch: int, n: int) -> Array:
    """A permutation of 0 … n − 1, sorted by hashes of seed, epoch and number.

    The hash is our own, not numpy's generator: a resumed run may have another numpy version, and
    the stand-alone program has none (kernels/examples.h has the same hash).
    """
    start = np.array([seed], np.uint64)
    numbers = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9e3779b97f4a7c15)
    keys = _mixed(_mixed(_mixed(start) + np.uint64(epoch)) + numbers)
    return np.argsort(keys, kind="stable")


def _mixed(z: Array) -> Array:
    """The finalizer of splitmix64 (Steele, Lea and Flood 2014)."""
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
    mixed: Array = z ^ z >> np.uint64(31)
    return mixed


def _typed(name: str, a: Array, kind: str, where: str) -> Array:
    x = converted(a, dtype(kind))
    if x is None:
        raise InputError("GT3074", f"{name} is {a.dtype}, {dtype(kind).name} expected", where=where)
    return np.ascontiguousarray(x)


def order_of(data: Data, seed: int, epoch: int, shuffle: bool) -> Array:
    """The training examples in the order of an epoch, which depends on seed and epoch only."""
    if not shuffle:
        return data.train
    return data.train[shuffled(seed, epoch + 1, len(data.train))]


def cuts(count: int, batch: int, fixed: bool, shares: int = 1) -> list[tuple[int, int]]:
    """(start, end) of each batch. A last, smaller batch is left out if the batch size is compiled
    in, or if a process would get one example: batch norm has no variance of one."""
    out = [(i, i + batch) for i in range(0, count - batch + 1, batch)]
    rest = count % batch // shares
    if rest and not fixed and (rest > 1 or not out):
        out.append((count - count % batch, count))
    return out


def padded(rows: Array, batch: int) -> Iterator[tuple[Array, int]]:
    """(rows, count) of each batch of `batch` rows; the last is filled by repetition, and only its
    first `count` rows are examples."""
    for i in range(0, len(rows), batch):
        part = rows[i:i + batch]
        yield np.resize(part, batch), len(part)
