"""A template, a port or a weight that does not fit its buffer is refused before C is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool.kernels  # noqa: F401  (fills the table of contracts)
from graphtool.errors import InputError
from graphtool.io.weights import weight
from graphtool.loops.contract import CONTRACTS
from graphtool.loops.serial import dumps, loads
from graphtool.loops.verify_reach import verify_reach
from graphtool.lower import lower
from graphtool.native.build import weights_of
from graphtool.target import named
from tests.emit import samples
from tests.loops.programs import NAMES, program

GOLDEN = sorted((Path(__file__).parents[1] / "io/golden/program/v2").glob("*.program.json"))
TARGET = named("x86-64-v3", 2)
TEXTS = [dumps(program(n)) for n in NAMES] + [dumps(loads(p.read_text())) for p in GOLDEN]
# what makes a template touch more, whatever else it says
GROWS = {"gemm": ("M", "N", "K"), "gemm_int": ("M", "N", "K"), "attend": ("S", "T", "HEADS"),
         "conv_direct": ("OH", "OW", "C", "O", "BATCH"), "winograd": ("C", "O", "OH", "OW"),
         "sort": ("ROWS", "N")}


def templates(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def within(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in rows:
            if "macros" in row:
                yield row
            for inner in ("body", "then", "orelse"):
                yield from within(row.get(inner, []))
    for kernel in document["kernels"]:
        yield from within(kernel["body"])


def code(document: dict[str, Any]) -> str:
    try:
        loads(json.dumps(document))
    except InputError as error:
        return error.code
    return ""


def test_what_lowering_makes_is_accepted() -> None:
    for name in NAMES:
        verify_reach(program(name))
    for make in (samples.softmax, samples.layer, samples.moves):
        verify_reach(lower(make(), TARGET))
    assert [code(json.loads(text)) for text in TEXTS] == [""] * len(TEXTS)


@pytest.mark.parametrize("kernel", GROWS)
def test_a_template_larger_than_its_buffers(kernel: str) -> None:
    seen = set()
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            for m, macro in enumerate(t["macros"]):
                if t["kernel"] == kernel and macro["name"] in GROWS[kernel] and "size" in macro:
                    document = json.loads(text)
                    row = list(templates(document))[n]["macros"][m]
                    row["size"] = 100000 if isinstance(row["size"], int) else f"1000*{row['size']}"
                    assert code(document) in ("GT0375", "GT0371"), (macro, text[:200])
                    seen.add(macro["name"])
    assert CONTRACTS[kernel].reach is not None and seen


def test_a_pointer_beyond_its_buffer() -> None:
    seen = 0
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            if t["kernel"] not in GROWS:
                continue
            for offset in (10**6, -1):
                document = json.loads(text)
                list(templates(document))[n]["pointers"][0]["offset"] = offset
                assert code(document) == "GT0375"
                seen += 1
    assert seen > 10


def test_a_hook_that_stores_beyond_its_buffer() -> None:
    seen = 0
    for text in TEXTS:
        for n, t in enumerate(templates(json.loads(text))):
            for hook in range(len(t.get("hooks", ())) if t["kernel"] in GROWS else 0):
                document = json.loads(text)
                body = list(templates(document))[n]["hooks"][hook]["body"]
                while "body" in body[-1]:
                    body = body[-1]["body"]
                if "index" in body[-1] and "buffer" in body[-1]:
                    body[-1]["index"] = f"100000 + {body[-1]['index']}"
                    assert code(document) == "GT0375"
                    seen += 1
    assert seen > 5


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_a_port_smaller_than_its_buffer(side: str) -> None:
    for text in TEXTS:
        document = json.loads(text)
        port = document[side][0]
        if port["shape"] and port["shape"][-1] not in (0, 1) and isinstance(port["shape"][-1], int):
            port["shape"][-1] -= 1
            assert code(document) == "GT0376"


def test_a_weight_smaller_than_its_buffer() -> None:
    for text in TEXTS:
        p = loads(text)
        if p.weights:
            tiny = {d: weight(np.zeros(1, np.int8)) for _, d in p.weights}
            with pytest.raises(InputError) as found:
                weights_of(p, tiny)
            assert found.value.code == "GT2115"
