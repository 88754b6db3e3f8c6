"""The table, its order, the text of passes, reports, regions, and the verification in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.errors import GraphtoolError, InternalError
from graphtool.ir.graph import Graph, Group, Module, Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.passes.arguments import PassCall
from tests.growth import calls
from tests.passes.pass_samples import SAMPLES, module, text, values

CONVNET = SAMPLES["convnet"]


@pytest.mark.parametrize(("text", "code", "message"), [
    ("nonsense", "GT0601", "unknown pass 'nonsense'"),
    ("fold{x=1}", "GT0602", "no argument 'x'"),
    ("fold{max_bytes=many}", "GT0603", "int expected"),
    ("decompose,freeze", "GT0604", "freeze must run before decompose"),
    ("dce,", "GT0608", "cannot read"),
    ("fold{max_bytes=1", "GT0608", "cannot read"),
])
def test_bad_lists(text: str, code: str, message: str) -> None:
    with pytest.raises(GraphtoolError, match=message) as caught:
        passes.calls(text)
    assert caught.value.code == code


def test_arguments_are_read_by_annotation() -> None:
    calls = passes.calls(" fold{max_bytes=2MiB} , decompose{keep=softmax+gelu},dce{}")
    assert calls == [PassCall("fold", {"max_bytes": 2 << 20}),
                     PassCall("decompose", {"keep": ("softmax", "gelu")}), PassCall("dce")]
    assert str(calls[1]) == "decompose{keep=softmax+gelu}"


def test_order_names_passes() -> None:
    later = {"layout", "select", "fuse"}
    assert {name for row in passes.ORDER for name in row[:2]} <= set(passes.functions()) | later


def test_table_out_of_order_is_refused() -> None:
    with pytest.raises(InternalError):
        passes.check_order(["decompose", "recognise"], InternalError)


def test_reports() -> None:
    seen: list[passes.PassReport] = []
    passes.run(CONVNET, "dce,simplify", after=lambda report, _: seen.append(report))
    assert [r.name for r in seen] == ["dce", "simplify"]
    assert seen[1].before > seen[1].after
    assert "add_zero" in {f.rule for f in seen[1].journal}


def test_no_passes() -> None:
    assert passes.run(CONVNET, []) is CONVNET


def test_broken_pass_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wreck(graph: Graph) -> Graph:
        return Graph(graph.inputs, graph.nodes[1:], graph.outputs)
    monkeypatch.setattr(passes, "PASSES", (passes.Pass("wreck", wreck, "a test"),))
    with pytest.raises(InternalError, match="GT71") as caught:
        passes.run(CONVNET)
    assert "after the pass wreck" in caught.value.where


def test_regions_are_rewritten_too() -> None:
    body = module(lambda x: (x + 0.0) * 1.0, "f32[2]").graph
    loop = Op("loop", lambda x, *, body: x)
    value, out = body.inputs[0].type, Value(TensorType(*_parts(body)), "out")
    x = Value(value, "x")
    m = Module(Graph((x,), (Node(loop, (x,), {"body": body}, (out,)),), (out,)), ("y",))
    inner = passes.run(m, "simplify", verify=False).graph.nodes[0].attrs["body"]
    assert not inner.nodes


def _parts(graph: Graph) -> Any:
    t = graph.outputs[0].type
    return t.dtype, t.shape


def test_groups_stay_while_no_node_changes() -> None:
    m = module(lambda x: o.exp(x) * 2.0, "f32[2]")
    group = Group(m.graph.outputs[0], m.graph.nodes, "nest")
    grouped = Module(Graph(m.graph.inputs, m.graph.nodes, m.graph.outputs, (group,)), ("y",))
    assert passes.run(grouped, "dce,fold,cse").graph.groups == (group,)
    wasteful = module(lambda x: o.exp(x) * 1.0, "f32[2]").graph
    group = Group(wasteful.outputs[0], wasteful.nodes, "nest")
    grouped = Module(Graph(wasteful.inputs, wasteful.nodes, wasteful.outputs, (group,)), ("y",))
    assert not passes.run(grouped, "simplify").graph.groups


def test_default_pipeline_is_deterministic() -> None:
    assert text(passes.run(CONVNET)) == text(passes.run(CONVNET))


@pytest.mark.long
def test_work_grows_with_the_number_of_nodes() -> None:
    def deep(x: Any, layers: int) -> Any:
        for i in range(layers):
            w = values(x, 8, 8, name=f"w{i}", param=True, seed=i)
            y = o.transpose(o.transpose(o.gelu(o.linear(x, w)), perm=(1, 0)), perm=(1, 0))
            y = o.reshape(o.reshape(y, shape=(2, 2, 8)), shape=(4, 8)) * 1.0 + 0.0
            x = x + o.silu(o.layer_norm(y, axes=(1,))) + o.exp(x) / (o.exp(x) + 1.0)
        return x
    small, large = (module(lambda x, n=n: deep(x, n), "f32[4,8]") for n in (60, 120))
    assert len(large.graph.nodes) >= 1_800
    passes.run(small)  # what is imported and cached at first is not counted
    assert calls(lambda: passes.run(large)) < 2.1 * calls(lambda: passes.run(small))


def test_hash_seeds_change_nothing() -> None:
    script = ("import hashlib; from graphtool import passes; from tests.passes import pass_samples "
              "as s; print([hashlib.sha256(s.text(passes.run(m)).encode()).hexdigest() "
              "for m in s.SAMPLES.values()])")
    here = str(Path(__file__).parents[2])
    runs = {subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                           check=True, cwd=here, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
            for seed in ("0", "1")}
    assert len(runs) == 1
