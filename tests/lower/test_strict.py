"""`--precision strict`: the same bits for any number of threads, of a model and of its training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import ops as o
from graphtool import passes
from graphtool.ir.graph import Module
from graphtool.kernels.choice.rules import rules_of
from graphtool.symbolic import substitute
from graphtool.target import named
from graphtool.transforms.training import Recipe, training
from tests.lower.compiling import compiled
from tests.passes.pass_samples import SAMPLES, module, values

THREADS = (1, 2, 3, 4)


def mixed(x: Any) -> Any:
    """Convolution, attention, a product and softmax over parameters, and means over the image."""
    def weight(name: str, *shape: int) -> Any:
        return values(x, *shape, name=name, param=True) * 0.1
    padded = o.pad(x, lo=(0, 0, 1, 1), hi=(0, 0, 1, 1))
    y = o.relu(o.conv(padded, weight("w", 24, 8, 3, 3)))
    rows = o.transpose(o.reshape(y, shape=(3, 24, 324)), perm=(0, 2, 1))
    heads = [o.transpose(o.reshape(o.linear(rows, weight(n, 24, 24)), shape=(3, 324, 2, 12)),
                         perm=(0, 2, 1, 3)) for n in "qkv"]
    z = o.reshape(o.transpose(o.attention(*heads), perm=(0, 2, 1, 3)), shape=(3, 324, 24))
    z = o.layer_norm(z + rows, axes=(2,))
    pooled = o.reshape(o.reduce_mean(z, axes=(1,)), shape=(3, 24))
    return o.linear(pooled, weight("head", 5, 24))


def sums(x: Any) -> Any:
    """Long reductions, of all and along each axis, which several threads may share."""
    return (o.reduce_sum(x, axes=(0, 1)), o.reduce_sum(x, axes=(0,)), o.reduce_mean(x, axes=(1,)),
            o.softmax(x, axis=0), o.reduce_var(x, axes=(0, 1)), o.reduce_prod(x, axes=(1,)),
            o.cumulative(x, kind="sum", axis=0))


CASES: dict[str, Module] = {
    "mixed": module(mixed, "f32[3,8,18,18]", names=["x"]),
    "sums": module(sums, "f32[700,1301]", names=["x"]),
    "convnet": SAMPLES["convnet"], "block": SAMPLES["block"],
    "step": training(module(mixed, "f32[3,8,18,18]", names=["x"]),
                     Recipe("cross_entropy", optimizer="adamw"))}


def inputs(m: Module) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    out = {}
    for v in m.graph.inputs:
        shape = [int(str(substitute(d, {"B": 7}))) for d in v.type.shape]
        kind = v.type.dtype.numpy
        out[v.hint] = rng.integers(0, 5, shape).astype(kind) if np.issubdtype(
            kind, np.integer) else np.abs(rng.standard_normal(shape)).astype(kind)
    return out


@pytest.mark.part(5)
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    target = named("native", threads=max(THREADS))
    ready = passes.run(CASES[name], supply={"target": target, "rules": rules_of("strict")})
    assert ready.meta["precision"] == "strict"
    model = compiled(ready, tmp_path / "b", eager=True, target=target)
    given = dict(zip((s.name for s in model.inputs), inputs(CASES[name]).values(), strict=True))
    want: dict[str, bytes] = {}
    for model.threads in THREADS:
        found = {k: v.tobytes() for k, v in model.run(given).items()}
        want = want or found
        assert [k for k in found if found[k] != want[k]] == []
    assert all(np.isfinite(v).all() for v in model.run(given).values())
