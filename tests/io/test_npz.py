"""Arrays through files: any names, any element types, the same bytes each time, no pickles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool.dtypes import TABLE
from graphtool.errors import InputError
from graphtool.io import npz

NAMES = ["x", "file", "a/b", "h.3.attn", "Ünïcode ✓", "with space", "x.npy", "self"]


def test_any_names(tmp_path: Path) -> None:
    arrays = {n: np.full((2, 3), i) for i, n in enumerate(NAMES)}
    npz.save(arrays, tmp_path / "a.npz")
    found = npz.load(tmp_path / "a.npz")
    assert {n: x[0, 0] for n, x in found.items()} == {n: i for i, n in enumerate(NAMES)}
    assert (tmp_path / "a.npz").read_bytes() == npz.dumps(arrays)


@pytest.mark.parametrize("row", TABLE, ids=lambda r: r.short)
def test_element_types(row: object, tmp_path: Path) -> None:
    x = np.array([0, 1, 1, 0]).astype(row.numpy)  # type: ignore[attr-defined]
    npz.save({"x": x}, tmp_path / "x.npy")
    found = npz.load(tmp_path / "x.npy")["x"]
    assert found.tobytes() == x.tobytes() and found.dtype == x.dtype


def test_numpy_reads_what_we_write(tmp_path: Path) -> None:
    npz.save({"x": np.arange(3), "s": np.float32(2)}, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as found:
        assert found["x"].tolist() == [0, 1, 2] and found["s"].shape == ()


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"\x93NUMPY", b"\x93NUMPY\1\0\xff\xff{"])
def test_foreign_files(data: bytes) -> None:
    with pytest.raises(InputError, match="not an"):
        npz.loads(data, "x")


def test_the_other_byte_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3, dtype=">f4"))
    assert npz.load(tmp_path / "a.npz")["x"].dtype == np.float32


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match="plain arrays"):
        npz.load(tmp_path / "p.npy")


def test_one_array_in_an_npy_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds one array, 2 to write"):
        npz.save({"a": np.ones(1), "b": np.ones(1)}, tmp_path / "x.npy")
