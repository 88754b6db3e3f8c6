"""Steps over the frames of a window: the numbers of the whole window at each of its positions, in
the evaluator and in C; and the state, which has few rows, of bytes, and is updated in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp, passes
from graphtool import ops as o
from graphtool.dtypes import float32, int8, uint8
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from tests.passes.pass_samples import values

POSITIONS = 9


def window(fn: Callable[..., Any], *shape: int, dtype: Any = float32) -> Module:
    graph = trace(fn, [TensorType(dtype, shape)], ["x"])
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))))


def conv(x: Any, outs: int, *size: int, seed: int = 0, groups: int = 1, **attrs: Any) -> Any:
    return o.conv(x, values(x, outs, x.shape[1] // groups, *size, seed=seed), groups=groups,
                  **attrs)


def dense_head(x: Any) -> Any:
    """A head over all rows of a window."""
    flat = o.reshape(x, shape=(1, x.shape[1] * x.shape[2]))
    return o.linear(flat, values(x, 3, flat.shape[1], seed=7))


def keywords(x: Any) -> Any:
    """Depthwise separable convolutions in two dimensions, a mean over time and frequency."""
    y = o.relu(conv(x, 6, 4, 3, strides=(2, 2)))
    for seed in (1, 2):
        y = o.relu(conv(y, 6, 3, 3, seed=seed, groups=6, padding=((0, 0), (1, 1))))
        y = o.relu(conv(y, 6, 1, 1, seed=seed + 5))
    mean = o.reshape(o.reduce_mean(y, axes=(2, 3)), shape=(1, 6))
    return o.softmax(o.linear(mean, values(x, 3, 6)), axis=1)


def strided(x: Any) -> Any:
    """Strides of 2 and 3, so that a step has 6 frames, a dilation, and a dense head."""
    y = o.relu(conv(x, 5, 3, strides=(2,)))
    y = o.relu(conv(y, 5, 4, strides=(3,), seed=1))
    return dense_head(conv(y, 4, 2, rhs_dilation=(2,), seed=2))


def residual(x: Any) -> Any:
    """Branches with different delays, which the author cut off."""
    y = conv(o.relu(conv(x, 5, 3)), 5, 3, rhs_dilation=(3,), seed=1)
    y = o.relu(x.slice((0, 0, 4), (1, 5, x.shape[2] - 4)) + y)
    z = o.concat(y.slice((0, 0, 0), (1, 5, y.shape[2] - 2)), conv(y, 2, 3, seed=2), axis=1)
    return dense_head(z), o.reduce_max(z, axes=(2,))


def pools(x: Any) -> Any:
    """Pools along time, norms over channels, frames as results."""
    y = o.max_pool(conv(x, 6, 3), window=(3,), strides=(2,), dilation=(2,))
    y = o.batch_norm(y, *(o.abs(values(x, 6, seed=s)) + 0.5 for s in range(4)))
    y = o.avg_pool(o.transpose(o.layer_norm(o.transpose(y, perm=(0, 2, 1)), values(x, 6), None,
                                            axes=(2,)), perm=(0, 2, 1)), window=(2,), strides=(1,))
    return o.sigmoid(o.linear(o.transpose(y, perm=(0, 2, 1)), values(x, 4, 6, seed=3)))


def attended(x: Any) -> Any:
    """Attention over the window, after layers by frames, and a weight for each frame."""
    y = o.matmul(o.reshape(x, shape=x.shape[1:]), values(x, 8, 8))
    q = o.reshape(o.gelu(y), shape=(1, 1, *y.shape))
    a = o.reshape(o.attention(q, q, q), shape=y.shape) * values(x, y.shape[0], 1)
    return o.reduce_mean(o.reverse(a, axes=(0,)), axes=(0,))


def in_bytes(x: Any) -> Any:
    """Bytes between float layers: the state has the bytes."""
    real = (o.cast(x, dtype=float32) - 3.0) * 0.05
    y = o.cast(o.clamp(o.round(conv(real, 6, 3, strides=(1,)) * 9.0), 0.0, 255.0), dtype=uint8)
    return dense_head(conv(o.cast(y, dtype=float32) / 9.0, 4, 3, seed=1))


MODELS: dict[str, tuple[Module, int]] = {
    "keywords": (window(keywords, 1, 1, 22, 8), 2), "strided": (window(strided, 1, 4, 37), 2),
    "residual": (window(residual, 1, 5, 15), 2), "pools": (window(pools, 1, 3, 20), -1),
    "attended": (window(attended, 1, 7, 8), 1), "bytes": (window(in_bytes, 1, 4, 9, dtype=int8), 2)}


def signal(module: Module, axis: int, frames: int) -> np.ndarray[Any, Any]:
    (t,) = module.inputs.values()
    shape = [d for d in t.shape if isinstance(d, int)]
    shape[axis] += POSITIONS * frames
    x = np.random.default_rng(1).standard_normal(shape) * 30
    return x.astype(t.dtype.numpy)


def differs(module: Module, axis: int, step: Module, run: Callable[..., Any],
            whole: Callable[..., Any], rtol: float = 0.0) -> list[str]:
    """The results of steps over a signal that differ from those of the window there."""
    (shape,), frames = (t.shape for t in module.inputs.values()), step.inputs["x"].shape[axis]
    x, size = signal(module, axis, frames), shape[axis]
    held = {n: np.zeros(t.shape, t.dtype.numpy) for n, t in step.inputs.items() if n != "x"}
    wrong = []
    for end in range(frames, x.shape[axis] + 1, frames):
        got = run({"x": np.ascontiguousarray(x.take(range(end - frames, end), axis)), **held})
        held = {n: got[n] for n in held}
        if end % frames == 0 and end >= size:
            want = whole({"x": np.ascontiguousarray(x.take(range(end - size, end), axis))})
            wrong += [f"{n} at {end}" for n, y in want.items() if not np.allclose(
                got[n], y[tuple(slice(-d, None) for d in got[n].shape)], rtol, rtol)]
    return wrong


@pytest.mark.parametrize(("name", "frames"), [
    ("keywords", 0), ("keywords", 4), ("strided", 0), ("strided", 12), ("residual", 2),
    ("pools", 0), ("pools", 4), ("attended", 3), ("bytes", 2)])
def test_each_position_of_the_window(name: str, frames: int) -> None:
    module, axis = MODELS[name]
    step = passes.run(module, f"step{{axis={axis},frames={frames}}}")
    assert differs(module, axis, step, lambda x: interp.run(step, x),
                   lambda x: interp.run(module, x), 1e-5) == []  # numpy sums in other orders


@pytest.mark.parametrize("name", [n if n in ("residual", "bytes") else pytest.param(
    n, marks=pytest.mark.slow) for n in MODELS])
def test_compiled(name: str, tmp_path: Path) -> None:
    module, axis = MODELS[name]
    step = passes.run(module, f"step{{axis={axis}}}")
    run, whole = (compiled(m, tmp_path / n) for m, n in ((step, "step"), (module, "window")))
    assert differs(module, axis, step, run, whole) == []


def compiled(module: Module, folder: Path) -> Callable[..., Any]:
    """The module as strict C; a state is updated in its own array."""
    graphtool.build(module, folder, precision="strict", target="x86-64-v3")
    model = runtime.load(folder, 2)
    return lambda x: model.run(x, out={n: x[n] for n in x if n != "x"})


def test_the_state_has_few_rows_of_bytes() -> None:
    """Two rows of an image of bytes, of 4 channels, then 2 of 6; the rest of a window of floats."""
    step = passes.run(MODELS["bytes"][0], "step{axis=2}")
    states = {n: t for n, t in step.inputs.items() if n != "x"}
    assert {n: str(t) for n, t in states.items()} == {
        "state_i8": "i8[8]", "state_u8": "u8[12]", "state_f32": "f32[16]"}


def test_what_another_input_decides_is_computed_again() -> None:
    def conditioned(x: Any, by: Any) -> Any:
        return o.reduce_mean(conv(x, 3, 3) * by, axes=(2,))
    graph = trace(conditioned, [TensorType(float32, (1, 2, 8)), TensorType(float32, (1, 3, 1))],
                  ["x", "by"])
    module = Module(graph, ("y",))
    step = passes.run(module, "step{axis=2,input=x}")
    x = np.random.default_rng(0).standard_normal((1, 2, 9)).astype(np.float32)
    held = {"state": np.zeros(step.inputs["state"].shape, np.float32)}
    for i in range(9):
        by = np.full((1, 3, 1), i + 1, np.float32)
        got = interp.run(step, {"x": x[:, :, i:i + 1], "by": by, **held})
        held = {"state": got["state"]}
    want = interp.run(module, {"x": x[:, :, 1:], "by": by})
    np.testing.assert_allclose(got["y"], want["y"], rtol=1e-5)
