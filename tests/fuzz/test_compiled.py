"""Many graphs in one call of the compiler."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx")

from graphtool import interp
from graphtool.importers.onnx import import_model
from tests.lab.fuzz import grow
from tests.lab.fuzz.compiled import in_c, isolated
from tests.lab.fuzz.variants import VARIANTS, variant_of, variants
from tests.lab.libraries import run_once, together


def test_programs_of_all_templates_are_one_library(tmp_path: Path) -> None:
    """None of them defines what another one uses."""
    cases = [grow.case(1, [op], 1) for op in (
        "LSTM", "ConvInteger", "Conv", "MatMul", "Softmax", "MaxPool", "TopK", "CumSum")]
    modules = [import_model(c.model) for c in cases]
    ready = [in_c(m, VARIANTS[0], f"f{i}") for i, m in enumerate(modules)]
    library = together(ready, tmp_path)
    for case, module, c in zip(cases, modules, ready, strict=True):
        want = interp.run(module, case.inputs).values()
        for g, w in zip(run_once(c, library, case.inputs), want, strict=True):
            np.testing.assert_allclose(g, w, 1e-4, 1e-4)


def test_each_variant_has_its_turn() -> None:
    assert {variant_of(s) for s in range(9)} == set(variants())


def test_a_fault_of_the_child_stays_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of any kind is a result; the child never goes on as a second worker."""
    def broken(*_: object) -> None:
        raise ZeroDivisionError("nothing to divide by")
    monkeypatch.setattr("tests.lab.fuzz.compiled.run_once", broken)
    parent, ready = os.getpid(), [({}, None)]
    said = isolated(ready, Path("none.so"))  # type: ignore[arg-type]
    assert os.getpid() == parent and "ZeroDivisionError" in str(said[0])
