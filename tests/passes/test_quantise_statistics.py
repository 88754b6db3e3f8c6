"""Batch norms of quantised models: each channel keeps the mean and the variance of the floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import Quantisation, dtypes, interp
from graphtool import ops as o
from graphtool.errors import UsageError
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace

KIND = TensorType(dtypes.float32, (8, 4, 9, 9))
NORMS = ("batch_norm", "batch_norm#2", "batch_norm#3")  # folded, on its own, folded


def param(x: Any, rng: np.random.Generator, low: float, high: float, *shape: int) -> Any:
    name = f"@p{len(x.builder.nodes)}"
    return x.builder.constant(rng.uniform(low, high, shape).astype(np.float32), name, True)


def norm(x: Any, rng: np.random.Generator) -> Any:
    c = x.shape[1]
    return o.batch_norm(x, param(x, rng, 0.5, 1.5, c), param(x, rng, -1, 1, c),
                        param(x, rng, -1, 1, c), param(x, rng, 0.5, 2, c))


def net(x: Any) -> Any:
    """The second norm reads two values that are joined, so no layer can hold it."""
    rng = np.random.default_rng(5)
    y = o.conv(x, param(x, rng, -0.3, 0.3, 8, 4, 3, 3), padding=((1, 1), (1, 1)))
    joined = o.concat(o.relu(norm(y, rng)), x, axis=1)
    z = o.conv(o.relu(norm(joined, rng)), param(x, rng, -0.4, 0.4, 6, 12, 1, 1))
    return norm(z, rng)


def module() -> Module:
    return Module(trace(net, [KIND], ["x"]), ("y",))


def drawn(seed: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(seed).normal(size=KIND.shape).astype(np.float32)}


def results(m: Module, xs: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def keep(name: str, value: Any) -> None:
        if name in NORMS:
            found[name] = value
    interp.run(m, xs, on_value=keep)
    assert set(found) == set(NORMS)
    return found


def moments(y: Any) -> Any:
    return np.stack([y.mean((0, 2, 3)), y.std((0, 2, 3))])


@pytest.mark.parametrize("form", ["int2", "int4", "static", "float16"])
def test_channels_have_their_moments_again(form: Any) -> None:
    """Within a hundredth of the channels' spread; the statistics are those of the examples."""
    xs = drawn(0)
    small = graphtool.quantise(module(), Quantisation((form,), correct_norms=True), xs)
    want, got = results(module(), xs), results(small, xs)
    for name in NORMS:
        off = np.abs(moments(got[name]) - moments(want[name]))
        assert off.max() < 0.01 * moments(want[name])[1].mean(), name


@pytest.mark.parametrize("form", ["int2", "int4"])
def test_the_error_lessens_on_other_inputs(form: Any) -> None:
    seen, fresh = drawn(0), drawn(1)
    (want,) = interp.run(module(), fresh).values()

    def error(**how: Any) -> float:
        small = graphtool.quantise(module(), Quantisation((form,), **how), seen)
        (y,) = interp.run(small, fresh).values()
        return float(np.sqrt(((y - want) ** 2).sum()))
    assert error(correct_norms=True) < 0.9 * error()


def test_integers_stay_integers() -> None:
    """Only scales, biases and the numbers of the lone norm change."""
    plain, mended = (graphtool.quantise(module(), Quantisation(correct_norms=c), drawn(0))
                     for c in (False, True))
    assert [n.op for n in plain.graph.nodes if n.inputs] == [
        n.op for n in mended.graph.nodes if n.inputs]
    weights = [[n.attrs["data"].digest for n in m.graph.nodes if n.op is o.constant
                and n.outputs[0].type.dtype is dtypes.int8] for m in (plain, mended)]
    assert sorted(weights[0]) == sorted(weights[1]) and len(weights[0]) == 2


def test_a_model_without_norms_stays_as_it_is() -> None:
    def plain(x: Any) -> Any:
        return o.conv(x, param(x, np.random.default_rng(0), -1, 1, 6, 4, 1, 1))
    made = Module(trace(plain, [KIND], ["x"]), ("y",))
    texts = {graphtool.show(graphtool.quantise(made, Quantisation(correct_norms=c), drawn(0)))
             for c in (False, True)}
    assert len(texts) == 1


def test_it_needs_examples() -> None:
    with pytest.raises(UsageError) as fault:
        graphtool.quantise(module(), Quantisation(("int4",), correct_norms=True))
    assert fault.value.code == "GT0644"
