"""The plug-ins of the documentation, from import to run: each verb knows what they add."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

import graphtool
from graphtool import dtypes, extend, plugins
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from tests.cli.conftest import Cli
from tests.plugins.conftest import EXAMPLES, example

SNAKE, ONNX, TORCH = example("snake"), example("snake_onnx"), example("snake_torch")
MODEL = """<ir_version: 9, opset_import: ["" : 18, "com.example.audio" : 1]>
g (float[N,4] x) => (float[N,4] y) {
  a = com.example.audio.Snake<alpha: float = 0.5>(x)
  b = Mul(a, a) c = Abs(b) d = Add(x, a) e = Add(a, x) f = Mul(d, e) y = Add(c, f) }"""
SOURCE = """
import torch

@torch.library.custom_op("audio::snake", mutates_args=())
def snake(x: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
    return x + torch.sin(alpha * x) ** 2 / alpha

snake.register_fake(lambda x, alpha=1.0: torch.empty_like(x))

class Net(torch.nn.Module):
    def forward(self, x):
        return snake(x, 0.5) * 2
"""


@pytest.fixture
def graph(gt: Cli, tmp_path: Path) -> Path:
    """The graph of an ONNX model with an operator of a domain of its own."""
    onnx.save(onnx.parser.parse_model(MODEL), tmp_path / "m.onnx")
    path = tmp_path / "m.graph.json"
    done = gt("import", tmp_path / "m.onnx", "-o", path, "--no-check", ONNX)
    assert done.code == 0, done.err
    return path


def test_an_operator_of_a_custom_domain(gt: Cli, graph: Path) -> None:
    assert "snake(x, alpha=0.5)" in gt(SNAKE, "show", graph).out
    assert json.loads(graph.read_text())["meta"]["plugins"] == {
        "snake": {"version": "1.0", "ops": ["snake"]}}


def test_back_to_an_operator_of_the_domain(gt: Cli, graph: Path, tmp_path: Path) -> None:
    """What is exported is valid ONNX, and is imported as the same graph."""
    back = tmp_path / "back.onnx"
    assert gt("export", graph, "-o", back, SNAKE).code == 4  # the op alone has no form
    done = gt("export", graph, "-o", back, ONNX)
    assert done.code == 0, done.err
    model = onnx.load(back)
    onnx.checker.check_model(model)
    assert {(i.domain, i.version) for i in model.opset_import} == {
        ("", 26), ("com.example.audio", 1)}
    (node,) = (n for n in model.graph.node if n.op_type == "Snake")
    assert (node.domain, node.attribute[0].f) == ("com.example.audio", 0.5)
    assert gt("diff", graph, back, ONNX).code == 0


@pytest.mark.compiled
def test_a_form_made_of_other_ops(gt: Cli, graph: Path, tmp_path: Path) -> None:
    """`w.restate` writes ONNX's own operators, which onnxruntime runs; Declined is no fault."""
    path = tmp_path / "form.py"
    path.write_text("""from graphtool.extend import *
from graphtool.exporters.onnx.registry import Declined
@onnx_form("snake")
def form(w, node, x):
    if FAILS:
        raise Declined("not today")
    s = lambda x: ops.sin(x * node.attrs["alpha"])
    return w.restate(lambda x: x + s(x) * s(x) / node.attrs["alpha"], [x])
""".replace("FAILS", "False"))
    back = tmp_path / "back.onnx"
    assert gt("export", graph, "-o", back, SNAKE, f"--plugin={path}").code == 0
    assert {i.domain for i in onnx.load(back).opset_import} == {""}
    assert gt("check", graph, back, "--dim", "N=3", SNAKE).code == 0
    path.write_text(path.read_text().replace("if False", "if True"))
    done = gt("export", graph, "-o", back, SNAKE, f"--plugin={path}")
    assert done.code == 4 and "snake: not today" in done.err
    path.write_text(path.read_text().replace("if True", "if 1 / 0"))
    done = gt("export", graph, "-o", back, SNAKE, f"--plugin={path}")
    assert done.code == 3 and "error[GT3105]: the ONNX form of snake" in done.err


def test_from_graph_to_numbers(gt: Cli, graph: Path, tmp_path: Path) -> None:
    """opt, grad, build, run and check, with an op, a rule and a pass of plug-ins at once."""
    given = (SNAKE, example("abs_of_square"), example("sort_operands"))
    best, joint = tmp_path / "o.graph.json", tmp_path / "g.graph.json"
    opt = gt("opt", graph, "-o", best, "--time", "--check", *given)
    assert opt.code == 0 and "abs_of_square × 1" in opt.out + opt.err
    assert "sort_operands" in opt.out + opt.err
    listing = gt("show", best, SNAKE).out
    assert listing.count("add(") == 2 and "abs(" not in listing
    assert gt("grad", graph, "--loss", "mse", "--wrt", "x", "-o", joint, SNAKE).code == 0
    for source in (best, joint):
        assert gt("build", source, "-o", tmp_path / "b", SNAKE).code == 0
        assert gt("check", source, tmp_path / "b", SNAKE, "--dim", "N=3").code == 0
    assert gt("run", tmp_path / "b", "--random", "--dim", "N=3").code == 0  # the C needs no plug-in


def test_why_names_the_rule(gt: Cli, graph: Path, tmp_path: Path) -> None:
    rule, best = example("abs_of_square"), tmp_path / "o.graph.json"
    gt("opt", graph, "-o", best, SNAKE, rule)
    assert "simplify.abs_of_square" in best.read_text()


def test_an_operator_of_torch_library(gt: Cli, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(SOURCE)
    path = tmp_path / "net.graph.json"
    done = gt("import", f"{tmp_path / 'net.py'}:Net", "--inputs", "x:f32[2,3]", "-o", path, TORCH)
    assert done.code == 0, done.err  # it compares with torch
    assert "snake(" in gt("show", path, SNAKE).out


def test_the_catalogues_list_what_plug_ins_add(gt: Cli) -> None:
    assert "plug-in   snake 1.0" in gt("ops", "snake", SNAKE).out
    assert "sort_operands" in gt("passes", example("sort_operands")).out
    assert gt("ops", "snake").code == 3


def test_the_gradient_of_the_op() -> None:
    """The evaluated gradient against a central difference."""
    plugins.load_plugin(EXAMPLES / "snake.py")
    try:
        x, step = np.linspace(-2, 2, 5), 1e-6
        graph = trace(lambda x: extend.ops.snake(x, alpha=0.7), [TensorType(dtypes.float64, (5,))],
                      ["x"])
        module = graphtool.grad(Module(graph, ("y",)), graphtool.Recipe("mse", wrt=("x",)))
        got = graphtool.evaluate(module, {"x": x, "y": np.zeros(5)})["grad.x"]
        low, high = (extend.ops.snake(x + d, alpha=0.7) for d in (-step, step))
        want = 2 / 5 * extend.ops.snake(x, alpha=0.7) * (high - low) / (2 * step)
        np.testing.assert_allclose(got, want, rtol=1e-6)
    finally:
        plugins.unload("snake")


def test_a_listing_names_its_plug_in(gt: Cli, graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.gt"
    path.write_text(gt("show", graph, SNAKE).out)
    assert gt("show", path).code == 4 and gt("show", path, SNAKE).code == 0


@pytest.mark.long
def test_the_schema_knows_the_op(gt: Cli, graph: Path) -> None:
    """A graph with the op fits the schema with the plug-in, and no other."""
    raw, (mine, plain) = json.loads(graph.read_text()), (
        json.loads(gt("schema", *option).out) for option in ([SNAKE], ["graph"]))
    jsonschema.validate(raw, mine)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, plain)
    node = next(n for n in raw["nodes"] if n["op"] == "snake")
    node["attrs"]["alpha"] = "much"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(raw, mine)
    done = gt("schema", "nothing")
    assert done.code == 2 and "error[GT3026]" in done.err and "tuning" in done.err
