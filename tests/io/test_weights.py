"""Weights files: data are checked against their hashes, and no damaged file is more than an error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphtool.cli.faults import run as cli
from graphtool.errors import InputError
from graphtool.io import weights
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
