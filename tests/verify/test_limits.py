"""Nothing that a file says takes the machine down: budgets, and the oracle in its own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from graphtool.cli.faults import run
from graphtool.errors import GraphtoolError, InputError, UsageError
from graphtool.importers.limits import Limits, read_limits
from graphtool.importers.onnx import import_model
from graphtool.importers.onnx.driver.convert import OnnxConversion
from graphtool.verify.apart import RuntimeProcess
from tests.importers.onnx.build import model, node, value


def doubling(depth: int) -> Any:
    """A model whose functions call each other twice: 2**depth nodes."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    rows = [helper.make_function("mine", "F0", ["a"], ["b"], [node("b = Neg(a)")], opsets)]
    for i in range(1, depth):
        calls = [node(f"c = F{i - 1}(a)", domain="mine"), node(f"b = F{i - 1}(c)", domain="mine")]
        rows.append(helper.make_function("mine", f"F{i}", ["a"], ["b"], calls, opsets))
    proto = model([node(f"y = F{depth - 1}(x)", domain="mine")], ["x f32 2"], ["y f32 2"],
                  functions=rows)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    return proto


def endless() -> Any:
    """A loop that goes on as long as n says, by an input."""
    body = helper.make_graph([node("on = Identity(go)"), node("t = Neg(s)")], "body",
                             [value("i i64"), value("go bool"), value("s f32 2")],
                             [value("on bool"), value("t f32 2")])
    nodes = [node("small = ReduceSum(x)", keepdims=0), node("yes = Less(small, huge)"),
             node("y = Loop(, yes, x)", body=body)]
    return model(nodes, ["x f32 2"], ["y f32 2"], {"huge": np.float32(1e30)})


def large(op: str) -> Any:
    """A model of a few bytes with a value of 2**45 elements."""
    weights: dict[str, Any] = {"s": np.array([1 << 23, 1 << 22])}
    if op == "Concat":
        nodes = [node(f"h{i + 1} = Concat(h{i}, h{i})", axis=0) for i in range(45)]
        return model([*nodes, node("y = ReduceSum(h45)", keepdims=0)], ["h0 f32 1"], ["y f32"])
    if op == "Range":
        weights = {"a": np.array(0), "n": np.array(1 << 45), "b": np.array(1)}
        return model(["r = Range(a, n, b)", "y = ReduceMax(r)"], [], ["y i64 1"], weights)
    make = {"Expand": "e = Expand(x, s)", "Tile": "e = Tile(x, s)",
            "ConstantOfShape": "e = ConstantOfShape(s)"}[op]
    return model([make, node("y = ReduceSum(e)", keepdims=0)], ["x f32 1 1"], ["y f32"], weights)


def test_functions_that_multiply() -> None:
    with pytest.raises(InputError) as caught:
        import_model(doubling(29), limits=Limits(nodes=2000))
    assert caught.value.code == "GT1022" and "--limit nodes" in caught.value.hint


@pytest.mark.parametrize("inside", ["", "If", "Loop"])
def test_functions_are_counted_before_they_run(inside: str, monkeypatch: Any) -> None:
    """2**29 nodes are refused before a node runs, in a branch or a body too."""
    monkeypatch.setattr(OnnxConversion, "node", lambda *_: pytest.fail("a node ran"))
    with pytest.raises(InputError) as caught:
        import_model(within(inside, doubling(29)))
    assert caught.value.code == "GT1022"


def test_a_long_chain_of_functions() -> None:
    """Each calls the next: no message about the interpreter's stack."""
    opsets = [helper.make_opsetid("mine", 1)]
    rows = [helper.make_function("mine", f"F{i}", ["a"], ["b"],
                                 [node(f"b = F{i + 1}(a)", domain="mine")], opsets)
            for i in range(5000)]
    proto = model([node("y = F0(x)", domain="mine")], ["x f32 2"], ["y f32 2"], functions=rows)
    proto.opset_import.append(opsets[0])
    with pytest.raises(InputError) as caught:
        import_model(proto)
    assert caught.value.code == "GT1013"


