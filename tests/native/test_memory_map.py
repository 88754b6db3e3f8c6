"""Room for an arena: as large as asked for, its start where huge pages begin."""

from __future__ import annotations

import mmap
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


def test_a_refusal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(mmap, "MADV_HUGEPAGE"):
        monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 12345)  # no such advice
    assert memory_map.room(memory_map.HUGE).size == memory_map.HUGE


def test_a_short_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"x" * 10)
    with pytest.raises(InputError, match="cut short"):
        memory_map.mapped(tmp_path / "w", 8, 100)


@pytest.mark.parametrize("more", [0, 7])
def test_large_weights_are_read(tmp_path: Path, more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_map, "READ", 3 << 20)
    data = np.random.default_rng(0).integers(0, 256, (4 << 20) + more).astype(np.uint8)
    (tmp_path / "w").write_bytes(b"12345678" + data.tobytes())
    address, held = memory_map.mapped(tmp_path / "w", 8, data.size)
    assert held is not None and address == int(held.ctypes.data)
    assert np.array_equal(held[:data.size], data)
    with pytest.raises(InputError, match="cut short"):
        memory_map.mapped(tmp_path / "w", 8, data.size + 1)
