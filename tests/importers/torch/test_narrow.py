"""Numbers beside 16-bit floats: products and quotients round once, as torch's, and composites made
of them are still recognised."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool.importers.torch.driver.live import array
from tests.importers.torch.agreement import Function

KINDS = (torch.bfloat16, torch.float16)


class Scaled(torch.nn.Module):
    def forward(self, y: Any, s: Any) -> tuple[Any, ...]:
        return scaled(y, s)


def scaled(y: Any, s: Any) -> tuple[Any, ...]:
    return (y * 300.7, 0.1 * y, y / 300.7, 300.7 / y, torch.div(y * 99, 0.3, rounding_mode="trunc"),
            y * torch.tensor(300.7), torch.tensor(300.7) * y, y * s, y / s, s * y, y * 257 / 3)


@pytest.mark.parametrize("capture", ["export", "fx"])
@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_a_number_is_not_rounded_before_it_is_used(dtype: Any, capture: str, tmp_path: Path
                                                   ) -> None:
    y, s = torch.linspace(0.01, 3, 200).to(dtype), torch.tensor(300.7)
    module = graphtool.import_model(Scaled(), (y, s), capture=capture)
    xs = dict(zip((v.hint for v in module.graph.inputs), (array(y), array(s)), strict=True))
    results = [graphtool.evaluate(module, xs)]
    if capture == "export" and dtype is torch.bfloat16:
        results.append(graphtool.load(graphtool.build(module, tmp_path / "b"))(**xs))
    for result in results:
        for i, (got, want) in enumerate(zip(result.values(), scaled(y, s), strict=True)):
            np.testing.assert_array_equal(got, array(want), err_msg=str(i))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


def attention(x: Any) -> Any:
    return torch.softmax(x @ x.transpose(-1, -2) / math.sqrt(24), -1) @ x


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize(("fn", "op"), [(gelu, "gelu"), (attention, "attention")])
def test_composites_are_recognised(fn: Callable[[Any], Any], op: str, dtype: Any) -> None:
    module = graphtool.import_model(Function(fn), (torch.randn(2, 3, 8, 24).to(dtype),))
    assert any(n.op.name == "cast" for n in module.graph.nodes)
    passed = graphtool.optimize(module, "simplify,recognise,dce")
    assert [n.op.name for n in passed.graph.nodes if n.op.name != "transpose"] == [op]
