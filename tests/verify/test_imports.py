"""The check at the end of an import finds what differs, and says what it could not check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.cli.faults import run
from graphtool.importers import import_source
from graphtool.importers.onnx import import_model
from graphtool.io.weights import weight
from graphtool.ir.graph import Graph, Module, Node, TensorType
from graphtool.ir.op import complete_attrs, named
from graphtool.ir.trace import trace
from graphtool.verify.compare import tolerance
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


FITTING = {
    "cache": "g (float[B,S,16] q, float[B,S,8] k, float[B,S,8] v, float[B,1,P,8] c, float[B,1,P,8] "
    "d, int32[B] n, int32 t) => (float[B,S,16] y, float[B,1,T,8] e, float[B,1,T,8] f) { y, e, f = "
    "com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1> (q, k, v, c, d, n, t) }",
    "buffer": "g (float[B,S,16] q, float[B,S,8] k, float[B,S,8] v, float[B,1,P,8] c, float[B,1,P,8]"
    " d, int32[B] n, int32 t) => (float[B,S,16] y, float[B,1,P,8] e, float[B,1,P,8] f) { y, e, f = "
    "com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1> (q, k, v, c, d, n, t) }",
    "mask": "g (float[B,S,16] q, float[B,S,8] k, float[B,S,8] v, float[B,1,P,8] c, float[B,1,P,8] "
    "d, int64[B,M] mask) => (float[B,S,16] y, float[B,1,T,8] e, float[B,1,T,8] f) { one = Constant "
    "<value = int64[1] {1}> () r = ReduceSum <keepdims = 0> (mask, one) m = Sub (r, one) n = Cast "
    "<to = 6> (m) h = Shape <start = 1, end = 2> (mask) t = Cast <to = 6> (h) y, e, f = "
    "com.microsoft.GroupQueryAttention <num_heads = 2, kv_num_heads = 1> (q, k, v, c, d, n, t) }",
    "boxes": "g (float[1,N,4] b, float[1,2,N] s, int64 m, float t) => (int64[K,3] y) "
    "{ y = NonMaxSuppression (b, s, m, t) }",
    "reshape": "g (float[N,6] x, int64[3] s) => (float[a,b,c] y) { y = Reshape (x, s) }",
    "split": "g (float[N,6] x, int64[2] p) => (float[N,K] y, float[N,L] z) "
    "{ y, z = Split <axis = 1> (x, p) }",
    "resize": "g (float[1,1,N,M] x, int64[4] s) => (float[a,b,c,d] y) "
    '{ y = Resize <mode = "nearest"> (x, , , s) }',
    "top": "g (float[N,5] x, int64[1] k) => (float[N,K] y, int64[N,K] i) { y, i = TopK (x, k) }",
}


@pytest.mark.parametrize("name", FITTING)
def test_inputs_whose_values_must_fit_sizes(name: str, tmp_path: Path) -> None:
    """onnxruntime refuses random lengths, shapes, parts and thresholds."""
    head = '<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>\n'
    onnx.save(onnx.parser.parse_model(head + FITTING[name]), path := tmp_path / "m.onnx")
    found = check_import(str(path), import_source(str(path)))
    assert found.ok and "agrees with onnxruntime" in found.line, found.line


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


def deep(level: int, layers: int = 24) -> bytes:
    """Products with packed weights of 4 bits, and what nets have between them."""
    rng = np.random.default_rng(3)
    weights: dict[str, Any] = {}
    nodes: list[Any] = []
    for i in range(layers):
        weights[f"w{i}"] = rng.integers(0, 256, (128, 4, 16), np.uint8)
        weights[f"s{i}"] = rng.uniform(0.02, 0.04, (128, 4)).astype(np.float32)
        nodes += [node(f"p{i} = MatMulNBits(h{i}, w{i}, s{i})", domain="com.microsoft", K=128,
                       N=128, bits=4, block_size=32, accuracy_level=level),
                  f"t{i} = Tanh(p{i})", f"h{i + 1} = Add(h{i}, t{i})"]
    nodes = [node("h0 = Sin(x)"), *nodes]
    return model(nodes, ["x f32 64 128"], [f"h{layers} f32 64 128"], weights).SerializeToString()


def test_roundings_that_part_are_within_the_tolerance_of_their_class(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    for level, least, most in ((0, 1e-4, 1e-4), (4, 0.01, 0.25)):
        path.write_bytes(deep(level))
        m = import_source(str(path))
        assert least <= tolerance(m) <= most
        found = check_import(str(path), m)
        assert found.ok, found.line
        assert not check_import(str(path), spoilt(m)).ok


def test_the_tolerance_follows_the_bits() -> None:
    """Of a rounding to integers and to floats of few bits; a comparison is none."""
    def of(*types: dtypes.DType) -> float:
        def body(x: Any) -> Any:
            for t in types:
                x = o.cast(o.cast(x, dtype=t), dtype=dtypes.float32)
            return o.select(o.gt(x, 0.0), x, 0.0)
        return tolerance(Module(trace(body, [TensorType(dtypes.float32, (3,))], ["x"]), ("y",)))
    exact, one, two = of(), of(dtypes.int8), of(dtypes.int8, dtypes.int8)
    assert exact == of(dtypes.int32) == 1e-4 < one < two < of(dtypes.float8e4m3fn)
    assert of(dtypes.int4) == 0.25
