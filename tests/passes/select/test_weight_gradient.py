"""Gradients by the weights of convolutions as products: values of torch, and when it declines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphtool import ops as o
from graphtool import passes, transforms
from graphtool.compile.as_is import build
from graphtool.dtypes import float32
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.passes.select import weight_gradient as rule
from graphtool.symbolic import Symbol, symbol_of

CASES = [  # x, w, strides, padding, rhs dilation: shifted, copied, strided, and their edges
    ((2, 8, 9, 10), (16, 8, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1)),
    ((3, 12, 8, 8), (20, 12, 3, 3), (2, 2), ((1, 1), (1, 1)), (1, 1)),
    ((2, 9, 11, 7), (32, 9, 3, 2), (1, 2), ((0, 1), (2, 0)), (1, 1)),
    ((2, 16, 8, 8), (16, 16, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((2, 8, 9, 9), (16, 8, 1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
    ((2, 8, 14, 14), (40, 8, 3, 3), (1, 1), ((2, 2), (2, 2)), (2, 2)),
    ((2, 8, 10, 10), (16, 8, 4, 4), (3, 3), ((0, 0), (0, 0)), (1, 1)),
]


@pytest.mark.part(4)
@pytest.mark.parametrize("resident", [rule.RESIDENT, 16], ids=["together", "apart"])
@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_as_torch(case: Any, resident: int, tmp_path: Path,
                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule, "RESIDENT", resident)
    x_shape, w_shape, strides, padding, dilation = case
    graph = trace(lambda x, w: o.conv(x, w, strides=strides, padding=padding,
                                      rhs_dilation=dilation),
                  [TensorType(float32, x_shape), TensorType(float32, w_shape)], ["x", "w"])
    joint = transforms.vjp(graph, graph.inputs)
    module = passes.run(Module(joint, ("y", "gx", "gw")))
    windows = [n.attrs["window"] for n in module.graph.nodes if n.op.name == "conv_direct"]
    assert all(max(w) <= 5 for w in windows)  # no window as large as an image is left
    build(module, tmp_path / "b")
    rng = np.random.default_rng(0)
    x, w, g = (rng.standard_normal([int(d) for d in v.type.shape]).astype(np.float32)
               for v in joint.inputs)
    found = runtime.load(tmp_path / "b", 2).run({joint.inputs[0].hint: x, joint.inputs[1].hint: w,
                                                 joint.inputs[2].hint: g})
    tx, tw = torch.from_numpy(x).requires_grad_(), torch.from_numpy(w).requires_grad_()
    (top, bottom), (left, right) = padding
    y = torch.nn.functional.conv2d(torch.nn.functional.pad(tx, (left, right, top, bottom)), tw,
                                   stride=strides, dilation=dilation)
    y.backward(torch.from_numpy(g))  # type: ignore[no-untyped-call]
    for name, want in (("gx", tx.grad), ("gw", tw.grad)):
        assert want is not None
        np.testing.assert_allclose(found[name], want.numpy(), rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("channels", [8, 3])
def test_the_batch_may_be_open(channels: int) -> None:
    batch = Symbol("B", 1, None)
    graph = trace(lambda x, w: o.conv(x, w, padding=((1, 1), (1, 1))),
                  [TensorType(float32, (symbol_of(batch), channels, 9, 10)),
                   TensorType(float32, (16, channels, 3, 3))], ["x", "w"])
    module = passes.run(Module(transforms.vjp(graph, graph.inputs), ("y", "gx", "gw"),
                               {"B": batch}))
    names = [n.op.name for n in module.graph.nodes]
    assert "conv" not in names and names.count("gemm") == 9
