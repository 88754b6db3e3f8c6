"""Training with sizes that the run computes: compiled steps equal the evaluator's."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from graphtool import interp, passes, transforms
from graphtool.cli.faults import run as cli
from graphtool.compile import as_is
from graphtool.errors import InputError, UsageError
from graphtool.importers.onnx import import_model
from graphtool.ir.graph import Module
from graphtool.ir.verify import verify_module
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, training
from tests.closeness import assert_close
from tests.importers.onnx.build import model, node

X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)[[3, 0, 7, 5, 1, 4, 2, 6]]
W = {"w": np.linspace(-0.5, 0.7, 12, dtype=np.float32).reshape(4, 3)}
LOSS = ["y = MatMul(s, w)", "q = Mul(y, y)", node("loss = ReduceSum(q)", keepdims=0)]


def i64(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def rows(*nodes: Any, feeds: list[dict[str, Any]], inputs: tuple[str, ...] = (),
         **weights: Any) -> tuple[Any, list[dict[str, Any]]]:
    """A model whose rows `s` are computed by `nodes`, then projected and squared."""
    proto = model([*nodes, *LOSS], ["x f32 8 4", *inputs], ["loss f32", "y f32 ? 3"],
                  {**W, **weights})
    return proto, [{"x": X, **f} for f in feeds]


def body(nodes: list[Any], inputs: list[str], outputs: list[str],
         weights: dict[str, Any] | None = None) -> Any:
    return model(nodes, inputs, outputs, weights).graph


MASK = np.array([1, 0, 1, 1, 0, 0, 1, 0], bool)
CASES: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "slice": rows("s = Slice(x, zero, n, zero)", inputs=("n i64 1",), zero=i64(0),
                  feeds=[{"n": i64(n)} for n in (3, 8, 0, 5)]),
    "nonzero": rows("z = NonZero(m)", "t = Transpose(z)", "s = GatherND(x, t)",
                    inputs=("m bool 8",), feeds=[{"m": m} for m in (MASK, ~MASK, MASK & False)]),
    "mask": rows(node("s = Compress(x, m)", axis=0), inputs=("m bool 8",),
                 feeds=[{"m": m} for m in (MASK, MASK | True)]),
    "unique": rows("u = Unique(k)", node("s = Gather(x, u)", axis=0), inputs=("k i64 5",),
                   feeds=[{"k": i64(*k)} for k in ((1, 1, 2, 7, 2), (0, 1, 2, 3, 4))]),
    "top k": rows(node("s, i = TopK(x, k)", axis=0), inputs=("k i64 1",),
                  feeds=[{"k": i64(k)} for k in (2, 8, 1)]),
    "reshape": rows("r = Reshape(x, n)", "t = ReduceSum(r, one)", "v = Reshape(t, four)",
                    "s = Slice(v, zero, n, zero)", inputs=("n i64 3",), one=i64(0),
                    four=i64(-1, 4), zero=i64(0),
                    feeds=[{"n": i64(*n)} for n in ((2, 4, 4), (4, 2, 4))]),
    "expand": rows("a = ReduceMean(x, zero)", "s = Expand(a, n)", inputs=("n i64 2",),
                   zero=i64(0), feeds=[{"n": i64(n, 1)} for n in (3, 1)]),
    "range": rows("r = Range(a, n, b)", node("s = Gather(x, r)", axis=0), inputs=("n i64",),
                  a=np.array(0), b=np.array(2), feeds=[{"n": np.array(n)} for n in (7, 0, 2)]),
    "trip count": rows(node("s = Loop(n, yes, x)", body=body(
        ["z = Mul(s0, rate)", "keep = Identity(c)"], ["i i64", "c bool", "s0 f32 8 4"],
        ["keep bool", "z f32 8 4"], {"rate": np.float32(0.7)})), inputs=("n i64",),
        yes=np.array(True), feeds=[{"n": np.array(n)} for n in (3, 0, 5)]),
    "in a loop": rows(node("s = Loop(n, yes, x)", body=body(
        [node("b = Compress(s0, m)", axis=0), "t = ReduceSum(b, first)", "v = Mul(t, rate)",
         "z = Add(s0, v)", "keep = Identity(c)"], ["i i64", "c bool", "s0 f32 8 4"],
        ["keep bool", "z f32 8 4"], {"rate": np.float32(0.1), "first": i64(0)})),
        inputs=("n i64", "m bool 8"), yes=np.array(True),
        feeds=[{"n": np.array(n), "m": m} for n, m in ((3, MASK), (2, ~MASK))]),
    "in a branch": rows(node("s = If(p)", then_branch=body(
        [node("b = Compress(x, m)", axis=0), "t = ReduceSum(b, first)", "z = Mul(x, t)"], [],
        ["z f32 8 4"], {"first": i64(0)}), else_branch=body(["z = Neg(x)"], [], ["z f32 8 4"])),
        inputs=("p bool", "m bool 8"),
        feeds=[{"p": np.array(p), "m": MASK} for p in (True, False)]),
}


def step(joint: Module, feed: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """One step by the evaluator; `state` gets its new values."""
    out = interp.run(joint, {**feed, **state, "lr": np.float32(0.01)})
    state.update({joint.output_names[o]: out[joint.output_names[o]] for o, _ in joint.donations})
    return out


def imported(proto: onnx.ModelProto) -> Module:
    """The model, with bounds for those of two computed sizes that it has."""
    bounds = {}
    for name in ("s_size", "r_size"):
        with suppress(UsageError):
            import_model(proto, dynamic={name: (0, 8)})
            bounds[name] = (0, 8)
    return import_model(proto, dynamic=bounds)


@pytest.mark.part(4)
@pytest.mark.parametrize("name", CASES)
def test_compiled_steps_equal_the_evaluator(name: str, tmp_path: Path) -> None:
    proto, feeds = CASES[name]
    joint = training(imported(proto), Recipe("loss", optimizer="adam", bound=8))
    verify_module(joint)
    compiled = TrainModel(as_is.build(joint, tmp_path / "b"), 1)
    state = {n: a.copy() for n, a in compiled.state.items()}
    for feed in feeds:
        mine = {n: feed[n] for n in compiled.data}
        predicted, loss = compiled.predict(mine), compiled.loss(mine)
        out = step(joint, feed, state)
        assert_close(loss, out["loss"])
        assert_close(predicted[1], out["predict.y"])
        assert_close(compiled.step(mine, 0.01), out["loss"])
        for n, a in state.items():
            assert_close(compiled.state[n], a)


def filtered() -> Module:
    """A batch whose masked rows are left out of a loss of its own; dropout before that."""
    proto = model([node("d = Dropout(x, half, on)"), node("s = Compress(d, m)", axis=0), *LOSS],
                  ["x f32 N 4", "m bool N"], ["loss f32", "y f32 ? 3"],
                  {**W, "half": np.float32(0.5), "on": np.array(True)})
    return import_model(proto, dynamic={"N": (0, 16)})


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    joint = training(filtered(), Recipe("loss", optimizer="adamw"))
    verify_module(joint)  # dropout gives inference a copy of the model, with sizes of its own
    return as_is.build(joint, tmp_path_factory.mktemp("t") / "b", exe=True)


def test_training_by_the_command_and_by_the_program(build: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data = tmp_path / "data.npz"
    np.savez(data, x=rng.standard_normal((24, 4)).astype("f"), m=rng.random(24) < 0.6)
    options = ["--data", str(data), "--epochs", "2", "--batch", "6", "--threads", "1"]
    assert cli(["train", str(build), *options, "--checkpoint", str(tmp_path / "py")]) == 0
    subprocess.run([str(build / "model"), *options, "--checkpoint", str(tmp_path / "c")],
                   check=True)
    files = [tmp_path / run / "model.safetensors" for run in ("py", "c")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_target_of_a_computed_size_is_refused() -> None:
    with pytest.raises(InputError, match="GT0625"):
        training(import_model(model([node("s = Compress(x, m)", axis=0), "y = Mul(s, w)"], [
            "x f32 8 2", "m bool 8"], ["y f32 ? 2"], {"w": np.array([2, 3], np.float32)})),
            Recipe("mse", optimizer="sgd"))


@pytest.mark.parametrize("name", ["slice", "in a branch", "in a loop"])
def test_passes_and_forward_mode_keep_the_sizes(name: str) -> None:
    proto, feeds = CASES[name]
    module = imported(proto)
    joint = training(module, Recipe("loss", optimizer="sgd", bound=8))
    state = {joint.graph.inputs[i].hint: w.source for i, w in joint.initial.items()}
    state |= {"step": np.array(0), "lr": np.float32(0.01)}
    for call in ("remat{budget=0.0}", "amp{dtype=bfloat16}", "cse"):
        changed = passes.run(joint, call)
        verify_module(changed)
        got, want = (interp.run(m, {**feeds[0], **state})["loss"] for m in (changed, joint))
        assert_close(got, want, tolerance=2e-2 if call.startswith("amp") else 0.0)
    graph = transforms.bounded(transforms.lifted(module.graph), 8)
    verify_module(replace(module, graph=transforms.jvp(graph, [graph.inputs[0]]),
                          output_names=(*module.output_names, "dloss", "dy")))
