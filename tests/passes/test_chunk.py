"""chunk: the values stay whatever the size of an iteration, examples that meet end the loop, and
it is there where activations outgrow the caches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphtool
from graphtool import interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.dtypes import of_numpy
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder
from graphtool.passes.arguments import PassCall
from graphtool.passes.chunk import chunk
from graphtool.target import TABLE
from tests.cases import CASES, Case, arrays, each
from tests.passes.pass_samples import module

TARGET = TABLE["x86-64-v4"]


def by(m: Module, size: int) -> Module:
    return passes.run(m, [PassCall("chunk", {"size": size})])


def loops(graph: Graph) -> list[int]:
    return [n.attrs["length"] for n in graph.nodes if n.op.name == "scan"]


def weight(x: Any, *shape: int) -> Any:
    values = np.random.default_rng(len(x.builder.nodes)).standard_normal(shape)
    return x.builder.constant(values.astype(np.float32) / 8)


def convnet(x: Any) -> Any:
    y = o.relu(o.conv(x, weight(x, 16, 3, 3, 3), padding=((1, 1), (1, 1))))
    y = o.max_pool(y, window=(2, 2), strides=(2, 2))
    z = o.concat(y, o.conv(y, weight(x, 8, 16, 1, 1)), axis=1)
    n = z.shape[0]
    flat = o.reshape(o.reduce_mean(z, axes=(2, 3)), shape=(n, 24))
    return o.softmax(o.matmul(flat, weight(x, 24, 5)), axis=1)


def encoder(ids: Any) -> Any:
    y = o.embedding(weight(ids, 9, 16), ids)
    n = ids.shape[0]
    rows = o.matmul(o.reshape(y, shape=(n * 6, 16)), weight(ids, 16, 16))  # tokens of all in one
    heads = o.transpose(o.reshape(rows, shape=(n, 6, 2, 8)), perm=(0, 2, 1, 3))
    out = o.attention(heads, heads, heads, causal=True)
    return y + o.reshape(o.transpose(out, perm=(0, 2, 1, 3)), shape=(n, 6, 16))


MODELS = {"convnet": (convnet, "f32[8,3,10,10]"), "encoder": (encoder, "i64[8,6]")}


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_values_stay(name: str, size: int) -> None:
    make, type_ = MODELS[name]
    m = passes.run(module(make, type_), "decompose")
    after = by(m, size)
    assert loops(after.graph) == [8 // size]
    assert [v.type for v in after.graph.outputs] == [v.type for v in m.graph.outputs]
    feed = made_up.random_inputs(m, 1)
    for key, want in interp.run(m, feed).items():
        np.testing.assert_allclose(interp.run(after, feed)[key], want, rtol=1e-5, atol=1e-6)


def test_a_part_of_the_batch_in_c(tmp_path: Path) -> None:
    m = module(*MODELS["convnet"])
    feed = made_up.random_inputs(m, 1)
    names = [c if c.name != "chunk" else PassCall("chunk", {"size": 2}) for c in passes.calls()]
    chunked = passes.run(m, names)
    assert loops(chunked.graph) == [4]
    got = graphtool.load(graphtool.build(chunked, tmp_path / "b")).run(feed)
    for key, want in interp.run(m, feed).items():
        np.testing.assert_allclose(got[key], want, rtol=1e-4, atol=1e-5)


def _alone(case: Case) -> Module | None:
    """The op on its first operand, the others constants; None where axis 0 is no batch."""
    values = arrays(case)
    if not values or not isinstance(values[0], np.ndarray) or values[0].shape[:1] < (2,):
        return None
    b = Builder()
    x = b.input(TensorType(of_numpy(values[0].dtype), values[0].shape), "x")
    rest = [b.constant(v) if isinstance(v, np.ndarray) else v for v in values[1:]]
    y = case.op(x, *rest, **case.attrs)
    ys = y if isinstance(y, tuple) else (y,)
    return Module(Graph((x.value,), tuple(b.nodes), tuple(v.value for v in ys)),
                  tuple(f"y{i}" for i in range(len(ys))))


@each(CASES)
def test_every_op_by_single_examples(case: Case) -> None:
    """What the table takes to keep examples apart does."""
    m = _alone(case)
    if m is None:
        pytest.skip("no batch")
    after = by(passes.run(m, "decompose"), 1)
    feed = {"x": arrays(case)[0]}
    for key, want in interp.run(m, feed).items():
        most = np.abs(want[np.isfinite(want)], dtype=np.float64).max(initial=1.0)
        np.testing.assert_allclose(interp.run(after, feed)[key], want, rtol=1e-5, atol=1e-6 * most)


MEET = {
    "softmax over the batch": lambda x: o.softmax(x, axis=0),
    "mean over the batch": lambda x: x - o.reduce_mean(x, axes=(0,)),
    "a gradient by weights": lambda x: o.matmul(x, x, transpose_a=True),
    "the batch behind": lambda x: o.transpose(x, perm=(1, 0)),
    "neighbours in the batch": lambda x: o.concat(x, o.reverse(x, axes=(0,)), axis=1),
    "a part of the batch": lambda x: o.slice(x, start=(0, 0), limit=(2, 6), strides=(1, 1)),
    "a row for each": lambda x: x + weight(x, 4, 6),
}


@pytest.mark.parametrize("make", MEET.values(), ids=MEET)
def test_examples_that_meet_end_the_loop(make: Any) -> None:
    m = passes.run(module(lambda x: make(o.tanh(x)), "f32[4,6]"), "decompose")
    after = by(m, 1)
    assert any(n.op.name not in ("scan", "reshape", "constant") for n in after.graph.nodes)
    feed = made_up.random_inputs(m, 1)
    for key, want in interp.run(m, feed).items():
        np.testing.assert_allclose(interp.run(after, feed)[key], want, rtol=1e-6, atol=1e-6)


def deep(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = o.conv(y, weight(x, 32, y.shape[1], 3, 3), padding=((1, 1), (1, 1)))
    return y


@pytest.mark.parametrize(("type_", "worth"), [("f32[64,3,64,64]", True), ("f32[2,3,64,64]", False),
                                             ("f32[64,3,8,8]", False)])
def test_large_activations_alone_are_worth_it(type_: str, worth: bool) -> None:
    graph = chunk(module(deep, type_).graph, target=TARGET)
    assert bool(loops(graph)) == worth
