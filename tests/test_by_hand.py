"""Graphs that a program builds value by value."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Graph, InputError
from graphtool.extend import TensorType, dtype, ops

W = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def network() -> Graph:
    """The result is named, and its output returned, before what it reads."""
    g = Graph(batch=(1, 8))
    g.add_output("y", "scores")
    g.add_op("relu", "h", name="y")
    g.add_op("matmul", "x", "w", name="h")
    g.add_const(W, "w", trainable=True)
    g.add_input("x", "f32[batch,3]")
    return g


def test_from_values_to_c(tmp_path: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    module = network().module()
    want = np.maximum(x @ W, 0)
    np.testing.assert_allclose(graphtool.evaluate(module, {"x": x})["scores"], want)
    assert "h: f32[batch,4] = matmul(x, @w)" in graphtool.show(module)
    assert "matmul" in graphtool.draw(module) and "matmul" in graphtool.draw(module, "dot")
    built = graphtool.load(graphtool.build(module, tmp_path / "b", name="net"))
    np.testing.assert_allclose(built(x=x)["scores"], want, rtol=1e-6)


def test_the_gradient_of_a_graph_by_hand() -> None:
    x, y = np.ones((2, 3), np.float32), np.zeros((2, 4), np.float32)
    step = graphtool.grad(network().module(), graphtool.Recipe("mse"))
    found = graphtool.evaluate(step, {"x": x, "y": y})
    scores = np.maximum(x @ W, 0)
    np.testing.assert_allclose(found["loss"], np.mean(scores**2), rtol=1e-6)
    np.testing.assert_allclose(found["grad.w"], x.T @ (2 * scores / scores.size), rtol=1e-5)


def test_folding_and_cleaning() -> None:
    g = Graph()
    g.add_input("x", "f32[2]")
    three = g.add_op("add", np.float32([1, 1]), np.float32([2, 2]))
    g.add_op("exp", "x", name="unused")
    g.add_output(g.add_op("mul", "x", three))
    module = graphtool.optimize(g.module(), "fold,dce,simplify")
    assert [n.op.name for n in module.graph.nodes if n.op.name != "constant"] == ["mul"]


def test_a_loop_has_a_graph_as_its_body() -> None:
    body = Graph()
    for name, kind in (("i", "i64[]"), ("s", "f32[3]")):
        body.add_input(name, kind)
    body.add_output(body.add_op("add", "i", 1))
    body.add_output(body.add_op("mul", "s", 2.0))
    g = Graph()
    g.add_input("x", "f32[3]")
    names = g.add_op("scan", np.int64(0), "x", body=body, carries=2, xs=0, length=5,
                     name=("count", "y"))
    assert names == ("count", "y")
    g.add_output("y")
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(graphtool.evaluate(g.module(), {"x": x})["y"], 32 * x)


def test_one_graph_is_used_twice_and_names_itself() -> None:
    g = network()
    g.add_const(np.zeros(2, np.float32))
    assert g.add_const(np.zeros(2, np.float32)) == "constant#2"
    assert str(g.module().graph) == str(g.module().graph)


def circle(g: Graph) -> None:
    g.add_op("add", "x", "b", name="a")
    g.add_op("exp", "a", name="b")


def inside_itself(g: Graph) -> None:
    g.add_op("scan", "x", body=g, carries=1, xs=0, length=1, name="y")
    g.add_output("y")


FAULTS: dict[str, tuple[Callable[[Graph], Any], str, str]] = {
    "a cycle": (circle, "GT0349", "a cycle: a reads b reads a"),
    "an unknown value": (lambda g: g.add_op("exp", "xx", name="y"), "GT0349", "'xx'"),
    "an unknown op": (lambda g: g.add_op("exq", "x"), "GT0401", "'exq'"),
    "shapes": (lambda g: g.add_op("add", "x", np.zeros(4, np.float32)), "GT0412", "f32[3]"),
    "types": (lambda g: g.add_op("add", "x", np.zeros(3)), "GT0412", "f64[3]"),
    "an attribute": (lambda g: g.add_op("exp", "x", frob=3), "GT0402", "frob"),
    "a name twice": (lambda g: g.add_op("exp", "x", name="x"), "GT0346", "'x'"),
    "an output": (lambda g: g.add_output("z"), "GT0347", "'z'"),
    "a type": (lambda g: g.add_input("y", "f32[3"), "GT0345", "f32[3"),
    "an element type": (lambda g: g.add_op("cast", "x", dtype="f33"), "GT0301", "'f33'"),
    "results": (lambda g: g.add_op("exp", "x", name=("a", "b")), "GT0348", "1 values"),
    "a graph in itself": (inside_itself, "GT0351", "contains itself"),
    "an array": (lambda g: g.add_const([object()]), "GT0302", "object"),
    "rows of two lengths": (lambda g: g.add_const([[1], [1, 2]], "c"), "GT0302", "of c"),
    "a constant for a name": (lambda g: g.add_const("w", np.zeros((2, 2))), "GT0342", "a name"),
    "no name": (lambda g: g.add_input("", "f32[3]"), "GT0342", "a name is a text, not ''"),
    "a number for a name": (lambda g: g.add_output(3), "GT0342", "not 3"),
    "a function for an op": (lambda g: g.add_op(np.exp, "x"), "GT0342", "an op is a text"),
    "an array type": (lambda g: g.add_input("y", np.float32), "GT0345", "numpy.float32"),
    "a complex operand": (lambda g: g.add_op("add", "x", 1j), "GT0302", "complex"),
    "one bound": (lambda g: Graph(n=4), "GT0356", "the bounds of n are 4"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told(name: str) -> None:
    fault, code, said = FAULTS[name]
    g = Graph()
    g.add_input("x", "f32[3]")
    with pytest.raises(InputError, match=code) as found:
        fault(g)
        g.module()
    assert said in str(found.value)


def test_it_prints_as_a_listing() -> None:
    """In a process that has used nothing else of the API."""
    code = ("import graphtool; g = graphtool.Graph(); g.add_input('x', 'f32[3]'); "
            "g.add_output(g.add_op('exp', 'x', name='y')); print(g.module())")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "y: f32[3] = exp(x)" in done.stdout


def test_types_and_ops_may_be_objects() -> None:
    g = Graph()
    g.add_input("x", TensorType(dtype("f32"), (2,)))
    g.add_output(g.add_op(ops.add, "x", [np.float32(1)] * 2, name="y"))
    assert repr(g) == "<Graph of 1 inputs, 1 constants, 1 ops, 1 outputs>"
    assert "y: f32[2] = add(x, @constant)" in graphtool.show(g.module())


@pytest.mark.parametrize("use", [graphtool.show, graphtool.draw, graphtool.optimize])
def test_a_graph_is_not_a_module_yet(use: Callable[[Any], Any]) -> None:
    with pytest.raises(graphtool.UsageError, match=r"(?s)GT3109.*module\(\)"):
        use(network())


def test_bounds_of_sizes() -> None:
    g = Graph(n=(5, 2))
    g.add_input("x", "f32[n]")
    with pytest.raises(InputError, match="GT0356"):
        g.module()


def test_a_picture_of_an_unknown_format() -> None:
    with pytest.raises(graphtool.UsageError, match="GT3017"):
        graphtool.draw(network().module(), "png")
