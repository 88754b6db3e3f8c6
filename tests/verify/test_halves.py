"""onnxruntime computes halves in float32: the checks allow for the roundings that it leaves out,
say so, and still find a model that differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import graphtool
from graphtool.importers import import_source
from graphtool.verify.check import check_lines
from graphtool.verify.imports import check_import
from tests.importers.onnx.build import model, node, random

TO_FLOAT = node("y = Cast(d)", to=1)
WEIGHTS = {"w": random(64, 8).astype(np.float16)}
CASES: dict[str, list[Any]] = {
    "one sum": [node("d = Add(x, x2)"), TO_FLOAT],
    "a chain": ["b = Mul(x, x2)", "c = Add(b, x)", "e = Sub(c, x2)", "d = Tanh(e)", TO_FLOAT],
    "a product": ["c = MatMul(x, w)", "d = Softmax(c)", TO_FLOAT],
}


def saved(folder: Path, name: str, weights: Any = WEIGHTS) -> Path:
    proto = model(CASES[name], ["x f16 8 64", "x2 f16 8 64"], ["y f32 ? ?"], weights)
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("name", CASES)
def test_roundings_left_out_are_explained(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, name)
    module = import_source(str(path))
    checked = check_import(str(path), module)
    assert checked.ok and "does not round them" in checked.line
    built = graphtool.build(module, tmp_path / "b")
    for other in (module, built):
        found = graphtool.check(path, other)
        assert found.ok and "does not round them" in "\n".join(check_lines(found))
    strict = graphtool.check(path, module, atol=1e-6, rtol=0.0)
    assert not strict.ok
    assert graphtool.check(module, built).ok


def test_another_model_still_differs(tmp_path: Path) -> None:
    other = import_source(str(saved(tmp_path, "a product", {"w": WEIGHTS["w"] * np.float16(1.1)})))
    path = saved(tmp_path, "a product")
    assert not graphtool.check(path, other).ok
    assert not check_import(str(path), other).ok
