"""Readers are total: a changed file is read, or refused by one error with a code."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from graphtool.errors import InputError
from graphtool.importers.stablehlo.text.parser import parse
from graphtool.ir import serial
from graphtool.loops import serial as programs
from tests.lab.fuzz.artifact_kinds import GOLDEN, KINDS, named
from tests.lab.fuzz.mutations import explore

CASES = {  # each ended in an internal error once
    "an operand that is an object": ("in", lambda n: n["in"].append({})),
    "an operand that is null": ("in", lambda n: n.update({"in": [None]})),
    "a number for a tensor": ("in", lambda n: n.update({"in": [3]})),
    "an operand too many": ("in", lambda n: n["in"].extend(n["in"] * 3)),
    "an attribute that no type fits": ("attrs", lambda n: n["attrs"].update(
        {k: {"x": []} for k in n["attrs"]})),
    "an attribute that is null": ("attrs", lambda n: n["attrs"].update(dict.fromkeys(n["attrs"]))),
    "a float in an attribute": ("attrs", lambda n: n["attrs"].update(
        {k: 1e308 for k in n["attrs"]})),
    "ragged pairs": ("attrs", lambda n: n["attrs"].update({k: [[1, 2], [1]] for k in n["attrs"]})),
    "a longer tuple": ("attrs", lambda n: n["attrs"].update({k: [1] * 9 for k in n["attrs"]})),
    "half of a character": ("id", lambda n: n.update({"id": "\ud800"}))}


@pytest.mark.parametrize("case", CASES)
def test_every_node_with_a_fault(case: str, tmp_path: Path) -> None:
    field, change = CASES[case]
    seen = 0
    for sample in named("graph/v1", ".graph.json")():
        for p in sample.parent.glob("*.safetensors"):
            shutil.copy(p, tmp_path)
        document = json.loads(sample.read_text())
        for n, node in enumerate(document["nodes"]):
            if field not in node:
                continue
            broken = json.loads(sample.read_text())
            change(broken["nodes"][n])
            path = tmp_path / sample.name
            path.write_text(json.dumps(broken))
            with suppress(InputError):
                serial.load(path)
                continue
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("text", ["4 */ int x; /*", "0", "-4", "4\n", "1_6", "x86", ""])
def test_what_a_program_says_of_lanes_is_a_number(text: str, tmp_path: Path) -> None:
    document = json.loads((GOLDEN / "program/v1/attend.program.json").read_text())
    document["meta"]["lanes"] = text
    with pytest.raises(InputError) as found:
        programs.loads(json.dumps(document))
    assert found.value.code == "GT0379"


LONG = {"trainer": 0, "torchscript": 0, "pt2": 30}  # a second for each file; 0: in the slow tests


@pytest.mark.parametrize("kind", [
    pytest.param(k, marks=pytest.mark.slow) if LONG.get(k) == 0 else k for k in KINDS])
def test_a_mutated_file_is_read_or_refused(kind: str) -> None:
    read, samples = KINDS[kind]
    found, bad = explore(read, samples(), LONG.get(kind) or 150)
    assert bad == []
    assert found["refused"] > 15


@pytest.mark.parametrize("text", ["1e9", "0x1", "9" * 5000])
@pytest.mark.parametrize("before", ['loc("x.py":', "%0:"])
def test_a_number_that_is_not_whole(before: str, text: str) -> None:
    with pytest.raises(InputError) as found:
        parse("#loc1 = " * before.startswith("loc") + f"{before}{text})")
    assert found.value.code in ("GT1302", "GT1303")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_mutated_files(kind: str) -> None:
    read, samples = KINDS[kind]
    assert explore(read, samples(), 5000, 1_000_000)[1] == []
