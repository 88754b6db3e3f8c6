"""Weights files: data are checked against their hashes, and no damaged file is more than an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.cli.faults import run as cli
from graphtool.errors import InputError
from graphtool.io import host, weights
from graphtool.ir import serial
from tests.io.test_crashes import model


def saved(path: Path) -> Path:
    serial.save(model(1), path / "m.graph.json")
    return path / "m.safetensors"


def test_damaged_data_are_named_when_they_are_used(tmp_path: Path) -> None:
    file = saved(tmp_path)
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    found = list(weights.load(file).values())
    assert sorted(map(weights.intact, found)) == [False, True]
    with pytest.raises(InputError) as error:
        for w in found:
            _ = w.source
    assert error.value.code == "GT0321" and str(file) in (error.value.where or "")


@pytest.mark.compiled
@pytest.mark.parametrize(("verb", "code"), [
    ("show {}", 3), ("diff {} {}", 0), ("eval {} --random", 3), ("opt {} -o {}.x.graph.json", 3),
    ("build {} -o {}.b", 3), ("lower {} -o {}.program.json", 3)])
def test_verbs_that_use_damaged_data(verb: str, code: int, tmp_path: Path,
                                     capsys: pytest.CaptureFixture[str]) -> None:
    file = saved(tmp_path)
    data = bytearray(file.read_bytes())
    data[-100] ^= 1
    file.write_bytes(data)
    graph = str(tmp_path / "m.graph.json")
    assert cli(verb.replace("{}", graph).split()) == code
    assert ("GT0321" in capsys.readouterr().err) == (code == 3)


def test_a_weight_in_memory_is_as_it_was_made() -> None:
    w = weights.weight(np.arange(4))
    assert weights.intact(w) and w.nbytes == 32


def resident() -> int:
    """Pages of files, in bytes, in this process's memory."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(r.split()[1]) for r in rows if r.startswith("RssFile")) << 10


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says what is resident")
@pytest.mark.parametrize("mapped", [
    lambda p: np.memmap(p, np.uint8, "r", 5, (8 << 20,)),
    lambda p: np.frombuffer(host.contents(p), np.uint8)[5:]])
def test_pages_of_a_mapped_weight_are_let_go(mapped: Any, tmp_path: Path) -> None:
    file = tmp_path / "data"
    np.arange((8 << 20) + 5, dtype=np.uint8).tofile(file)
    data = mapped(file)
    first = int(data.sum())
    before = resident()
    weights.let_go(data)
    assert before - resident() >= 7 << 20
    assert int(data.sum()) == first
    own = np.arange(1 << 20)
    weights.let_go(own)
    assert own[-1] == len(own) - 1
