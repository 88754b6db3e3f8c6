"""Mixed precision: which op in which type, the loss scale, and training as torch.autocast does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

import graphtool
from graphtool import dtypes, interp, passes
from graphtool.compile.as_is import build
from graphtool.errors import GraphtoolError
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.lower import lower
from graphtool.passes.amp import amp
from graphtool.target import named
from graphtool.train.model import TrainModel
from graphtool.transforms.training import Recipe, programs, training
from tests.train.test_trainer_program import data, regression
from tests.transforms.training.test_compiled import CASES, batches

F32 = TensorType(dtypes.float32, (4, 4))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_of_a_model(dtype: str, tmp_path: Path) -> None:
    """Near the model in float32, the same compiled as evaluated; weights are cast once."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(),
                          nn.Linear(8 * 64, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 10))
    x = torch.randn(4, 3, 8, 8)
    module = passes.run(graphtool.import_model(model.eval(), (x,)), f"amp{{dtype={dtype}}}")
    name = module.graph.inputs[0].hint
    (want,) = interp.run(module, {name: x.numpy()}).values()
    with torch.autocast("cpu", getattr(torch, dtype)), torch.no_grad():
        oracle = model(x).float().numpy()
    np.testing.assert_allclose(want, oracle, atol=3e-2)
    ready = passes.run(module)
    held = [n.attrs["data"] for n in ready.graph.nodes if n.op.name == "constant"]
    assert not any(w.dtype is dtypes.float32 and w.nbytes > 8 * 64 * 32 * 4 + 4096 for w in held)
    built = graphtool.load(graphtool.build(module, tmp_path / "b"))
    (got,) = built(**{name: x.numpy()}).values()
    np.testing.assert_allclose(got, want, atol=2e-2)


@pytest.mark.part(5)
@pytest.mark.parametrize("case", CASES[:4], ids=lambda c: c[0].__name__)
def test_fifty_steps_as_autocast(case: Any, tmp_path: Path) -> None:
    make, shape, optimizer, oracle, lr = case
    torch.manual_seed(0)
    model, rows = make(), batches(shape, 50)
    module = graphtool.import_model(model.eval(), (rows[0][0],))
    joint = training(module, Recipe("cross_entropy" if shape else "cross_entropy{axis=-1}",
                                    optimizer=optimizer))
    build(passes.run(joint, "amp{dtype=bfloat16}"), tmp_path / "b")
    compiled = TrainModel(tmp_path / "b", 2)
    assert all(a.dtype == np.float32 for n, a in compiled.state.items()
               if n in compiled.row.model and not n.endswith("num_batches_tracked"))
    model.train()
    steps = oracle(model.parameters())
    found, want = [], []
    for x, y in rows:
        found.append(compiled.step({compiled.inputs[0]: x.numpy(), "y": y.numpy()}, lr))
        steps.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            result = nn.functional.cross_entropy(model(x).flatten(0, -2), y.flatten())
        result.backward()  # type: ignore[no-untyped-call]
        steps.step()
        want.append(result.item())
    np.testing.assert_allclose(found, want, rtol=4e-2, atol=4e-2)
    assert np.abs(np.subtract(found, want)).mean() < 0.01
    assert sum(found[-12:]) < sum(found[:12])


# ---- the loss scale ----------------------------------------------------------------------------

def state_after(module: Module, xs: list[Any], lr: float = 0.01) -> list[dict[str, Any]]:
    """The state after each step in the evaluator, the loss among it."""
    step = programs(module)["step"]
    state = interp.run(programs(module)["init"], {})
    out = []
    for x in xs:
        made = interp.run(step, {**state, "x": x, "y": data("mse", 8)["y"], "lr": np.float32(lr)})
        state = {n: made[n] for n in state}
        out.append({**state, "loss": made["loss"]})
    return out


def test_an_overflow_is_skipped_and_halves_the_scale() -> None:
    joint = training(regression(8), Recipe("mse", optimizer="adam"))
    module = passes.run(joint, "amp{dtype=float16,scale=1024,interval=2}")
    x = data("mse", 8)["x"]
    bad = x.copy()
    bad[0, 0] = np.inf
    first, skipped, second, third = state_after(module, [x, bad, x, x])
    assert [float(s["loss_scale"]) for s in (first, skipped, second, third)] == [
        1024, 512, 512, 1024]
    assert [int(s["step"]) for s in (first, skipped, second, third)] == [1, 1, 2, 3]
    model = [n for n in first if not n.startswith(("loss", "n.running", "step"))]
    for n in model:
        np.testing.assert_array_equal(first[n], skipped[n], err_msg=n)
        assert np.isfinite(third[n]).all()
    assert any((second[n] != first[n]).any() for n in model)


