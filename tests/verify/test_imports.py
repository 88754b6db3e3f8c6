"""The check at the end of an import finds what differs, and says what it could not check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from graphtool.importers import import_source
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node
from graphtool.ir.op import complete_attrs, named
from graphtool.verify.imports import check_import

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
    assert found.ok and found.line == "not checked: the model draws random numbers"


def test_what_cannot_be_checked_is_said() -> None:
    m = import_source(f"{SAMPLES}/digits.onnx")
    assert check_import("model.pt2", m).line.startswith("not checked: ")
    found = check_import(f"{SAMPLES}/mlp.py:nothing", m)
    assert found.ok and "has no 'nothing'" in found.line