def within(op: str, proto: Any) -> Any:
    """The model with its only node in both branches of an If, or in the body of a Loop."""
    inner = [*proto.graph.node]
    if op == "If":
        body = helper.make_graph(inner, "side", [], [value("y f32 2")])
        rows = [node("z = If(p)", then_branch=body, else_branch=body)]
    elif op == "Loop":
        body = helper.make_graph([node("on = Identity(go)"), *inner], "body",
                                 [value("i i64"), value("go bool"), value("s f32 2")],
                                 [value("on bool"), value("y f32 2")])
        rows = [node("z = Loop(, p, x)", body=body)]
    else:
        return proto
    out = model(rows, ["x f32 2", "p bool"], ["z f32 2"], functions=list(proto.functions))
    out.opset_import.append(helper.make_opsetid("mine", 1))
    return out
    with pytest.raises(InputError, match="more than 0 seconds"):
        import_model(doubling(29), limits=Limits(seconds=0))
    assert len(import_model(doubling(6)).graph.nodes) == 32


@pytest.mark.parametrize("place", ["initializer", "attribute"])
def test_sparse_tensors_laid_out(place: str) -> None:
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(np.float32([1, 2]), "w"),
                                       numpy_helper.from_array(np.array([0, 3]), "at"), [5000])
    proto = model(["y = Add(x, w)"], ["x f32 1"], ["y f32 5000"])
    if place == "initializer":
        proto.graph.sparse_initializer.append(sparse)
    else:
        proto.graph.node.insert(0, node("w = Constant()", sparse_value=sparse))
    assert import_model(proto, limits=Limits(bytes=20000))
    with pytest.raises(InputError, match="takes 20000 bytes") as caught:
        import_model(proto, limits=Limits(bytes=19999))
    assert caught.value.code == "GT1022"


def test_one_node_that_becomes_many() -> None:
    proto = model(["s = SplitToSequence(x)", "n = SequenceLength(s)"], ["x f32 5000"], ["n i64"])
    with pytest.raises(InputError, match="more than 4000 nodes") as caught:
        import_model(proto, limits=Limits(nodes=1000))
    assert caught.value.code == "GT1022" and "--limit nodes" in caught.value.hint
    import_model(proto, limits=Limits(nodes=2000))


@pytest.mark.parametrize("op", ["Concat", "Range", "Expand", "Tile", "ConstantOfShape"])
def test_arrays_out_of_all_proportion(op: str, tmp_path: Path,
                                      capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(large(op).SerializeToString())
    assert run(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "g.json")]) in (1, 3)
    err = capsys.readouterr().err
    assert "NOT CHECKED" in err and "bytes" in err


@pytest.mark.process
def test_a_check_that_does_not_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.onnx").write_bytes(endless().SerializeToString())
    assert run(["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "g.json"),
                "--limit", "seconds=5"]) == 1
    assert "the evaluator did not finish" in capsys.readouterr().err


@pytest.mark.process
def test_an_oracle_that_does_not_end(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(endless().SerializeToString())
    side = RuntimeProcess(tmp_path / "m.onnx", Limits(seconds=3))
    with pytest.raises(GraphtoolError) as caught:
        side.run({"x": np.ones(2, np.float32)})
    assert caught.value.code == "GT3045"


@pytest.mark.process
def test_an_oracle_that_wants_all_memory(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(large("Expand").SerializeToString())
    with pytest.raises(InputError) as caught:
        RuntimeProcess(tmp_path / "m.onnx").run({"x": np.ones((1, 1), np.float32)})
    assert caught.value.code in ("GT3043", "GT3045")


def test_limits_are_read() -> None:
    assert read_limits(["nodes=5", "seconds=7"]) == Limits(nodes=5, seconds=7)
    for text in ("nodes", "nodes=-1", "hours=1", "nodes=x"):
        with pytest.raises(UsageError, match="--limit"):
            read_limits([text])
