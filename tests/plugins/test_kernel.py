"""A kernel and a target of plug-ins: chosen by cost, lowered, interpreted, compiled, explained."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import graphtool
from graphtool import plugins
from graphtool.analysis import made_up
from graphtool.ir.op import OPS
from graphtool.ir.serial import collect_all
from graphtool.kernels import headers, record
from graphtool.loops import contract
from graphtool.loops import interp as loops
from graphtool.loops.walk import statements
from graphtool.passes.select import SELECTORS
from tests.cli.conftest import Cli
from tests.plugins.conftest import EXAMPLES, example

KERNEL, TARGET = example("norm_rows"), example("zen3")
MODEL = """<ir_version: 9, opset_import: ["" : 18]>
g (float[N,6,70] x, float[70] b) => (float[N,6,70] y) {
  axes = Constant<value = int64[1] {-1}>() eps = Constant<value = float {1e-6}>()
  a = Mul(x, x) s = ReduceSum<keepdims = 1>(a, axes) r = Sqrt(s) m = Max(r, eps)
  d = Div(x, m) e = Add(d, b) y = Relu(e) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model whose rows are divided by their length, written as exporters do."""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return path


def test_from_model_to_numbers(gt: Cli, model: Path, tmp_path: Path) -> None:
    graph, program, built = (tmp_path / n for n in ("m.graph.json", "m.program.json", "b"))
    assert gt("opt", model, "-o", graph, KERNEL).code == 0
    assert gt("lower", graph, "-o", program, KERNEL).code == 0
    assert gt("build", program, "-o", built, KERNEL).code == 0
    assert (built / "norm_rows.h").read_text() == (EXAMPLES / "norm_rows.h").read_text()
    assert gt("check", graph, built, KERNEL, "--dim", "N=3").code == 0
    assert gt("check", model, built, "--dim", "N=3").code == 0  # which needs no plug-in


def test_the_meaning_is_what_the_op_computes(model: Path) -> None:
    """The interpreter of loops runs the contract's meaning, the evaluator the op's."""
    plugins.load_plugin(EXAMPLES / "norm_rows.py")
    try:
        module = graphtool.optimize(graphtool.import_model(model))
        program = graphtool.lower_model(module)
        assert "norm_rows" in repr([t for k in program.kernels for t in statements(k.body)])
        store = {w.digest: w for w in collect_all(module.graph)}
        inputs = made_up.random_inputs(module, 0, {"N": 2})
        np.testing.assert_allclose(loops.run(program, inputs, store)["y"],
                                   graphtool.evaluate(module, inputs)["y"], atol=1e-6)
    finally:
        plugins.unload("norm_rows")


def test_why_says_what_it_was_chosen_over(gt: Cli, model: Path, tmp_path: Path) -> None:
    gt("opt", model, "-o", tmp_path / "m.graph.json", KERNEL)
    told = gt("show", tmp_path / "m.graph.json", "--why", KERNEL).out
    assert "unit_rows{rows=" in told and "loops: " in told and "expected by the cost" in told
    assert "made by   recognise.find_unit_rows" in told


def test_what_needs_no_plug_in(gt: Cli, model: Path, tmp_path: Path) -> None:
    """A build tells its choice, and tune leaves a site alone that it does not know."""
    gt("build", model, "-o", tmp_path / "b", KERNEL)
    assert "loops: " in gt("show", tmp_path / "b", "--why").out
    done = gt("tune", tmp_path / "b")
    assert done.code == 3 and "GT3091" in done.err


def test_the_cheaper_one_is_taken(gt: Cli, tmp_path: Path) -> None:
    """A row of two elements is no work for a kernel of its own."""
    small = MODEL.replace("[N,6,70]", "[1,2]").replace("[70]", "[2]")
    onnx.save(onnx.parser.parse_model(small), tmp_path / "m.onnx")
    gt("opt", tmp_path / "m.onnx", "-o", tmp_path / "m.graph.json", KERNEL)
    assert "norm_rows(" not in gt("show", tmp_path / "m.graph.json", KERNEL).out


def test_a_program_names_what_it_needs(gt: Cli, model: Path, tmp_path: Path) -> None:
    graph, program = tmp_path / "m.graph.json", tmp_path / "m.program.json"
    gt("opt", model, "-o", graph, KERNEL)
    gt("lower", graph, "-o", program, KERNEL)
    done = gt("build", program, "-o", tmp_path / "b")
    assert done.code == 4 and "error[GT0358]: the program needs the plug-in norm_rows" in done.err
    assert "the kernel is of the plug-in norm_rows 1.0" in done.err


@pytest.mark.parametrize("macro", ["ROWS", "COLS", "XR"])
def test_a_program_that_leaves_its_buffers_is_refused(
        macro: str, gt: Cli, tmp_path: Path) -> None:
    """One row or element more is outside, one less inside."""
    closed, graph, program = (tmp_path / f"m.{e}" for e in ("onnx", "graph.json", "program.json"))
    onnx.save(onnx.parser.parse_model(MODEL.replace("[N,6,70]", "[2,6,70]")), closed)
    gt("opt", closed, "-o", graph, KERNEL)
    gt("lower", graph, "-o", program, KERNEL)
    assert gt("build", program, "-o", tmp_path / "b", KERNEL).code == 0
    at = re.search(rf'"{macro}", "size": (\d+)', program.read_text())
    assert at is not None
    for step in (1, -1):
        text = program.read_text().replace(at[0], f'"{macro}", "size": {int(at[1]) + step}')
        (tmp_path / "c.program.json").write_text(text)
        done = gt("emit", tmp_path / "c.program.json", "-o", tmp_path / "c", KERNEL)
        assert (done.code == 3 and "error[GT0375]" in done.err) if step == 1 else done.code == 0


def test_a_kernel_without_a_reach_is_built_but_not_read(gt: Cli, model: Path, tmp_path: Path
                                                        ) -> None:
    plugin, graph, program = (tmp_path / n for n in (
        "norm_rows.py", "m.graph.json", "m.program.json"))
    text = (EXAMPLES / "norm_rows.py").read_text()
    plugin.write_text(text.replace('("r", "c"), touches)', '("r", "c"))'))
    shutil.copy(EXAMPLES / "norm_rows.h", tmp_path)
    option = f"--plugin={plugin}"
    assert gt("build", model, "-o", tmp_path / "b", option).code == 0
    gt("opt", model, "-o", graph, option)
    assert gt("lower", graph, "-o", program, option).code == 0
    done = gt("build", program, "-o", tmp_path / "b", option)
    assert done.code == 3
    assert "error[GT0380]: the kernel norm_rows does not declare what it touches" in done.err
    assert "help: give its Contract `touches=`" in done.err


def test_nothing_stays_behind() -> None:
    tables = (record.KERNELS, contract.CONTRACTS, SELECTORS, headers.names())
    before = [set(t) for t in tables]
    plugins.load_plugin(EXAMPLES / "norm_rows.py")
    op = OPS["norm_rows"]
    assert record.serving(op) is not None
    plugins.unload("norm_rows")
    assert [set(t) for t in (*tables[:3], headers.names())] == before
    assert record.serving(op) is None


@pytest.mark.parametrize(("text", "word"), [
    ("add_kernel(Record(Contract('mine', 'd', (), (), print)), Path('other.h'))", "not other.h"),
    ("add_kernel(Record(Contract('gemm', 'd', (), (), print)), Path('gemm.h'))",
     "'gemm' already exists"),
    ("add_selector('attention', print)", "'attention' already exists"),
    ("add_selector('atention', print)", "unknown op 'atention'"),
    ("family_rule('ad')(print)", "unknown op 'ad'"),
    ("add_target(Target('generic', 'd', 1, 4, 4))", "'generic' already exists")])
def test_what_cannot_be_added(text: str, word: str, gt: Cli, tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(f"from pathlib import Path\nfrom graphtool.extend import *\n{text}")
    done = gt("ops", "--plugin", path)
    assert done.code in (2, 3) and word in done.err


def test_a_target_is_one_row(gt: Cli, model: Path, tmp_path: Path) -> None:
    assert gt("build", model, "--march", "zen3", "-o", tmp_path / "none").code == 2
    graph, program = tmp_path / "m.graph.json", tmp_path / "m.program.json"
    gt("opt", model, "-o", graph)
    assert gt("lower", graph, "--march", "zen3", "-o", program, TARGET).code == 0
    assert json.loads(program.read_text())["meta"]["target"] == "zen3"
    assert gt("emit", graph, "--march", "zen3", "-o", tmp_path / "c", TARGET).code == 0


def test_tune_measures_a_site_of_ones_own(gt: Cli, model: Path, tmp_path: Path) -> None:
    """Both alternatives get a time; a build with the file takes what was measured."""
    tuning, graph = tmp_path / "t.jsonl", tmp_path / "m.graph.json"
    done = gt("tune", model, KERNEL, "-o", tuning, "--seconds", "0.01", "--json")
    (site,) = json.loads(done.out)["sites"]
    assert site["site"] == "unit_rows{rows=768,columns=70}" and min(site["candidates"].values()) > 0
    assert set(site["candidates"]) == {"rows", "loops"}
    rows = [json.loads(line) for line in tuning.read_text().splitlines()]
    tuning.write_text("\n".join(json.dumps(r | {"us": {"loops": 1.0, "rows": 2.0}} if "us" in r
                                           else r) for r in rows))
    assert gt("opt", model, KERNEL, "--tuning", tuning, "-o", graph).code == 0
    assert "norm_rows(" not in gt("show", graph, KERNEL).out
    assert gt("tune", "--check", tuning, "--seconds", "0.01", KERNEL).code in (0, 1)
    done = gt("tune", "--check", tuning, "--seconds", "0.01")  # unknown without the plug-in
    assert (done.code, done.out.count("unit_rows")) == (0, 0)


def test_a_model_without_its_site(gt: Cli, model: Path, tmp_path: Path) -> None:
    text = (EXAMPLES / "norm_rows.py").read_text().replace("(site.rows, site.columns)", "(3, 70)")
    for name in ("norm_rows.py", "norm_rows.h"):
        (tmp_path / name).write_text(text if name.endswith(".py") else
                                     (EXAMPLES / name).read_text())
    done = gt("tune", model, f"--plugin={tmp_path / 'norm_rows.py'}")
    assert done.code == 3 and "error[GT3108]: the model for unit_rows{rows=768" in done.err
    assert f"at {tmp_path / 'norm_rows.py'}" in done.err and "{rows=3,columns=70}" in done.err
