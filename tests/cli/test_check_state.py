"""`check` of a torch model with state: the new state is compared like any other output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli

MODEL = '''
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.BatchNorm1d(3)])
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(3, dtype=torch.bfloat16))

    def forward(self, x, cache):
        cache[0] = x[0]
        self.calls += {step}
        self.mean = self.mean * 0.5 + x.mean(0).to(torch.bfloat16)
        return self.blocks[0](x) + cache.sum(0) - self.mean

net = Net().train()
inputs = (torch.randn(4, 3), torch.zeros(5, 3))
'''
STATE = ["blocks.0.running_mean", "blocks.0.running_var", "blocks.0.num_batches_tracked", "calls",
         "mean", "cache"]


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(MODEL.replace("{step}", "1"))
    return f"{tmp_path / 'net.py'}:net"


def test_both_ways(model: str, gt: Cli, tmp_path: Path) -> None:
    graph, build = tmp_path / "net.graph.json", tmp_path / "build"
    imported = gt("import", model, "-o", graph)
    assert imported.code == 0 and "agrees with torch" in imported.err
    assert gt("build", graph, "-o", build).code == 0
    for pair in ((model, graph), (graph, model), (model, build), (build, model)):
        found = gt("check", *pair, "--seed", "3")
        assert found.code == 0 and all(f"ok   {name}:" in found.out for name in STATE)


@pytest.mark.torch
def test_other_state_differs(model: str, gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(MODEL.replace("{step}", "2"))
    found = gt("check", model, f"{tmp_path / 'other.py'}:net")
    assert found.code == 1 and "FAIL calls:" in found.out and "ok   mean:" in found.out


@pytest.mark.torch
def test_a_side_without_the_state(gt: Cli, tmp_path: Path) -> None:
    """torch.fx does not see that an attribute is replaced: what both have is compared."""
    (tmp_path / "net.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.register_buffer('m', torch.zeros(3))\n"
        "    def forward(self, x):\n        self.m = self.m + 1\n        return x * 2\n"
        "net = Net()\ninputs = torch.ones(3)\n")
    source, graph = f"{tmp_path / 'net.py'}:net", tmp_path / "g.graph.json"
    assert gt("import", source, "--capture", "fx", "-o", graph).code == 0
    for pair in ((source, graph), (graph, source)):
        found = gt("check", *pair)
        assert found.code == 0 and "ok   output:" in found.out and " m:" not in found.out


@pytest.mark.torch
def test_an_input_that_is_not_given(model: str, gt: Cli, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones((4, 3), np.float32))
    found = gt("check", model, model, "--inputs", tmp_path / "in.npz")
    assert found.code == 3 and "GT0511" in found.err and "missing input cache" in found.err


def test_an_archive_has_the_inputs_of_the_other_side(gt: Cli, tmp_path: Path) -> None:
    import torch
    archive, graph = tmp_path / "net.pt", tmp_path / "net.graph.json"
    torch.jit.save(torch.jit.script(torch.nn.Linear(4, 3).eval()), str(archive))
    assert gt("import", archive, "--inputs", "x:f32[2,4]", "-o", graph).code == 0
    np.savez(tmp_path / "in.npz", x=np.ones((2, 4), np.float32))
    for more in ([], ["--inputs", tmp_path / "in.npz"]):
        for pair in ((archive, graph), (graph, archive)):
            found = gt("check", *pair, *more)
            assert found.code == 0 and "torch" in found.out, found
    assert "GT1114" in gt("check", archive, archive).err
    assert gt("build", graph, "-o", tmp_path / "b").code == 0
    torch.jit.save(torch.jit.script(torch.nn.Linear(4, 3).eval()), str(archive))  # other weights
    found = gt("check", tmp_path / "b", archive, "--repro", tmp_path / "r")
    assert found.code == 1 and "make -C" in found.err
