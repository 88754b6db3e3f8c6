"""fft.h against numpy's transforms in float64, and the gradient of a transform."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.native import runtime
from graphtool.passes.decompose import decompose
from graphtool.target import named
from graphtool.transforms.reverse import grad

TARGET = named("native", 2)
ERROR = {dtypes.float32: 4e-7, dtypes.float64: 1e-15}  # of the greatest number


def ran(fn: Any, xs: list[Any], folder: Path, dtype: DType) -> list[Any]:
    names = [f"x{i}" for i in range(len(xs))]
    graph = trace(fn, [TensorType(dtype, x.shape) for x in xs], names)
    assert any(n.op is o.fft for n in decompose(graph).nodes)
    module = passes.run(Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs)))),
                        supply={"target": TARGET})
    model = runtime.load(build(module, folder, target=TARGET), 2)
    return list(model.run(dict(zip(names, xs, strict=True))).values())


@pytest.mark.part(3)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("shape", [(21, 20), (24,), (1, 135), (2, 3, 128), (16, 1250), (33, 64)],
                         ids=str)
def test_it_is_numpys(shape: tuple[int, ...], dtype: DType, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(dtype.numpy) for _ in range(2))
    n = shape[-1]
    wide = x.astype(np.complex128)

    def both(a: Any, b: Any) -> Any:
        return (*o.fourier(a, b), *o.fourier(a, half=True), *o.fourier(a, b, inverse=True))
    made = ran(both, [x, y], tmp_path / "b", dtype)
    wants = [np.fft.fft(wide + 1j * y), np.fft.rfft(wide.real), np.fft.ifft(wide + 1j * y) * n]
    for i, want in enumerate(wants):
        got = made[2 * i] + 1j * made[2 * i + 1]
        assert np.abs(got - want).max() <= ERROR[dtype] * np.abs(want).max()


def test_along_another_axis_and_back(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(40, 48)).astype(np.float32)

    def fn(a: Any) -> Any:
        across = o.transpose(a, perm=(1, 0))
        re, im = o.fourier(across)
        again = o.fourier(o.transpose(re, perm=(1, 0)), o.transpose(im, perm=(1, 0)))
        return (*again, o.fourier_real(*o.fourier(a, half=True), size=48))
    re, im, back = ran(fn, [x], tmp_path / "b", dtypes.float32)
    want = np.fft.fft2(x)
    assert np.abs(re + 1j * im - want).max() <= 1e-6 * np.abs(want).max()
    np.testing.assert_allclose(back / 48, x, atol=1e-6)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("used", [(0,), (1,), (0, 1)])
def test_its_gradient(half: bool, used: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    xs = {name: rng.normal(size=(2, 30)) for name in ("x0", "x1")}
    weight = rng.normal(size=(2, 2, 16 if half else 30))

    def loss(a: Any, b: Any) -> Any:
        parts = o.fourier(a, b, half=half)
        total = sum(o.reduce_sum(parts[i] * a.builder.constant(weight[i]), axes=(0, 1))
                    for i in used)
        return o.reshape(total, shape=())
    graph = trace(loss, [TensorType(dtypes.float64, (2, 30))] * 2, ["x0", "x1"])
    made = grad(graph, 0, list(graph.inputs))
    names = tuple(f"o{i}" for i in range(len(made.outputs)))
    *_, gx, gy = interp.run(Module(made, names), xs).values()
    turn = sum(np.where(np.arange(2)[:, None, None] == i, weight, 0.0) for i in used)
    g = np.zeros((2, 30), complex)
    g[:, :weight.shape[-1]] = turn[0] + 1j * turn[1]
    want = np.fft.ifft(g) * 30
    np.testing.assert_allclose(gx, want.real, atol=1e-12)
    np.testing.assert_allclose(gy, want.imag, atol=1e-12)
