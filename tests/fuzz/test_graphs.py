"""The random graphs of `python -m tests.lab fuzz`: the generator, the comparison, and a slice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

from onnx import numpy_helper

from graphtool import ops as o
from graphtool.errors import InternalError
from graphtool.importers.onnx import HANDLERS, import_model
from graphtool.ir.graph import Module
from graphtool.ir.serial import load
from tests.lab.__main__ import main
from tests.lab.fuzz import grow
from tests.lab.fuzz.compare import difference, differing
from tests.lab.fuzz.compiled import compiled
from tests.lab.fuzz.evaluated import evaluated
from tests.lab.fuzz.oracle import Oracle, Silent, answer
from tests.lab.fuzz.record import read
from tests.lab.fuzz.table import ROWS

F32 = np.float32


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    one = Oracle()
    yield one
    one.close()


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a difference goes there."""
    monkeypatch.setenv("BENCH_DIR", str(tmp_path))


@pytest.mark.parametrize("name", ROWS)
def test_each_operator_is_made_and_accepted(name: str) -> None:
    made = (grow.case(seed, [name], 1) for seed in range(20))
    assert any(c.ops and not answer(c.model.SerializeToString(), c.inputs)[0] for c in made)


def test_enough_operators() -> None:
    ops_made = {n.op_type for name in ROWS for seed in range(3)
                for n in grow.case(seed, [name], 1).model.graph.node}
    assert len(ops_made) >= 140


def test_a_seed_is_a_graph() -> None:
    one, two = grow.case(77), grow.case(77)
    assert one.model.SerializeToString() == two.model.SerializeToString()
    assert all(np.array_equal(a, two.inputs[n], equal_nan=a.dtype.kind == "f")
               for n, a in one.inputs.items())


def test_what_is_in_the_graphs() -> None:
    cases = [grow.case(seed) for seed in range(150)]
    arrays = [a for c in cases for a in (*c.inputs.values(), *map(
        numpy_helper.to_array, c.model.graph.initializer))]
    floats = [a for a in arrays if a.dtype.kind == "f"]
    assert {a.dtype.name for a in arrays} >= {"float64", "float16", "int8", "uint32", "bool"}
    assert any(a.size == 0 for a in arrays) and any(c.symbolic for c in cases)
    assert any(np.isnan(a).any() for a in floats) and any(np.isinf(a).any() for a in floats)


@pytest.mark.parametrize(("got", "want", "kind"), [
    ([1.0], [1.0], ""), ([1.0], [1.0001], "value"), ([np.nan], [1], "nan"),
    ([np.nan], [np.nan], ""), ([np.inf], [-np.inf], "inf"), ([np.inf], [3e38], "inf"),
    ([[1.0]], [1.0], "shape [1, 1] for [1]")])
def test_difference(got: list[float], want: list[float], kind: str) -> None:
    assert difference(np.asarray(got, F32), np.asarray(want, F32)) == kind


def test_operands_set_the_tolerance() -> None:
    big, got, want = np.full(8, 1e4, F32), np.zeros(1, F32), np.full(1, 0.02, F32)
    assert difference(got, want) == "value"
    assert difference(got, want, [big]) == ""
    assert differing({"y": got}, {"y": want}, 1, {"y": np.full(1, np.nan)}) == {}


def test_a_planted_fault_of_the_importer_is_blamed_on_its_node(
        monkeypatch: pytest.MonkeyPatch, oracle: Oracle) -> None:
    monkeypatch.setitem(HANDLERS, ("", "Abs"), HANDLERS["", "Neg"])
    found = [evaluated(grow.case(s, ["Abs", "Ceil", "Identity"], 5), oracle) for s in range(6)]
    assert {f.cause.partition(":")[0] for e in found for f in e.findings} == {"Abs"}


def sigmoid_for_tanh(module: Module, *_: object, **__: object) -> Module:
    """A pass that makes each tanh a sigmoid."""
    nodes = (replace(n, op=o.sigmoid) if n.op is o.tanh else n for n in module.graph.nodes)
    return replace(module, graph=replace(module.graph, nodes=tuple(nodes)))


