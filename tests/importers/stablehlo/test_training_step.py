"""A training step of JAX as a program that trains: its donated inputs go from step to step."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool.compile.as_is import build
from graphtool.importers.stablehlo import import_text
from graphtool.passes import run

# w − 0.1·∇|x·w − y|²/8, and the loss, as JAX writes it
STEP = """
module @step {
  func.func public @main(%w: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %x: tensor<8x4xf32>,
      %y: tensor<8xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %rate = stablehlo.constant dense<0.025> : tensor<4xf32>
    %eighth = stablehlo.constant dense<0.125> : tensor<f32>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %1 = stablehlo.subtract %0, %y : tensor<8xf32>
    %2 = stablehlo.dot_general %1, %x, contracting_dims = [0] x [0]
        : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
    %3 = stablehlo.multiply %2, %rate : tensor<4xf32>
    %4 = stablehlo.subtract %w, %3 : tensor<4xf32>
    %5 = stablehlo.multiply %1, %1 : tensor<8xf32>
    %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %7 = stablehlo.multiply %6, %eighth : tensor<f32>
    return %4, %7 : tensor<4xf32>, tensor<f32>
  }
}
"""


def ran(program: Path, *words: str, ok: bool = True) -> str:
    out = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    assert (out.returncode == 0) is ok, out.stderr
    return out.stdout if ok else out.stderr


def losses(text: str) -> list[float]:
    return [float(x) for x in re.findall(r"^step \d+  \S+ (\S+)$", text, re.M)]


def test_steps_feed_each_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(24, 4)).astype(np.float32), np.arange(4, dtype=np.float32)
    w, y = np.zeros(4, np.float32), x @ truth
    module = import_text(STEP)
    names = [v.hint for v in module.graph.inputs]
    np.savez(tmp_path / "in.npz", **dict(zip(names, (w, x, y), strict=True)))
    folder = build(run(module), tmp_path / "b", name="step", exe=True)
    out, given = tmp_path / "out.npz", str(tmp_path / "in.npz")
    told = ran(folder / "step", given, "--steps", "30", "-o", str(out))
    want = []
    for i in range(30):
        part = slice(i % 3 * 8, i % 3 * 8 + 8)
        gap = x[part] @ w - y[part]
        want.append(float((gap * gap).mean()))
        w = w - 0.025 * gap @ x[part]
    shown = losses(told)
    assert 3 < len(shown) < 12 and told.splitlines()[-1].startswith("step 30 ")
    np.testing.assert_allclose([shown[0], shown[-1]], [want[0], want[-1]], rtol=1e-4)
    with np.load(out) as made:
        np.testing.assert_allclose(made[made.files[0]], w, rtol=1e-4)
    assert "shape [24,4], [8,4] expected" in ran(folder / "step", given, ok=False)
    assert "together" in ran(folder / "step", given, "--steps", "3", "--repeat", "2", ok=False)
    assert "wants a number" in ran(folder / "step", given, "--steps", "0", ok=False)


def test_a_model_without_donated_inputs_has_no_steps(tmp_path: Path) -> None:
    module = import_text(STEP.replace("{tf.aliasing_output = 0 : i32}", ""))
    folder = build(run(module), tmp_path / "b", name="step", exe=True)
    assert "--steps" not in ran(folder / "step", "--help")
    assert "unknown option --steps" in ran(folder / "step", "--steps", "2", ok=False)


def test_adam_of_optax(tmp_path: Path) -> None:
    jax, optax = pytest.importorskip("jax"), pytest.importorskip("optax")
    jnp, rng = jax.numpy, np.random.default_rng(1)
    adam = optax.adam(1e-2)

    def loss(p: Any, x: Any, y: Any) -> Any:
        return ((jnp.tanh(x @ p["a"]) @ p["b"] - y) ** 2).mean()

    def step(p: Any, state: Any, x: Any, y: Any) -> Any:
        value, slope = jax.value_and_grad(loss)(p, x, y)
        updates, state = adam.update(slope, state)
        return optax.apply_updates(p, updates), state, value
    p = {"a": rng.normal(size=(4, 16)).astype(np.float32),
         "b": rng.normal(size=(16, 1)).astype(np.float32)}
    x = rng.normal(size=(64, 4)).astype(np.float32)
    y = np.sin(x.sum(1, keepdims=True))
    state = adam.init(p)
    types = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), (p, state, x, y))
    text = jax.export.export(jax.jit(step, donate_argnums=(0, 1)))(*types).mlir_module()
    module = import_text(text)
    names = [v.hint for v in module.graph.inputs]
    leaves = [np.asarray(v) for v in jax.tree.leaves((p, state, x, y))]
    np.savez(tmp_path / "in.npz", **dict(zip(names, leaves, strict=True)))
    folder = build(run(module), tmp_path / "b", name="step", exe=True)
    shown = losses(ran(folder / "step", str(tmp_path / "in.npz"), "--steps", "100"))
    want = []
    jitted = jax.jit(step)
    for _ in range(100):
        p, state, value = jitted(p, state, x, y)
        want.append(float(value))
    np.testing.assert_allclose([shown[0], shown[-1]], [want[0], want[-1]], rtol=1e-3)
    assert shown[-1] < shown[0] / 5
