"""Casts of floats to short integers wrap around as in torch, evaluated and compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from graphtool import interp
from graphtool.compile.as_is import build
from graphtool.importers.torch import import_torch
from graphtool.native import runtime
from tests.lower.compiling import optimised


class Cast(nn.Module):
    """x in another element type."""

    def __init__(self, dtype: Any) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Any) -> Any:
        return x.to(self.dtype)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_casts_wrap_around(dtype: Any, tmp_path: Path) -> None:
    x = torch.tensor([-1.5, -0.5, 0.5, 255.5, 256, 300, -300, 70000, -70000])
    module = import_torch(Cast(dtype), (x,))
    name = module.graph.inputs[0].hint
    want = x.to(dtype).tolist()
    assert next(iter(interp.run(module, {name: x.numpy()}).values())).tolist() == want
    built = runtime.load(build(optimised(module), tmp_path / "b", jobs=2))
    assert next(iter(built.run({name: x.numpy()}).values())).tolist() == want
