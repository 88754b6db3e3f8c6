"""Tensors of more than 2³¹ elements: the emitted text counts in 64 bits. That the numbers are
right takes gigabytes: `python -m tests.lab huge`."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("onnx")

from tests.lab.fuzz.compiled import in_c
from tests.lab.fuzz.variants import Variant
from tests.lab.huge import CASES, modelled

NARROW = re.compile(r"\bfor \((?:int|int32_t|unsigned) (\w+) = ([^;]*); \1 [<>]=? ([^;]*);")


@pytest.mark.parametrize("name", CASES)
def test_positions_have_64_bits(name: str) -> None:
    text = "".join(in_c(modelled(CASES[name]), Variant("x86-64-v3", "x86-64-v3", "default"),
                        "f").files.values())
    assert "int64_t" in text
    bounds = [b for _, *ends in NARROW.findall(text) for b in ends]
    assert [b for b in bounds if any(int(n) >= 1 << 31 for n in re.findall(r"\d+", b))] == []
