"""Whole models quantised with examples: accuracy, and what each refinement is for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Quantisation, dtypes, interp
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace

SAMPLES = Path(__file__).parents[2] / "samples"
RNG = np.random.default_rng(5)


@cache
def digits() -> tuple[Module, dict[str, Any], Any]:
    test = np.load(SAMPLES / "digits_test.npz")
    return graphtool.import_model(SAMPLES / "digits.onnx"), {"image": test["image"]}, test["y"]


def right(module: Any) -> int:
    _, xs, y = digits()
    return int((next(iter(interp.run(module, xs).values())).argmax(1) == y).sum())


def error(changed: Module, original: Module, xs: dict[str, Any]) -> float:
    (got,), (want,) = interp.run(changed, xs).values(), interp.run(original, xs).values()
    return float(np.sqrt(((got - want) ** 2).sum() / (want ** 2).sum()))


@pytest.mark.part(3)
@pytest.mark.parametrize("how", [
    Quantisation(), Quantisation(method="percentile"), Quantisation(method="entropy"),
    Quantisation(method="mse"), Quantisation(symmetric=True), Quantisation(correct_bias=True),
    Quantisation(smooth=0.5), Quantisation(rounding="gptq"),
    Quantisation(("int4",)), Quantisation(("int2",), rounding="gptq", only=("head.*",))], ids=str)
def test_digits_lose_at_most_one_percent(how: Quantisation, tmp_path: Path) -> None:
    model, xs, y = digits()
    small = graphtool.quantise(model, how, SAMPLES / "digits_train.npz")
    assert right(small) >= right(model) - 3
    (logits,) = graphtool.load(graphtool.build(small, tmp_path / "b"))(**xs).values()
    assert int((logits.argmax(1) == y).sum()) >= right(model) - 3


def correlated(rows: int) -> Any:
    """Inputs of which a few channels are large, and all depend on a few numbers, as in a trained
    transformer."""
    base = RNG.normal(size=(rows, 12)) @ np.random.default_rng(1).normal(size=(12, 64))
    size = np.where(np.arange(64) % 16 == 0, 12.0, 0.5)
    return ((base + 0.1 * RNG.normal(size=(rows, 64))) * size).astype(np.float32)


def one_layer() -> Module:
    def layer(x: Any) -> Any:
        w = np.random.default_rng(2).normal(size=(48, 64)).astype(np.float32)
        return o.linear(x, x.builder.constant(w, "@w", True))
    return Module(trace(layer, [TensorType(dtypes.float32, (256, 64))], ["x"]), ("y",))


@pytest.mark.parametrize(("form", "better"), [
    ("int4", {"rounding": "gptq"}), ("int2", {"rounding": "gptq"}),
    ("int4", {"rounding": "awq"}), ("int2", {"rounding": "awq"}),
    ("int8", {"rounding": "gptq"})])
def test_refinements_lessen_the_error(form: str, better: dict[str, Any]) -> None:
    """On inputs that were not calibrated on."""
    model, seen, fresh = one_layer(), {"x": correlated(256)}, {"x": correlated(256)}
    plain = graphtool.quantise(model, Quantisation((form,), block=16), seen)
    refined = graphtool.quantise(model, Quantisation((form,), block=16, **better), seen)
    assert error(refined, model, fresh) < 0.9 * error(plain, model, fresh)


def test_smoothing_lessens_the_error_where_channels_differ() -> None:
    """Small channels matter as much as large ones here, but have few steps of the common grid."""
    size = np.where(np.arange(64) % 16 == 0, 40.0, 0.5).astype(np.float32)

    def layer(x: Any) -> Any:
        w = np.random.default_rng(2).normal(size=(48, 64)).astype(np.float32) / size
        return o.linear(x, x.builder.constant(w, "@w", True))
    model = Module(trace(layer, [TensorType(dtypes.float32, (256, 64))], ["x"]), ("y",))
    seen, fresh = ({"x": (RNG.normal(size=(256, 64)) * size).astype(np.float32)} for _ in "ab")
    plain, smooth = (error(graphtool.quantise(model, Quantisation(smooth=s), seen), model, fresh)
                     for s in (0.0, 0.5))
    assert smooth < 0.3 * plain


def test_a_corrected_bias_keeps_the_mean() -> None:
    model, seen = one_layer(), {"x": correlated(256) + np.float32(3)}
    (want,) = interp.run(model, seen).values()

    def drift(how: Quantisation) -> float:
        (y,) = interp.run(graphtool.quantise(model, how, seen), seen).values()
        return float(np.abs((y - want).mean(0)).mean())
    assert drift(Quantisation(("int4",), correct_bias=True)) < 0.05 * drift(
        Quantisation(("int4",), rounding="nearest"))


def test_smoothing_joins_the_norm_before() -> None:
    """Behind a norm the division costs nothing: no node is added."""
    def block(x: Any) -> Any:
        c = x.builder.constant
        w = np.random.default_rng(2).normal(size=(8, 64)).astype(np.float32)
        y = o.layer_norm(x, c(np.ones(64, np.float32), "@g", True),
                         c(np.zeros(64, np.float32), "@b", True), axes=(1,))
        return o.linear(y, c(w, "@w", True))
    kind = TensorType(dtypes.float32, (256, 64))
    model, seen = Module(trace(block, [kind], ["x"]), ("y",)), {"x": correlated(256)}
    plain = graphtool.quantise(model, Quantisation(), seen)
    smooth = graphtool.quantise(model, Quantisation(smooth=0.5), seen)
    assert [n.op for n in smooth.graph.nodes if n.inputs] == [
        n.op for n in plain.graph.nodes if n.inputs]
    assert error(smooth, model, seen) < 0.03


def test_examples_come_in_several_forms(tmp_path: Path) -> None:
    """One file, a directory of batches, one axis more: the same ranges."""
    model, seen = one_layer(), correlated(512)
    np.savez(tmp_path / "all.npz", x=seen)
    np.savez(tmp_path / "more.npz", x=seen.reshape(2, 256, 64))
    (tmp_path / "parts").mkdir()
    for i in range(2):
        np.savez(tmp_path / "parts" / f"{i}.npz", x=seen[256 * i:256 * (i + 1)])
    found = [graphtool.quantise(model, None, tmp_path / name, samples=512)
             for name in ("all.npz", "more.npz", "parts")]
    assert len({graphtool.show(m) for m in found}) == 1


def test_an_input_that_nothing_reads_becomes_bytes_too() -> None:
    row = TensorType(dtypes.float32, (4, 8))
    graph = trace(lambda x, unread: (o.linear(x, x.builder.constant(
        np.eye(8, dtype=np.float32), "@w", True)),), [row, row], ["x", "unread"])
    seen = RNG.normal(size=(16, 8)).astype(np.float32)
    module = graphtool.quantise(Module(graph, ("y",)), Quantisation(io="uint8"),
                                {"x": seen, "unread": 3 * seen})
    grids = module.meta["grids"]["inputs"]
    assert {v.hint: v.type.dtype for v in module.graph.inputs} == {
        "x": dtypes.uint8, "unread": dtypes.uint8}
    assert grids["unread"][0] > 2 * grids["x"][0]
