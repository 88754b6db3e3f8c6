"""`!a & b` stands in parentheses: gcc takes it for a slip and warns, which is an error here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from graphtool.compile.as_is import build
from graphtool.native import runtime
from tests.importers.onnx.build import checked, model
from tests.lower.compiling import optimised


def test_a_negation_beside_a_bit_operator(tmp_path: Path) -> None:
    proto = model(["n = Not(a)", "y = And(n, b)"], ["a bool 5", "b bool 5"], ["y bool 5"])
    built = runtime.load(build(optimised(checked(proto)), tmp_path / "b", jobs=2))
    a, b = np.array([0, 0, 1, 1, 0], bool), np.array([0, 1, 0, 1, 1], bool)
    assert built.run({"a": a, "b": b})["y"].tolist() == (~a & b).tolist()
