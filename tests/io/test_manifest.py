"""build.json: numbers and indices that cannot be are refused, each by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphtool.errors import InputError
from graphtool.io.manifest import read_manifest

GOLDEN = Path(__file__).parent / "golden" / "build" / "v1" / "model.build.json"
Change = Callable[[dict[str, Any]], object]
CASES: dict[str, tuple[Change, str]] = {
    "before the file": (lambda m: m.update(weights_offset=-64), "weights_offset"),
    "an odd offset": (lambda m: m.update(weights_offset=m["weights_offset"] + 1), "weights_offset"),
    "no bytes": (lambda m: m.update(weights_bytes=-1), "weights_bytes"),
    "more than memory": (lambda m: m.update(weights_bytes=1 << 70), "weights_bytes"),
    "an unknown mode": (lambda m: m.update(weights_mode="tape"), "weights_mode"),
    "no function": (lambda m: m.update(name="a b"), "name"),
    "a step of 0": (lambda m: m["dims"][0].update(step=0), "dims.batch.step"),
    "empty bounds": (lambda m: m["dims"][0].update(min=5, max=2), "dims.batch.min"),
    "a negative size": (lambda m: m["dims"][0].update(min=-1), "dims.batch.min"),
    "two of one name": (lambda m: m["dims"].append(m["dims"][0]), "dims"),
    "a negative shape": (lambda m: m["outputs"][0].update(shape=[-4]), "outputs[0]"),
    "a huge shape": (lambda m: m["inputs"][0].update(shape=[1 << 40, 1 << 40]), "inputs[0]"),
    "inputs of one name": (lambda m: m["inputs"].append(m["inputs"][0]), "inputs"),
    "no such output": (lambda m: m.update(donations=[[9, 0]]), "donations"),
    "no such input": (lambda m: m.update(donations=[[0, -1]]), "donations"),
    "a negative arena": (lambda m: m.update(arena=-1), "arena"),
    "no thread": (lambda m: m.update(threads={"most": 0, "work": 1, "least": 0}), "threads.most")}


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_cannot_be_is_named(case: str, tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text())
    (tmp_path / "build.json").write_text(json.dumps(document))
    read_manifest(tmp_path)
    change, name = CASES[case]
    change(document)
    (tmp_path / "build.json").write_text(json.dumps(document))
    with pytest.raises(InputError) as error:
        read_manifest(tmp_path)
    assert error.value.code == "GT2201"
    assert error.value.message.startswith(f"malformed build.json: {name} is ")


def test_an_unknown_type(tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text())
    document["outputs"][0]["type"] = "f33"
    (tmp_path / "build.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="unknown element type"):
        read_manifest(tmp_path)