def test_a_planted_fault_of_the_passes_is_reduced(
        monkeypatch: pytest.MonkeyPatch, oracle: Oracle, tmp_path: Path) -> None:
    monkeypatch.setattr("tests.lab.fuzz.variants.passes.run", sigmoid_for_tanh)
    found = [evaluated(grow.case(s, ["Tanh", "Ceil", "Add"], 6), oracle) for s in range(4)]
    assert {f.cause for e in found for f in e.findings} == {"passes: value: tanh"}
    small = next((tmp_path / "fuzz").glob("*.graph.json"))
    assert [n.op for n in load(small).graph.nodes] == [o.tanh]


def failing(module: Module, *_: object, **__: object) -> Module:
    """A pass that refuses each tanh."""
    if any(n.op is o.tanh for n in module.graph.nodes):
        raise InternalError("GT7001", "a planted fault")
    return module


def test_a_failure_of_the_passes_is_reduced(
        monkeypatch: pytest.MonkeyPatch, oracle: Oracle) -> None:
    monkeypatch.setattr("tests.lab.fuzz.variants.passes.run", failing)
    found = [evaluated(grow.case(s, ["Tanh", "Ceil", "Add"], 6), oracle) for s in range(4)]
    assert {f.cause for e in found for f in e.findings} == {"passes: GT7001: tanh"}


def test_the_oracle_survives_what_it_cannot_read(oracle: Oracle) -> None:
    with pytest.raises(Silent, match="refused"):
        oracle.run(b"no model", {})
    c = grow.case(0, ["Tanh"], 1)
    assert oracle.run(c.model.SerializeToString(), c.inputs)


def test_the_oracle_starts_again(oracle: Oracle) -> None:
    assert oracle.process is not None
    oracle.process.kill()
    oracle.process.wait()
    c = grow.case(0, ["Tanh"], 1)
    assert oracle.run(c.model.SerializeToString(), c.inputs)


def test_slice(oracle: Oracle) -> None:
    """A hundred graphs evaluated, twelve of them compiled: nothing is unexplained."""
    found = [evaluated(grow.case(seed), oracle) for seed in range(100)]
    ready = [e for e in found if e.ready is not None and len(e.case.ops) > 3][:12]
    assert compiled(ready).total() == 12
    assert [f for e in found for f in e.findings] == []


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["fuzz", "--count", "3", "-j", "1", "--work", str(tmp_path)]
    assert main([*given, "--only", "Add", "Tanh"]) == 0
    assert "3 seeds in" in capsys.readouterr().out
    assert read(tmp_path / "results" / "fuzz.json").parts == []  # of chosen operators
    assert main([*given, "--rerun", "1"]) == 0 and (tmp_path / "fuzz" / "1.onnx").exists()
    assert main([*given, "--compile", "1"]) == main([*given, "--resume"]) == 0
    assert "0 seeds in" in capsys.readouterr().out
    (part,) = read(tmp_path / "results" / "fuzz.json").parts
    assert part.ranges == [(0, 3)] and part.compiled.total() == 3
    assert " 0–2 |" in (tmp_path / "results" / "fuzz.md").read_text()


@pytest.mark.parametrize(("seed", "found"), [(2477, "right"), (9413, "explained")])
def test_what_is_no_fault(oracle: Oracle, seed: int, found: str) -> None:
    """A NaN that a kernel for finite numbers spreads; a reciprocal of what the oracle rounds more
    roughly."""
    e = evaluated(grow.case(seed), oracle)
    assert (e.status, e.findings) == (found, [])
    assert e.assume == "nothing"


def test_a_fault_of_the_whole_graph_is_found(
        monkeypatch: pytest.MonkeyPatch, oracle: Oracle) -> None:
    """Each node alone is right, and so is their chain."""
    case = grow.case(3, ["Tanh", "Sigmoid"], 4)

    def wrong_if_long(model: Any) -> Module:
        module = import_model(model)
        return sigmoid_for_tanh(module) if len(model.graph.node) > 1 else module
    monkeypatch.setattr("tests.lab.fuzz.evaluated.import_model", wrong_if_long)
    assert [f.cause for f in evaluated(case, oracle).findings][:1] == ["whole graph: value"]
