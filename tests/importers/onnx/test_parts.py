"""Sequences and optionals among the inputs: what they are made of, as the command line says it,
and inputs that are always one number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp
from graphtool.errors import UsageError
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver.inputs import read_parts
from graphtool.ir import serial
from graphtool.ir.graph import TensorType
from graphtool.verify.imports import check_import
from graphtool.verify.sides import open_pair
from tests.importers.onnx.build import checked, model, random

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


# ---- inputs that are always one number ----------------------------------------------------------

@pytest.mark.parametrize("text, number", [("rate=16000", 16000), ("a:0=-1.5e3", -1500.0),
                                          ("a=b=true", True)])
def test_a_number_for_an_input(text: str, number: Any) -> None:
    (parts,) = read_parts([text]).values()
    assert parts == number and type(parts) is type(number)


RATE = model(["c = Equal(rate, high)", "w = Where(c, x, zero)", "y = Add(w, more)"],
             ["x f32 N 2", "rate i64", "more f32 2"], ["y f32 N 2"],
             {"high": np.int64(16000), "zero": np.float32(0)})


def test_a_filled_input_is_none(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(RATE.SerializeToString())
    specs = ("rate=16000", "more=0.5")
    module = checked(RATE, made_of=read_parts(specs))
    assert [v.hint for v in module.graph.inputs] == ["x"]
    x = random(3, 2)
    np.testing.assert_array_equal(interp.run(module, {"x": x})["y"], x + np.float32(0.5))
    assert check_import(str(path), module, specs).ok
    saved = tmp_path / "m.graph.json"
    serial.save(module, saved)
    a, b = open_pair(str(path), str(saved))
    assert a.inputs == b.inputs == ("x",)
    np.testing.assert_array_equal(a.run({"x": x})["y"], b.run({"x": x})["y"])


@pytest.mark.parametrize("text, code", [
    ("rate=1.5", "GT1031"), ("x=1", "GT1031"), ("rates=1", "GT1032"), ("rate=1e300", "GT1031"),
    ("rate=one", "GT1031"), ("rate=", "GT1031"), ("=1", "GT1031")])
def test_a_number_that_no_input_can_be(text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        import_model(RATE, made_of=read_parts([text]))
    assert caught.value.code == code
