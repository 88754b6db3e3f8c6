"""Sequences and optionals among the inputs: what they are made of, as the command line says it."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import dtypes
from graphtool.errors import UsageError
from graphtool.importers.onnx.driver.inputs import read_parts
from graphtool.ir.graph import TensorType

FOUR, TWO = (TensorType(dtypes.float32, (n,)) for n in (4, 2))


@pytest.mark.parametrize("text, parts", [
    ("s:(f32[4],f32[2])", (FOUR, TWO)), ("s:()", ()), ("s:f32[4]", FOUR), ("s: none", None),
    ("s:(f32[4],)", (FOUR,)), ("s:((f32[4]),none)", ((FOUR,), None)),
    ("s:i64[]", TensorType(dtypes.int64, ()))])
def test_what_can_be_said(text: str, parts: Any) -> None:
    assert read_parts([text.replace(" ", "")]) == {"s": parts}
    assert read_parts([f"a:0{text.replace(' ', '')[1:]}"]) == {"a:0": parts}


@pytest.mark.parametrize("text", ["s", "s:", "s:(f32[4]", "s:f32[4,]", "s:f32[a]", "s:(f32)",
                                  ":f32[4]", "s:" + "(" * 20 + ")" * 20])
def test_what_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_parts([text])
    assert caught.value.code == "GT1031"
