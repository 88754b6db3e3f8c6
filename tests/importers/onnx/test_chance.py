"""Random operators: distributions, the state in and out, and what is not random after all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import interp
from graphtool.errors import UnsupportedError
from graphtool.ops.random import state_of
from tests.importers.onnx.build import checked, model, node, ops


def drawn(call: Any, feed: dict[str, Any] | None = None, seed: int = 1, kind: str = "f32",
          weights: Any = None) -> tuple[Any, Any]:
    inputs = [f"{k} f32 {' '.join(map(str, v.shape))}" for k, v in (feed or {}).items()]
    module = checked(model([call], inputs, [f"y {kind} ?"], weights, opset=21))
    assert module.output_names[-1] == "rng" and module.donations
    out = interp.run(module, {**(feed or {}), "rng": state_of(seed)})
    return out["y"], out["rng"]


@pytest.mark.parametrize("call, mean, std", [
    (node("y = RandomUniform()", shape=[20000], low=2.0, high=4.0), 3.0, 2 / 12**0.5),
    (node("y = RandomNormal()", shape=[20000], mean=-1.0, scale=0.5), -1.0, 0.5)])
def test_distributions(call: Any, mean: float, std: float) -> None:
    y, _ = drawn(call)
    assert y.mean() == pytest.approx(mean, abs=0.02) and y.std() == pytest.approx(std, abs=0.02)


def test_like_their_operand() -> None:
    x = np.full((200, 100), 0.3, np.float32)
    y, _ = drawn(node("y = Bernoulli(x)"), {"x": x})
    assert y.dtype == np.float32 and y.mean() == pytest.approx(0.3, abs=0.02)
    y, _ = drawn(node("y = RandomNormalLike(x)"), {"x": x})
    assert y.shape == x.shape and abs(y.mean()) < 0.02


def test_multinomial() -> None:
    x = np.log(np.float32([[0.2, 0.5, 0.3]]))
    y, _ = drawn(node("y = Multinomial(x)", sample_size=20000), {"x": x}, kind="i32")
    assert np.bincount(y[0]) / 20000 == pytest.approx([0.2, 0.5, 0.3], abs=0.02)


def test_the_state_moves_on_and_decides_all() -> None:
    call = node("y = RandomNormal()", shape=[8])
    (a, after), (b, _), (c, _) = drawn(call), drawn(call), drawn(call, seed=2)
    assert (a == b).all() and (a != c).any() and after[1] > 0


def test_dropout_in_training_and_not() -> None:
    weights = {"r": np.float32(0.25), "t": np.array(True), "f": np.array(False)}
    y, _ = drawn(node("y = Dropout(x, r, t)"), {"x": np.ones((100, 100), np.float32)},
                 weights=weights)
    assert set(np.unique(y)) == {0, np.float32(4 / 3)} and y.mean() == pytest.approx(1, abs=0.02)
    still = checked(model(["h = Dropout(x, r, f)", "y = Neg(h)"], ["x f32 2"], ["y f32 2"],
                          weights))
    assert ops(still) == ["neg"] and still.output_names == ("y",)


@pytest.mark.parametrize("given", ["ratio", "training_mode"])
@pytest.mark.parametrize("known", [True, False])
def test_dropout_of_several_ratios_is_refused(given: str, known: bool) -> None:
    kind, value = ("f32", np.float32([0.1, 0.2])) if given == "ratio" else (
        "bool", np.array([True, True]))
    call = "y = Dropout(x, v)" if given == "ratio" else "y = Dropout(x, , v)"
    proto = model([call], ["x f32 2", *([] if known else [f"v {kind} 2"])], ["y f32 2"],
                  {"v": value} if known else {})
    with pytest.raises(UnsupportedError, match=f"the {given} of Dropout must be one number"):
        checked(proto)
