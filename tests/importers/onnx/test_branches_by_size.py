"""If on a comparison of sizes: decided by bounds, or by the equation that it states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

from graphtool import interp
from graphtool.errors import InputError, UnsupportedError
from graphtool.ir import listing
from graphtool.verify.imports import check_import
from tests.importers.onnx.build import checked, evaluate, model, node, random, value
from tests.lower.compiling import compiled, optimised


def branch(text: str) -> Any:
    """The graph of a branch of one node, whose rank nothing declares."""
    info = value(text.split()[0] + " f32")
    info.type.tensor_type.ClearField("shape")
    return helper.make_graph([node(text)], "branch", [], [info])


def squeezes(compare: str, then: str = "a = Squeeze(x, ax)", other: str = "b = Identity(x)",
             more: tuple[Any, ...] = ()) -> Any:
    """x[N,4,T] without its last axis if the comparison of T with `one` holds."""
    nodes = ["s = Shape(x)", "t = Gather(s, two)", f"c = {compare}(t, one)", *more,
             node(f"y = If({'d' if more else 'c'})", then_branch=branch(then),
                  else_branch=branch(other))]
    proto = model(nodes, ["x f32 N 4 T"], ["y f32"], {"two": np.int64(2), "one": np.int64(1),
                                                      "ax": np.array([2])}, opset=17)
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


EQUAL = {"equal": squeezes("Equal"), "not equal": squeezes(
    "Equal", "b = Identity(x)", "a = Squeeze(x, ax)", ("d = Not(c)",))}


@pytest.mark.parametrize("name", EQUAL)
def test_branches_of_different_rank(name: str) -> None:
    x = random(2, 4, 1)
    np.testing.assert_array_equal(evaluate(EQUAL[name], {"x": x})[0], x[..., 0])
    assert listing.required(checked(EQUAL[name])) == ["T == 1"]
    with pytest.raises(InputError, match="T == 1 does not hold"):
        evaluate(EQUAL[name], {"x": random(2, 4, 3)})


@pytest.mark.parametrize(("compare", "bounds", "rank"), [
    ("Equal", (2, None), 3), ("Equal", (1, 1), 2), ("Greater", (2, 9), 2), ("Less", (1, None), 3),
    ("LessOrEqual", (0, 1), 2), ("GreaterOrEqual", (1, None), 2)])
def test_bounds_decide(compare: str, bounds: Any, rank: int) -> None:
    module = checked(squeezes(compare, "a = Flatten(x)"), dynamic={"T": bounds})
    assert module.graph.outputs[0].type.rank == rank and not listing.required(module)


def test_other_comparisons_name_the_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"1 < T decides between them.*--dynamic T=2\.\."):
        checked(squeezes("Greater"))


def test_sizes_inside_a_branch(tmp_path: Path) -> None:
    """A branch that typical sizes do not take may have windows that do not fit; a check uses sizes
    with which both branches have a meaning, but no run is required to."""
    def of(window: str, stride: int) -> Any:
        graph = branch(f"z = Conv(x, {window})")
        graph.node[0].attribute.append(helper.make_attribute("strides", [stride]))
        graph.node.append(node("r = ReduceMax(z)", keepdims=0))
        graph.output[0].CopyFrom(value("r f32"))
        return graph
    proto = model([node("y = If(c)", then_branch=of("long", 64), else_branch=of("short", 1))],
                  ["x f32 N 1 T", "c bool"], ["y f32"],
                  {"long": random(2, 1, 200), "short": random(2, 1, 3)})
    module = checked(proto)
    assert module.meta["example_sizes"] == {"T": 200} and not listing.required(module)
    assert module.symbols["T"].lo == 1
    path = tmp_path / "m.onnx"
    path.write_bytes(proto.SerializeToString())
    assert check_import(str(path), module).ok
    run = compiled(optimised(module), tmp_path / "b")
    for c, t in ((False, 9), (False, 300), (True, 300)):
        x = {"x": random(2, 1, t), "c": np.bool_(c)}
        np.testing.assert_allclose(run(**x)["y"], interp.run(module, x)["y"], rtol=1e-5)
