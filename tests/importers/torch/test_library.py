"""Small library models, imported and compiled, against eager torch in float32."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from graphtool import interp, passes
from graphtool.compile.as_is import build
from graphtool.importers.torch import import_torch
from graphtool.ir.verify import verify_module
from graphtool.native import runtime
from graphtool.target import detect
from tests.importers.torch.library import LIBRARY

pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("name", LIBRARY)
def test_it_computes_the_same(name: str, tmp_path: Path) -> None:
    model, args = LIBRARY[name]()
    with torch.no_grad():
        want = model(*args).numpy()
    module = import_torch(model, args)
    verify_module(module)
    inputs = {v.hint: a.numpy() for v, a in zip(module.graph.inputs, args, strict=True)}
    target = detect()
    optimised = passes.run(module, supply={"target": target})
    compiled = runtime.load(build(optimised, tmp_path / "build", target=target), 1)
    for outputs in (interp.run(module, inputs), compiled.run(inputs)):
        (got,) = outputs.values()
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())
