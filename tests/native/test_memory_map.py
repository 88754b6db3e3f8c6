"""Room for an arena: as large as asked for, its start where huge pages begin."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from graphtool.errors import InputError
from graphtool.native import memory_map


@pytest.mark.parametrize(
    "size", [1, 64, memory_map.HUGE - 1, memory_map.HUGE, 3 * memory_map.HUGE + 5])
def test_room_is_as_large_as_asked_for(size: int) -> None:
    room = memory_map.room(size)
    room[:] = 1
    assert room.size == size and room.sum() == size
    assert size < memory_map.HUGE or int(room.ctypes.data) % memory_map.HUGE == 0


@pytest.mark.parametrize("kind", ["bool", "float32", "int64"])
def test_a_large_result_begins_with_a_line_of_the_cache(kind: str) -> None:
    for shape in ((), (0, 3), (3,), (257, 129, 3)):
        y = memory_map.result(shape, np.dtype(kind))
        y[...] = 1
        assert (y.shape, y.dtype, y.flags.carray) == (shape, np.dtype(kind), True)
    assert int(y.ctypes.data) % memory_map.ALIGN == 0 and (y == 1).all()


def test_a_refusal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(mmap, "MADV_HUGEPAGE"):
        monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345)  # no such advice
    assert memory_map.room(memory_map.HUGE).size == memory_map.HUGE


def weights_file(path: Path, data: bytes) -> Path:
    path.write_bytes((56).to_bytes(8, "little") + b" " * 56 + data)
    return path


@pytest.mark.parametrize(("offset", "size", "told"), [
    (64, 101, "cut short"), (64, 99, "too long"), (0, 100, "begin at byte 64"),
    (-64, 100, "begin at byte 64"), (1 << 40, 100, "begin at byte 64")])
def test_a_file_of_another_size_is_refused(offset: int, size: int, told: str, tmp_path: Path
                                           ) -> None:
    path = weights_file(tmp_path / "w", b"x" * 100)
    with pytest.raises(InputError, match=told) as error:
        memory_map.weights(path, offset, size)
    assert error.value.code == "GT2204"


@pytest.mark.parametrize("size", [100, memory_map.HUGE + 7])
def test_weights_outlive_their_file(size: int, tmp_path: Path) -> None:
    """A mapped file that is cut under the reader would end the process with SIGBUS."""
    data = np.random.default_rng(0).integers(0, 256, size).astype(np.uint8)
    path = weights_file(tmp_path / "w", data.tobytes())
    address, held = memory_map.weights(path, 64, size)
    os.truncate(path, 0)
    assert held is not None and address == int(held.ctypes.data) and address % 64 == 0
    assert np.array_equal(held, data)
