"""The check at the end of an import finds what differs, and says what it could not check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.cli.faults import run
from graphtool.importers import import_source
from graphtool.importers.onnx import import_model
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node
from graphtool.ir.op import complete_attrs, named
from graphtool.verify.imports import check_import
from tests.importers.onnx.build import model, node

SAMPLES = Path(__file__).parents[2] / "samples"


def spoilt(m: Module) -> Module:
    """The module with its last constant doubled."""
    g = m.graph
    at = max(i for i, n in enumerate(g.nodes) if n.op.name == "constant")
    old = g.nodes[at]
    data = weight(np.asarray(old.attrs["data"].source) * 2 + 1)
    attrs = complete_attrs(named("constant"), {"data": data, "param": old.attrs["param"]})
    node = Node(old.op, (), attrs, old.outputs, old.where)
    return replace(m, graph=Graph(g.inputs, (*g.nodes[:at], node, *g.nodes[at + 1:]), g.outputs))


def test_onnx_and_torch() -> None:
    for source, kind in ((f"{SAMPLES}/digits.onnx", "onnxruntime"),
                         (f"{SAMPLES}/transformer.py:model", "torch")):
        m = import_source(source)
        found = check_import(source, m)
        assert found.ok and found.line.startswith(f"checked: the graph agrees with {kind} on 2")
        found = check_import(source, spoilt(m))
        assert not found.ok and f"DIFFERS from {kind}" in found.line


def test_random_models_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("from torch import nn\nmodel = nn.Dropout(0.5).train()\n")
    source = f"{tmp_path / 'noisy.py'}:model"
    found = check_import(source, import_source(source, inputs=["x:f32[8]"]), ["x:f32[8]"])
    assert found.ok and found.line == "nothing to check against: the model draws random numbers"


def test_an_archive_has_nothing_to_be_checked_against() -> None:
    m = import_source(f"{SAMPLES}/digits.onnx")
    found = check_import("model.pt2", m)
    assert found.ok and found.line.startswith("nothing to check against: ")


def test_a_check_that_could_not_be_made_is_no_success(monkeypatch: pytest.MonkeyPatch,
                                                      capsys: Any, tmp_path: Path) -> None:
    m = import_source(f"{SAMPLES}/digits.onnx")
    found = check_import(f"{SAMPLES}/mlp.py:nothing", m)
    assert not found.ok and found.line.startswith("NOT CHECKED: ")
    assert "has no 'nothing'" in found.line
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    command = ["import", f"{SAMPLES}/digits.onnx", "-o", str(tmp_path / "g.json")]
    assert run(command) == 1 and (tmp_path / "g.json").exists()
    assert "NOT CHECKED: onnxruntime is not installed" in capsys.readouterr().err
    assert run([*command, "--no-check"]) == 0


def test_types_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(model([node("y = Cast(x)", to=6)], ["x f32 2"], ["y i32 2"]
                           ).SerializeToString())
    other = import_model(model([node("y = Cast(x)", to=7)], ["x f32 2"], ["y i64 2"]))
    assert check_import(str(path), import_source(str(path))).ok
    found = check_import(str(path), other)
    assert not found.ok and found.rows[0].note == "types differ: int32 and int64"


KEPT = """
import torch
from torch import nn

class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.ones(1, 16, 4))

    def forward(self, x, at):
        self.k.index_copy_(1, at, x)
        return self.k.sum(1)

def model():
    return Kept().eval()

def inputs():
    return torch.zeros(1, 1, 4), torch.tensor([3])
"""


def test_state_starts_as_the_model_has_it(tmp_path: Path) -> None:
    """A cache that the model scatters into, as torch's StaticCache: an input of the graph, which is
    the model's own array there."""
    source = f"{tmp_path / 'kept.py'}:model"
    (tmp_path / "kept.py").write_text(KEPT)
    module = import_source(source)
    assert len(module.donations) == 1
    found = check_import(source, module)
    assert found.ok, found.line
