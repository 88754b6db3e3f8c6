"""Open sizes that random graphs found: groups of channels, Expand, an empty Reshape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import InputError
from graphtool.ir import listing
from tests.importers.onnx.build import agree, checked, model, node, random
from tests.lower.compiling import compiled, optimised

GROUPS = model([node("y = GroupNormalization(x, s, b)", num_groups=2)],
               ["x f32 2 C 3", "s f32 C", "b f32 C"], ["y f32 ? ? ?"], opset=21)
SPREAD = model([node("y = Expand(x, to)")], ["x f32 2 N 4"], ["y f32 ? ? ?"],
               {"to": np.array([3, 1])}, opset=21)
RESHAPE = [node("y = Reshape(x, to)")]
EMPTY = model(RESHAPE, ["x f32 7 0", "to i64 3"], ["y f32 ? ? ?"], opset=21)
FILLED = model(RESHAPE, ["x f32 N 4", "to i64 2"], ["y f32 ? ?"], opset=21)


def reshaped(n: int, *to: int) -> dict[str, Any]:
    return {"x": random(n, 4), "to": np.array(to)}


def groups(n: int) -> dict[str, Any]:
    return {"x": random(2, n, 3), "s": random(n), "b": random(n)}


CASES = {"groups": (GROUPS, [groups(2), groups(6)], [groups(3)]),
         "expand": (SPREAD, [{"x": random(2, n, 4)} for n in (1, 3)], [{"x": random(2, 2, 4)}]),
         "reshape": (FILLED, [reshaped(3, 6, 2), reshaped(3, 6, -1), reshaped(3, -1, 2),
                              reshaped(1, 0, 4)],
                     [reshaped(2, 3, 2), reshaped(2, 2, 5), reshaped(2, 3, -1)])}


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_fit_are_those_of_the_oracle(name: str, tmp_path: Path) -> None:
    proto, good, bad = CASES[name]
    module = checked(proto)
    for feed in good:
        agree(proto, feed)
    for feed in bad:
        with pytest.raises(InputError):
            interp.run(module, feed)
    built = compiled(optimised(module), tmp_path)
    for feed in good:
        want = interp.run(module, feed)["y"]
        np.testing.assert_allclose(built.run(feed)["y"], want, 1e-5, 1e-5)
    for feed in bad:
        with pytest.raises(InputError):
            built.run(feed)


@pytest.mark.parametrize("to", [[7, 0, 1], [0, -1, 2], [0, 0, 5], [20, 0, 3], [3, 0, 8]])
def test_nothing_has_any_sizes(to: list[int]) -> None:
    agree(EMPTY, {"x": random(7, 0), "to": np.array(to)})


def test_nothing_has_no_elements() -> None:
    with pytest.raises(InputError):
        interp.run(checked(EMPTY), {"x": random(7, 0), "to": np.array([3, 1, 2])})


def test_groups_of_open_channels_are_a_condition() -> None:
    assert listing.required(checked(GROUPS)) == ["C % 2 == 0"]


def test_a_computed_size_may_be_doubled_forty_times() -> None:
    """Each node uses the one before twice: the ways through them are 2⁴⁰."""
    nodes = [f"y{i + 1} = Add(y{i}, y{i})" for i in range(40)]
    proto = model([*nodes, "zero = Sub(y40, y40)", "n = Add(zero, y1)", "z = ConstantOfShape(n)"],
                  ["y0 i64 1"], ["z f32 ?"])
    got, = interp.run(checked(proto), {"y0": np.array([3])}).values()
    assert got.shape == (6,)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"])
def test_open_sizes_are_reduced_over_the_axes_that_are_named(op: str) -> None:
    nodes = ["s = Shape(x)", node(f"y = {op}(s, a)", keepdims=0, noop_with_empty_axes=1)]
    for axes, shape in (([], "?"), ([0], "")):
        proto = model(nodes, ["x f32 N 4"], [f"y i64 {shape}".strip()], {
            "a": np.array(axes, np.int64)}, opset=21)
        agree(proto, {"x": random(3, 4)})
