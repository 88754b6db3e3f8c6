"""What importers make of float16 operators at several sizes of the numbers, against torch and
onnxruntime, which compute in float32 inside. Squares of 300 leave the range of float16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import graphtool
from graphtool import interp
from graphtool.importers import import_source
from graphtool.importers.onnx import import_model
from graphtool.importers.torch import import_torch
from graphtool.transforms.reverse import vjp
from graphtool.verify.imports import check_import
from tests.cases import SIZES
from tests.closeness import largest, steps
from tests.importers.onnx.build import model, node

EACH: dict[str, Callable[[Any, Any], Any]] = {
    "std": lambda x, y: x.std(1), "var": lambda x, y: (x / 16).var(1),
    "norm": lambda x, y: x.norm(dim=1), "norm of order 3": lambda x, y: x.norm(3, dim=1),
    "normalize": lambda x, y: F.normalize(x, dim=1), "mean": lambda x, y: x.abs().mean(1),
    "cosine": lambda x, y: F.cosine_similarity(x, y), "renorm": lambda x, y: x.renorm(2, 0, 5.0),
    "distance": lambda x, y: F.pairwise_distance(x, y), "softmax": lambda x, y: x.softmax(1),
    "logsumexp": lambda x, y: x.logsumexp(1), "log_softmax": lambda x, y: x.log_softmax(1),
    "layer_norm": lambda x, y: F.layer_norm(x, (96,)),
    "rms_norm": lambda x, y: F.rms_norm(x, (96,)),
    "group_norm": lambda x, y: F.group_norm(x.reshape(4, 12, 8), 4),
    "instance_norm": lambda x, y: F.instance_norm(x.reshape(4, 12, 8)),
    "batch_norm": lambda x, y: F.batch_norm(x.reshape(4, 12, 8), None, None, training=True),
    "local_response": lambda x, y: F.local_response_norm(x.reshape(4, 12, 8), 3),
    "lp_pool": lambda x, y: F.lp_pool1d(x.reshape(4, 12, 8), 2, 3), "gelu": lambda x, y: F.gelu(x),
    "gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"), "silu": lambda x, y: F.silu(x),
    "attention": lambda x, y: F.scaled_dot_product_attention(*(
        v.reshape(4, 3, 4, 8) for v in (x, y, x))),
    "bilinear": lambda x, y: F.bilinear(x[:, :8] / 512, y[:, :8], y.reshape(6, 8, 8) / 16),
    "addmm": lambda x, y: torch.addmm(x[:, :4], x, y.T, alpha=1e-4), "hypot": torch.hypot,
    "beyond the range": lambda x, y: x * 1e5 / 1e5, "tiny": lambda x, y: (x * 1e-9) * 1e6,
}


class Each(nn.Module):
    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names

    def forward(self, x: Any, y: Any) -> Any:
        return tuple(EACH[name](x, y) for name in self.names)


@pytest.fixture(scope="module")
def drawn() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(4, 96), torch.randn(4, 96)


@pytest.mark.parametrize("dtype", [
    torch.float16, pytest.param(torch.bfloat16, marks=pytest.mark.slow)], ids=str)
def test_torch(drawn: Any, dtype: Any) -> None:
    names = list(EACH)
    every = Each(names)
    module = import_torch(every, tuple(v.to(dtype) for v in drawn))
    wrong = []
    for size in SIZES:
        given = tuple((v * size).to(dtype) for v in drawn)
        wanted = [y.float().numpy() for y in every(*given)]
        kind = module.graph.inputs[0].type.dtype.numpy
        found = interp.run(module, dict(zip("xy", (v.float().numpy().astype(kind) for v in given),
                                            strict=True))).values()
        wrong += [f"{name} at {size:g}" for name, w, y in zip(names, wanted, found, strict=True)
                  if steps(y, w, largest(w)) > 2]
    assert not wrong


@pytest.mark.parametrize("name", ["layer_norm", "std", "softmax", "cosine"])
def test_gradients(name: str, drawn: Any) -> None:
    """torch rounds what its kernels have computed; further ops lie between here and there."""
    given = [(v * 300).half().requires_grad_() for v in drawn]
    y = Each([name])(*given)[0]
    g = torch.randn(y.shape).half()
    y.backward(g)
    wanted = [v.grad.float().numpy() for v in given if v.grad is not None]
    module = import_torch(Each([name]), tuple(v.detach() for v in given))
    graph = module.graph
    reached = [v for v, x in zip(graph.inputs, given, strict=True) if x.grad is not None]
    found = interp.evaluate_graph(
        vjp(graph, reached), [*(v.detach().numpy() for v in given), g.numpy()], interp.Setting())
    for w, y in zip(wanted, found[1:], strict=True):
        assert y.dtype == np.float16 and steps(y, w, largest(w)) <= 4


NODES = {
    "LayerNormalization": "y = LayerNormalization(x, w)", "ReduceL2": node(
        "y = ReduceL2(x)", axes=[1]), "LpNormalization": node("y = LpNormalization(x)", axis=1),
    "ReduceLogSumExp": node("y = ReduceLogSumExp(x)", axes=[1]),
    "ReduceSumSquare": node("y = ReduceSumSquare(v)", axes=[1]),
    "Softmax": node("y = Softmax(x)", axis=1), "InstanceNormalization":
        "y = InstanceNormalization(z, w8, w8)", "LRN": node("y = LRN(i)", size=3),
    "LpPool": node("y = LpPool(z)", kernel_shape=[3]), "Gelu": "y = Gelu(x)",
}


@pytest.mark.parametrize("name", NODES)
def test_onnx(name: str, drawn: Any) -> None:
    """As onnxruntime, which computes each node in float32."""
    rows = drawn[0].numpy()
    ones = {"w": np.ones(96, np.float16), "w8": np.ones(8, np.float16)}
    arrays = {"x": rows, "v": rows[:, :4] / 8, "z": rows.reshape(4, 8, 12),
              "i": rows.reshape(4, 8, 3, 4)}
    proto = model([NODES[name]], ["x f16 4 96", "v f16 4 4", "z f16 4 8 12", "i f16 4 8 3 4"],
                  ["y f16"], ones, opset=20 if name == "Gelu" else 17)
    module = import_model(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    for size in SIZES:
        feeds = {k: (v * size).astype(np.float16) for k, v in arrays.items()}
        given = {i.name: feeds[i.name] for i in session.get_inputs()}
        want, = session.run(None, given)
        got, = interp.run(module, feeds).values()
        assert steps(got, want.astype(np.float32), largest(want)) <= 2, size


def test_the_check_of_an_import_draws_large_numbers(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model(["y = LayerNormalization(x, w)"], ["x f16 4 96"], ["y f16 4 96"],
                    {"w": np.ones(96, np.float16)}), path)
    module = import_source(str(path))
    assert check_import(str(path), module).ok
    with patch("graphtool.ir.rounded_once.rounds_inside", lambda *_, **__: False):
        assert not check_import(str(path), module).ok


def test_casts_are_computed_in_place(tmp_path: Path) -> None:
    """A float16 model has the kernels of the float32 one, and half its memory."""
    def built(dtype: Any) -> Any:
        torch.manual_seed(0)
        block = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU(), nn.RMSNorm(64),
                              nn.Softmax(-1)).to(dtype)
        folder = tmp_path / str(dtype)
        graphtool.build(import_torch(block, (torch.ones(64, 64, dtype=dtype),)), folder)
        return graphtool.load(folder).manifest
    half, single = built(torch.float16), built(torch.float32)
    assert len(half.steps) == len(single.steps) and 2 * half.arena <= single.arena

