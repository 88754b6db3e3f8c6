"""The first case of each op, and whole graphs, by StableHLO's own interpreter, where jaxlib is
installed. The slow ones: `python -m tests.lab hlo_out`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.analysis import made_up
from graphtool.errors import UnsupportedError
from graphtool.exporters.stablehlo import stablehlo_of
from graphtool.ir.graph import Module
from tests.cases import CASES, Case, arrays
from tests.closeness import assert_close
from tests.exporters.stablehlo.test_identity import ONNX, onnx_model
from tests.ops.test_cases import module_of, results

pytest.importorskip("jaxlib")
from tests.lab.hlo_out import apart, programs
from tests.lab.hlo_peers import Guarded, parsed

FIRST = list({c.op.name: c for c in reversed(CASES)}.values())
interpreter = Guarded("interpreter")
DATA = ("Loop", "Loop of known length", "NonZero", "Range")  # their sizes depend on data


@pytest.mark.parametrize("case", FIRST, ids=repr)
def test_the_interpreter_agrees(case: Case) -> None:
    try:
        text = stablehlo_of(module_of(case))
    except UnsupportedError:
        pytest.skip("refused by name")
    parsed(text)
    xs = arrays(case)
    given = [x for x in xs if isinstance(x, np.ndarray)]
    for a, b in zip(interpreter(text, given), results(case, xs), strict=True):
        assert_close(a, b, given)


def agree(module: Module, inputs: dict[str, Any]) -> None:
    text = stablehlo_of(module)
    parsed(text)
    got = interpreter(text, list(inputs.values()))
    assert apart(got, list(interp.run(module, inputs).values())) < 1e-4


@pytest.mark.parametrize("name", [n for n in ONNX if n not in DATA])
def test_control_flow_and_open_sizes(name: str, tmp_path: Path) -> None:
    """Without sizes that depend on data, which the interpreter does not have."""
    module = onnx_model(name, tmp_path)
    agree(module, made_up.random_inputs(module, 0, {}))


def test_a_training_step() -> None:
    module = graphtool.import_model("samples/digits.onnx")
    step = graphtool.grad(module, graphtool.Recipe("cross_entropy", optimizer="adamw"))
    agree(step, {n: np.abs(x) if x.dtype.kind == "f" else x
                 for n, x in made_up.random_inputs(step, 0, {}).items()})


@pytest.mark.parametrize("part", ["forward", "gradient", "step", "our gradient"])
@pytest.mark.parametrize("name", ["kalman filter", "skip-gram", "policy", "cached attention",
                                  "markov model", "lorenz", "life"])
def test_programs_of_jax(name: str, part: str) -> None:
    for package in ("jax", "optax", "flax", "equinox"):
        pytest.importorskip(package)
    make = programs().get(f"{name}, {part}")
    if make is None:
        pytest.skip("it has no such part")
    module, inputs = make()
    agree(module, dict(inputs))
