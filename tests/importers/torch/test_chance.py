"""Random ops: the state goes in and comes out, and the numbers have the right distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from graphtool import interp
from graphtool.importers.torch import import_torch
from graphtool.ir.verify import verify_module
from graphtool.ops.random import state_of
from tests.importers.torch.agreement import Function

N = 4000
DRAWS = {  # the draw, and its mean and standard deviation
    "rand": (lambda x: torch.rand(N) + 0 * x, 0.5, 12 ** -0.5),
    "randn": (lambda x: torch.randn_like(x.expand(N)), 0.0, 1.0),
    "randint": (lambda x: torch.randint(2, 7, (N,)) + 0 * x, 4.0, 2 ** 0.5),
    "randint high": (lambda x: torch.randint(5, (N,)) + 0 * x, 2.0, 2 ** 0.5),
    "bernoulli": (lambda x: torch.bernoulli(x.expand(N) * 0.3), 0.3, 0.21 ** 0.5),
    "uniform": (lambda x: x.new_empty(N).uniform_(2, 4), 3.0, 3 ** -0.5),
    "normal": (lambda x: x.new_empty(N).normal_(5, 0.1), 5.0, 0.1),
    "dropout": (lambda x: F.dropout(x.expand(N), 0.25), 1.0, 3 ** -0.5),
    "multinomial": (lambda x: torch.multinomial(torch.tensor([0.2, 0.5, 0.3]), N, True) + 0 * x,
                    1.1, 0.7),
    "multinomial without": (lambda x: torch.multinomial(
        torch.tensor([1.0, 3.0]).expand(N, 2), 1)[:, 0] + 0 * x, 0.75, 0.1875 ** 0.5),
    "permutation": (lambda x: torch.randperm(N) + 0 * x, (N - 1) / 2, N * 12 ** -0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_distribution(name):
    fn, mean, std = DRAWS[name]
    module = import_torch(Function(fn), (torch.ones(1),))
    verify_module(module)
    assert module.output_names == ("output", "rng") and module.donations == ((1, 1),)
    x = {"xs_0": np.ones(1, np.float32)}
    one, same, other = (interp.run(module, x | {"rng": state_of(s)}) for s in (3, 3, 4))
    np.testing.assert_array_equal(one["output"], same["output"])
    assert not np.array_equal(one["output"], other["output"])
    assert one["rng"][1] > 0
    assert abs(one["output"].mean() - mean) < 5 * std / N ** 0.5 + 1e-6
    assert abs(one["output"].std() - std) < 0.05 * std


def test_two_draws_differ():
    module = import_torch(Function(lambda x: (torch.rand(8) * x, torch.rand(8) * x)),
                          (torch.ones(1),))
    a, b, _ = interp.run(module, {"xs_0": np.ones(1, np.float32), "rng": state_of(0)}).values()
    assert not np.array_equal(a, b)


def test_dropout_in_eval_mode_leaves_no_trace():
    module = import_torch(nn.Sequential(nn.Linear(4, 4), nn.Dropout()).eval(), (torch.ones(2, 4),))
    assert [v.hint for v in module.graph.inputs] == ["input"]
    assert module.graph.nodes[-1].op.name == "linear"
