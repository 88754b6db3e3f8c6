"""Whole Jacobians: of every case against products with them, of several outputs against torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import graphtool
from graphtool import dtypes, transforms
from graphtool.errors import InputError
from graphtool.ir.graph import Graph
from graphtool.ir.verify import verify
from tests.cases import Case
from tests.evaluating import run
from tests.transforms.test_reverse import ONE_EACH, graph_of

SAMPLES = Path(__file__).parents[2] / "samples"
F64 = dtypes.float64


def agrees_with_vjp(graph: Graph, xs: Any) -> None:
    """g · J = vjp(g), and the outputs stay as they are."""
    wrt = [v for v in graph.inputs if v.type.dtype is F64]
    floats = [i for i, v in enumerate(graph.outputs) if v.type.dtype is F64]
    whole, joint = transforms.jacobian(graph, wrt, floats), transforms.vjp(graph, wrt, floats)
    verify(whole)
    rng = np.random.default_rng(2)
    cotangents = [rng.normal(size=graph.outputs[i].type.shape) for i in floats]
    own = len(graph.outputs)
    out, wanted = run(whole, xs), run(joint, [*xs, *cotangents])[own:]
    for a, b in zip(out[:own], run(graph, xs), strict=True):
        np.testing.assert_array_equal(a, b)
    blocks = iter(out[own:])
    sums = [0.0] * len(wrt)
    for g in cotangents:
        for j in range(len(wrt)):
            sums[j] = sums[j] + np.tensordot(g, next(blocks), np.ndim(g))
    for got, want in zip(sums, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)


QUICK = [c for c in ONE_EACH if not c.op.name.startswith("recurrence")]  # seconds in the evaluator


@pytest.mark.parametrize("case", QUICK, ids=repr)
def test_every_op(case: Case) -> None:
    agrees_with_vjp(*graph_of(case))


class Two(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.a, self.b = (torch.nn.Linear(n, m) for n, m in ((4, 8), (8, 3), (8, 5)))

    def forward(self, x: torch.Tensor, p: torch.Tensor) -> Any:
        h = torch.tanh(self.up(x)) * p
        return self.a(h), torch.sin(self.b(h)).sum()


@pytest.mark.parametrize("wrt", [("inputs",), ("x",), ("p", "up.bias")], ids=str)
def test_several_outputs(wrt: tuple[str, ...]) -> None:
    """7 rows of outputs beside 16 columns, and 8: the reverse and the forward mode."""
    net = Two().double()
    x, p = torch.randn(2, 4).double(), torch.randn(8).double()
    module = graphtool.jacobian(graphtool.import_model(net, (x, p)), wrt)
    out = graphtool.evaluate(module, {"x": x.numpy(), "p": p.numpy()})

    def model(x: torch.Tensor, p: torch.Tensor, bias: torch.Tensor) -> Any:
        return torch.func.functional_call(net, {"up.bias": bias}, (x, p))
    wanted = torch.func.jacrev(model, (0, 1, 2))(x, p, net.up.bias.detach())
    names = ["x", "p", "up.bias"]
    for name in ("x", "p") if wrt == ("inputs",) else wrt:
        for i in range(2):
            np.testing.assert_allclose(out[f"jacobian.output_{i}.{name}"],
                                       wanted[i][names.index(name)].detach(), atol=1e-12)


def test_an_open_size_is_an_error() -> None:
    module = graphtool.import_model(SAMPLES / "digits.onnx")
    with pytest.raises(InputError, match="GT0646"):
        graphtool.jacobian(module)
