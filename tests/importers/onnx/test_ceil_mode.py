"""Pooling with ceil_mode over open sizes, against onnxruntime at every remainder of the size."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool import interp
from tests.importers.onnx.build import checked, model, node, oracle, random
from tests.lower.compiling import compiled, optimised

FORMS = [(op, k, s, pads, counted) for op, k, s, pads, counted in product(
    ("MaxPool", "AveragePool"), (2, 3), (1, 2, 3), ((0, 0), (1, 1), (0, 1)), (0, 1))
    if max(pads) < k and (op == "AveragePool" or not counted)]


@pytest.mark.parametrize(("op", "k", "s", "pads", "counted"), FORMS)
def test_one_open_axis(op: str, k: int, s: int, pads: tuple[int, int], counted: int) -> None:
    more: dict[str, Any] = {"count_include_pad": counted} if op == "AveragePool" else {}
    proto = model([node(f"y = {op}(x)", kernel_shape=[k], strides=[s], pads=list(pads),
                        ceil_mode=1, **more)], ["x f32 1 2 N"], ["y f32 ? ? ?"])
    module = checked(proto)
    for n in range(k, k + 5):
        x = {"x": random(1, 2, n)}
        want = oracle(proto, x)[0]
        got = interp.run(module, x)["y"]
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_compiled(tmp_path: Path) -> None:
    proto = model([node("a = MaxPool(x)", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
                   node("b = Conv(a, w)", pads=[1, 1, 1, 1]),
                   node("y = AveragePool(b)", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1,
                        count_include_pad=1)],
                  ["x f32 N 4 H W"], ["y f32 ? ? ? ?"], {"w": random(8, 4, 3, 3)})
    run = compiled(optimised(checked(proto)), tmp_path / "m").run
    for h, w in ((16, 16), (17, 20), (5, 7), (3, 4)):
        x = {"x": random(2, 4, h, w)}
        np.testing.assert_allclose(run(x)["y"], oracle(proto, x)[0], atol=1e-4)


def test_of_torch() -> None:
    net = torch.nn.Sequential(torch.nn.MaxPool2d(3, 2, ceil_mode=True),
                              torch.nn.AvgPool2d(2, 2, ceil_mode=True)).eval()
    module = graphtool.import_model(net, (torch.randn(1, 2, 21, 23),),
                                    dynamic={"H@input.2": (5, None), "W@input.3": (5, None)})
    for h, w in ((21, 23), (9, 11), (25, 15)):
        x = torch.randn(1, 2, h, w)
        got, = interp.run(module, {module.graph.inputs[0].hint: x.numpy()}).values()
        np.testing.assert_allclose(got, net(x).numpy(), atol=1e-5)
