"""The options of `import`: the same meaning wherever a model is read; a graph has no use for them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphtool.ir import serial
from tests.cli.conftest import DIGITS, SAMPLES, Cli

MLP = f"{SAMPLES}/mlp.py:model"
ATTENTION = '''
import torch

class Attention(torch.nn.Module):
    def forward(self, q):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)

model = Attention()
'''


@pytest.mark.parametrize("source", [DIGITS, MLP])
def test_build_opens_and_bounds_dims(source: str, gt: Cli, tmp_path: Path) -> None:
    assert gt("build", source, "-o", tmp_path / "b", "--dynamic", "batch=2..4").code == 0
    (dim,) = json.loads((tmp_path / "b" / "build.json").read_text())["dims"]
    assert (dim["name"], dim["min"], dim["max"]) == ("batch", 2, 4)


@pytest.mark.torch
def test_emit_takes_specs_and_captures(gt: Cli, tmp_path: Path) -> None:
    """A graph of the same options gives the same header."""
    given = ("--inputs", "x:f32[3,784]", "--capture", "fx")
    assert gt("emit", MLP, "-o", tmp_path / "a", *given).code == 0
    gt("import", MLP, "-o", tmp_path / "mlp.graph.json", "--no-check", *given)
    gt("emit", tmp_path / "mlp.graph.json", "-o", tmp_path / "b")
    model, graph = ((tmp_path / d / "mlp.h").read_text() for d in "ab")
    assert model == graph and "{3, 784}" in model


def test_attention_of_any_length_builds(gt: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(ATTENTION)
    for i, length in enumerate(("2..", "2..64")):
        result = gt("build", f"{tmp_path}/a.py:model", "-o", tmp_path / str(i), "--inputs",
                    "q:f32[1,2,16,8]", "--dynamic", f"seq@q.2={length}")
        assert result.code == 0, result.err


def test_a_graph_is_written_again(gt: Cli, folder: Path, tmp_path: Path) -> None:
    result = gt("import", folder / "digits.graph.json", "-o", tmp_path / "digits.graph.json")
    assert (result.code, result.out) == (0, "") and result.err.startswith("checked: ")
    for name in ("digits.graph.json", "digits.safetensors"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_graph_may_have_any_name_with_json(gt: Cli, folder: Path, tmp_path: Path) -> None:
    assert gt("import", folder / "digits.graph.json", "-o", tmp_path / "m.json").code == 0
    assert "all types follow" in gt("import", tmp_path / "m.json", "-o", tmp_path / "n.json").err
    (tmp_path / "other.json").write_text("{}")
    assert "GT0340" in gt("import", tmp_path / "other.json", "-o", "-").err


def test_damaged_weights_are_found(gt: Cli, folder: Path, tmp_path: Path) -> None:
    graph, side = tmp_path / "digits.graph.json", tmp_path / "digits.safetensors"
    graph.write_bytes((folder / graph.name).read_bytes())
    side.write_bytes((folder / side.name).read_bytes()[:-1] + b"\x55")
    assert "GT0321" in gt("import", graph, "-o", tmp_path / "again.graph.json").err


def test_a_directory_names_its_graphs(gt: Cli, folder: Path, tmp_path: Path) -> None:
    serial.save(serial.load(folder / "digits.graph.json"), tmp_path / "one.graph.json")
    assert f"it contains {tmp_path}/one.graph.json\n" in gt("eval", tmp_path).err
    gt("build", folder / "digits.graph.json", "-o", tmp_path / "b")
    assert "graphtool build --keep" in gt("draw", tmp_path / "b").err


@pytest.mark.torch
def test_a_kernel_is_called_the_same_with_a_file_or_without(gt: Cli, tmp_path: Path) -> None:
    """Two relus of one module: the second is relu#2 in the C, whether the graph was written."""
    source = f"{SAMPLES}/mlp.py:model"
    assert gt("import", source, "-o", tmp_path / "m.graph.json", "--no-check").code == 0
    assert gt("emit", source, "--name", "m", "-o", tmp_path / "a").code == 0
    assert gt("emit", tmp_path / "m.graph.json", "--name", "m", "-o", tmp_path / "b").code == 0
    texts = [(tmp_path / d / "m_kernels0.c").read_text() for d in ("a", "b")]
    assert texts[0] == texts[1] and "relu#2" in texts[0]
