"""Small modules that every pass is tried on, and the questions asked of a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import interp
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.dtypes import dtype
from graphtool.ir import serial
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.symbolic import Symbol, symbol

B = symbol("B", 1, 8)


def tensor(text: str) -> TensorType:
    """`f32[B,4]` as a type, B being a symbol from 1 to 8."""
    name, _, rest = text.partition("[")
    dims = [d for d in rest.rstrip("]").split(",") if d]
    return TensorType(dtype(name), tuple(B if d == "B" else int(d) for d in dims))


def module(fn: Callable[..., Any], *types: str, names: list[str] | None = None) -> Module:
    graph = trace(fn, [tensor(t) for t in types], names)
    symbols = {"B": Symbol("B", 1, 8)} if any("B" in t for t in types) else {}
    return Module(graph, tuple(f"y{i}" for i in range(len(graph.outputs))), symbols)


def values(x: Any, *shape: int, name: str = "", param: bool = False, seed: int = 0) -> Any:
    """A constant of normal numbers."""
    rng = np.random.default_rng([seed, *shape])
    return x.builder.constant(rng.standard_normal(shape).astype(np.float32), name, param)


def positive(x: Any, *shape: int, name: str = "", param: bool = False) -> Any:
    rng = np.random.default_rng(shape)
    return x.builder.constant((rng.random(shape) + 0.5).astype(np.float32), name, param)


def convnet(x: Any) -> Any:
    y = o.conv(o.pad(x, lo=(0, 0, 1, 1), hi=(0, 0, 1, 1)), values(x, 5, 4, 3, 3, name="w",
                                                                 param=True))
    y = o.batch_norm(y + values(x, 5, 1, 1, name="b", param=True), positive(x, 5), values(x, 5),
                     values(x, 5, seed=1), positive(x, 5))
    y = o.max_pool(o.relu(y + 0.0), window=(2, 2), strides=(2, 2), padding=((0, 0), (0, 0)))
    y = o.transpose(o.transpose(y, perm=(0, 2, 3, 1)), perm=(0, 3, 1, 2))
    y = o.reshape(o.reduce_mean(y, axes=(2, 3)), shape=(B, 5))
    return o.softmax(o.linear(y, values(x, 3, 5), values(x, 3)) * 2.0, axis=1)


def block(ids: Any) -> Any:
    x = o.embedding(values(ids, 11, 8, name="table", param=True), ids)
    y = o.layer_norm(x, positive(ids, 8), values(ids, 8), axes=(2,))
    heads = [o.transpose(o.reshape(o.matmul(y, values(ids, 8, 8, seed=i)), shape=(B, 6, 2, 4)),
                         perm=(0, 2, 1, 3)) for i in range(3)]
    y = o.transpose(o.attention(*heads, causal=True), perm=(0, 2, 1, 3))
    x = x + o.linear(o.reshape(y, shape=(B, 6, 8)), values(ids, 8, 8, seed=4))
    return x + o.gelu(o.linear(x, values(ids, 8, 8, seed=5), values(ids, 8)), approximate="tanh")


def siblings(x: Any, n: Any) -> Any:
    """Repeated work, dead work, constants, and integers."""
    mask = o.le(_iota(x, 1), _iota(x, 0))
    dead = o.exp(x) * 3.0
    del dead
    a, b = o.exp(x + n_to_float(n)), o.exp(n_to_float(n) + x)
    return o.select(mask, a * b, 0.0), o.concat(n + 1 + 2, n * 1, axis=0), o.slice(
        a, start=(0, 0), limit=(4, 4), strides=(1, 1))


def n_to_float(n: Any) -> Any:
    return o.cast(n, dtype=dtype("f32"))


def _iota(x: Any, axis: int) -> Any:
    from graphtool.ir.trace import like
    return like(x, o.iota, shape=(4, 4), axis=axis, dtype=dtype("i64"))


def recurrent(x: Any) -> Any:
    y, h, _ = o.lstm(x, values(x, 1, 12, 4), values(x, 1, 12, 3), values(x, 1, 24))
    return y, h


SAMPLES: dict[str, Module] = {
    "convnet": module(convnet, "f32[B,4,6,6]"),
    "block": module(block, "i64[B,6]", names=["ids"]),
    "siblings": module(siblings, "f32[4,4]", "i32[4]"),
    "recurrent": module(recurrent, "f32[3,2,4]"),
}


def outputs(m: Module, seed: int = 0) -> list[Any]:
    return list(interp.run(m, made_up.random_inputs(m, seed)).values())


def assert_same(a: Module, b: Module, rtol: float = 2e-5) -> None:
    for seed in (0, 1):
        x = made_up.random_inputs(a, seed)
        for u, v in zip(interp.run(a, x).values(), interp.run(b, x).values(), strict=True):
            np.testing.assert_allclose(v, u, rtol=rtol, atol=rtol)


def text(m: Module) -> str:
    return serial.dumps(m, embed=True)
