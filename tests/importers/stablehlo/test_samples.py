"""Programs that JAX exported, beside the results that JAX computed (see `make_samples.py`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp
from graphtool.importers.stablehlo import import_stablehlo
from graphtool.ir.graph import Module
from graphtool.ir.text import value_names

FOLDER = Path(__file__).parent / "samples"
SAMPLES = sorted(p.stem for p in FOLDER.glob("*.mlir"))
COMPILED = [n for n in SAMPLES if n.startswith("programs") or n in (
    "lax.bitcast_convert_type", "lax.conv_mixed_axes", "lax.dot_general_types", "lax.gather",
    "lax.reduce_window_other", "lax.scan", "lax.scatter", "lax.sort", "lax.switch",
    "numpy.at.set", "numpy.complex", "random.normal", "stablehlo.operations")]
Array = np.ndarray[Any, Any]


def arrays(name: str, kind: str) -> list[Array]:
    with np.load(FOLDER / f"{name}.npz") as stored:
        keys = sorted((k for k in stored.files if k.startswith(f"{kind}_")),
                      key=lambda k: int(k.rpartition("_")[2]))
        return [stored[k] for k in keys]


def given(module: Module, name: str) -> dict[str, Array]:
    names = value_names(module.graph)
    return {names[v]: x for v, x in zip(module.graph.inputs, arrays(name, "in"), strict=True)}


def agree(got: list[Array], want: list[Array]) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g.shape, g.dtype.itemsize) == (w.shape, w.dtype.itemsize)
        if w.dtype.kind == "V":  # bfloat16 in a file of numpy
            w = w.view(g.dtype)
        if w.dtype.kind not in "fV":
            np.testing.assert_array_equal(g, w)
        else:
            g, w = g.astype(np.float64), w.astype(np.float64)
            scale = max(1.0, float(np.max(np.abs(w), initial=0, where=np.isfinite(w))))
            np.testing.assert_allclose(g, w, 2e-3, 1e-4 * scale)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_evaluator_agrees_with_jax(name: str) -> None:
    module = import_stablehlo(FOLDER / f"{name}.mlir")
    agree(list(interp.run(module, given(module, name)).values()), arrays(name, "out"))


@pytest.mark.part(3)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_agrees_with_jax(name: str, tmp_path: Path) -> None:
    module = import_stablehlo(FOLDER / f"{name}.mlir")
    graphtool.build(module, str(tmp_path / "build"), name="model")
    loaded = graphtool.load(str(tmp_path / "build"))
    agree(list(loaded.run(given(module, name)).values()), arrays(name, "out"))