def test_a_large_scale_finds_its_level(tmp_path: Path) -> None:
    """From a scale that overflows at once, in compiled code; gradients as without one."""
    joint = training(regression(8), Recipe("mse", optimizer="sgd"))
    module = passes.run(joint, "amp{dtype=float16,scale=1e30}")
    build(module, tmp_path / "b")
    build(joint, tmp_path / "f")
    low, full = TrainModel(tmp_path / "b", 1), TrainModel(tmp_path / "f", 1)
    batch = data("mse", 8)
    while float(low.state["loss_scale"]) > 1e5:
        low.step(batch, 0.01)
    assert int(low.state["step"]) <= 1
    for _ in range(8):
        low.step(batch, 0.01)
    while int(full.state["step"]) < int(low.state["step"]):
        full.step(batch, 0.01)
    for n in ("a.weight", "c.weight", "a.bias"):
        np.testing.assert_allclose(low.state[n], full.state[n], atol=2e-3, err_msg=n)


@pytest.mark.parametrize(("run", "code"), [
    (lambda: passes.run(regression(8), "amp{dtype=float32}"), "GT0603"),
    (lambda: amp(regression(8), dtype=cast(Any, "float32")), "GT0629"),
    (lambda: passes.run(training(regression(8), Recipe("mse", optimizer="sgd")),
                        "simplify,freeze,dce,amp{dtype=float16}"), "GT0628"),
    (lambda: passes.run(training(regression(8), Recipe("mse", optimizer="sgd")),
                        "distribute,amp{dtype=float16}"), "GT0604")])
def test_what_is_refused(run: Any, code: str) -> None:
    with pytest.raises(GraphtoolError) as fault:
        run()
    assert fault.value.code == code


def test_gradients_are_found_whatever_their_names() -> None:
    joint = training(regression(8), Recipe("mse", optimizer="sgd"))
    renamed = serial.loads(serial.dumps(joint, embed=True).replace('"grad.', '"slope.'))
    x = data("mse", 8)["x"]
    first = state_after(passes.run(joint, "amp{dtype=float16},distribute"), [x, x])
    later = state_after(passes.run(
        renamed, "dce,simplify,cse,amp{dtype=float16},distribute"), [x, x])
    for n in first[1]:
        np.testing.assert_allclose(first[1][n], later[1][n], rtol=1e-5)


def test_amp_then_distribute() -> None:
    joint = training(regression(8), Recipe("mse", optimizer="sgd"))
    module = passes.run(joint, "amp{dtype=float16},distribute")
    x = data("mse", 8)["x"]
    one = state_after(passes.run(joint, "amp{dtype=float16}"), [x, x])
    two = state_after(module, [x, x])
    for n in one[1]:
        np.testing.assert_allclose(one[1][n], two[1][n], rtol=1e-6)
    twice = passes.run(module, "amp{dtype=float16}")
    assert twice.graph is module.graph


# ---- what is kept, and what is read ------------------------------------------------------------

class Images(nn.Module):
    """Norms, a shortcut, pooling: what convolutional networks keep for their gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.n, self.m, self.l = nn.BatchNorm2d(16), nn.BatchNorm2d(16), nn.Linear(16 * 64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.n(self.a(x)))
        x = torch.max_pool2d(torch.relu(x + self.m(self.b(x))), 2)
        out: torch.Tensor = self.l(x.flatten(1))
        return out


class Tokens(nn.Module):
    """A transformer's layer."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(50, 32)
        self.t = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, activation="gelu",
                                            batch_first=True, norm_first=True)
        self.l = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.l(self.t(self.e(x)).mean(1))
        return out


def joint_of(name: str) -> Module:
    torch.manual_seed(0)
    model, x = {"images": (Images(), torch.randn(8, 3, 16, 16)),
                "tokens": (Tokens(), torch.randint(0, 50, (8, 24)))}[name]
    return training(graphtool.import_model(model.eval(), (x,)),
                    Recipe("cross_entropy", optimizer="adam"))


@pytest.mark.parametrize("name", ["images", "tokens"])
def test_the_arena_of_a_step(name: str) -> None:
    """Little but the loss and statistics is kept in 32 bits; old state is written over."""
    joint, sizes = joint_of(name), {}
    for dtype in ("float32", "bfloat16", "float16"):
        low = joint if dtype == "float32" else passes.run(joint, f"amp{{dtype={dtype}}}")
        ready = passes.run(programs(low)["step"], supply={"target": named("native")})
        sizes[dtype] = lower(ready, named("native"), name="m").arena
    assert max(sizes["bfloat16"], sizes["float16"]) < 0.8 * sizes["float32"], sizes


@pytest.mark.part(5)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["images", "tokens"])
def test_compiled_steps_as_float32(name: str, dtype: str, tmp_path: Path) -> None:
    joint = joint_of(name)
    rng = np.random.default_rng(0)
    x = joint.graph.inputs[0]
    batch = {x.hint: rng.standard_normal(x.type.shape).astype(np.float32) if name == "images"
             else rng.integers(0, 50, x.type.shape), "y": rng.integers(0, 10, 8)}
    losses = []
    for low in (joint, passes.run(joint, f"amp{{dtype={dtype},scale=256}}")):
        folder = tmp_path / str(len(losses))
        build(low, folder)
        model = TrainModel(folder, 2)
        losses.append([model.step(batch, 1e-3) for _ in range(12)])
    np.testing.assert_allclose(losses[1], losses[0], atol=0.03)
    assert losses[1][-1] < losses[1][0] - 0.2
