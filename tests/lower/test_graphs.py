"""Graphs that are awkward to place: views of views, windows of windows, outputs that are inputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphtool import dtypes, interp, passes
from graphtool import ops as o
from graphtool.analysis import made_up
from graphtool.ir.graph import Graph, Module, TensorType
from graphtool.ir.trace import Builder, Tracer
from graphtool.passes.arguments import PassCall
from graphtool.symbolic import Symbol, symbol
from graphtool.target import named
from tests.lower.compiling import compiled, faults

B, T = symbol("B", 1, 50), symbol("T", 0)
SYMBOLS = {"B": Symbol("B", 1, 50), "T": Symbol("T", 0)}
THREADS = (1, 2, 3, 7)
Graphs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]
STATIC: Graphs = {}
SYMBOLIC: Graphs = {}


def graph(*shapes: Any, table: Graphs = STATIC) -> Callable[[Any], Any]:
    def keep(fn: Callable[..., Any]) -> Callable[..., Any]:
        table[fn.__name__] = (fn, shapes)
        return fn
    return keep


def symbolic(*shapes: Any) -> Callable[[Any], Any]:
    return graph(*shapes, table=SYMBOLIC)


def weights(x: Tracer, *shape: int) -> Tracer:
    return x.builder.constant(np.random.default_rng(shape).standard_normal(
        shape).astype(np.float32) * 0.3)


def ones(x: Any) -> tuple[int, ...]:
    return (1,) * x.ndim


# ---- outputs -----------------------------------------------------------------------------------

@graph((2, 3))
def inputs_are_outputs(x: Any) -> Any:
    return x, x, o.transpose(x, perm=(1, 0)), o.reshape(x, shape=(6,))


@graph((2, 3))
def constants_are_outputs(x: Any) -> Any:
    w = weights(x, 2, 3)
    return w, w, o.transpose(w, perm=(1, 0)), o.broadcast(w, shape=(2, 2, 3)), x + w


@graph((4, 6))
def one_value_is_several_outputs(x: Any) -> Any:
    y = o.exp(x)
    return y, y, o.reshape(y, shape=(24,)), o.transpose(y, perm=(1, 0)), y * 2.0


@graph((4, 6))
def an_output_is_a_window_of_an_output(x: Any) -> Any:
    y = o.tanh(x)
    both = o.concat(y, x, axis=0)
    return both, y, o.slice(both, start=(2, 1), limit=(6, 5), strides=(1, 2))


@graph((4, 6))
def an_output_is_part_of_two_outputs(x: Any) -> Any:
    y = o.tanh(x)
    return o.concat(y, x, axis=0), o.concat(x, y, axis=1), o.concat(y, y, axis=0), y


@graph(())
def scalars(x: Any) -> Any:
    y = o.exp(x)
    return y, o.reshape(y, shape=(1, 1)), y + y, o.broadcast(y, shape=(3,)), x


@graph((0, 3), (2, 0))
def nothing_at_all(x: Any, y: Any) -> Any:
    return (o.exp(x), o.reduce_sum(x, axes=(0,)), o.concat(x, x, axis=0), o.matmul(y, x),
            o.pad(x, lo=(1, 0), hi=(1, 0), value=3.0), o.softmax(x, axis=1),
            o.transpose(x, perm=(1, 0)), o.reshape(x, shape=(3, 0)))


# ---- windows -----------------------------------------------------------------------------------

@graph((2, 3), (2, 4))
def concat_of_concat(x: Any, y: Any) -> Any:
    inner = o.concat(o.tanh(x), y, axis=1)
    outer = o.concat(inner, o.exp(y), inner, axis=1)
    return outer, o.concat(o.transpose(outer, perm=(1, 0)), o.transpose(inner, perm=(1, 0)), axis=0)


@graph((2, 3))
def pad_of_concat_of_pad(x: Any) -> Any:
    a = o.pad(o.tanh(x), lo=(1, 0), hi=(0, 2), value=7.0)
    b = o.concat(a, a + 1.0, axis=0)
    return o.pad(b, lo=(0, 1), hi=(1, 1), value=-1.0), o.reduce_sum(b, axes=(1,))


@graph((2, 3, 4))
def a_window_is_read_through_a_reshape(x: Any) -> Any:
    y = o.tanh(x)
    padded = o.pad(y, lo=(0, 1, 1), hi=(0, 1, 1))
    return padded, o.reshape(y, shape=(6, 4)) * 2.0, o.reshape(padded, shape=(2, 30)) + 1.0


@graph((1, 6, 5, 4), (8, 4, 3, 3))
def a_halo_is_read_twice(x: Any, w: Any) -> Any:
    conv = {"padding": ((1, 1), (1, 1)), "channels_last": True}
    y = o.relu(o.conv(x, weights(w, 8, 4, 3, 3), **conv))
    z = o.conv(y, weights(w, 8, 8, 3, 3), **conv)
    return z + y, o.reshape(y, shape=(1, 30, 8)), o.max_pool(
        y, window=(3, 3), padding=((1, 1), (1, 1)), channels_last=True)


@graph((3, 5))
def pieces_put_together_again(x: Any) -> Any:
    y = x * 2.0
    left = o.slice(y, start=(0, 0), limit=(3, 2), strides=(1, 1))
    right = o.slice(y, start=(0, 2), limit=(3, 5), strides=(1, 1))
    return o.concat(right, left, axis=1), o.concat(o.exp(right), left, axis=1)


@graph((3, 4))
def values_on_both_sides(x: Any) -> Any:
    y = o.exp(x)
    s = o.reduce_sum(y, axes=(1,))
    n = y / s
    m = o.reduce_max(n, axes=(0,))
    return n, s, m - n, y


@graph((3, 4))
def several_shapes_from_one_group(x: Any) -> Any:
    y = o.tanh(x)
    return y, o.reduce_sum(y * y, axes=(0, 1)), o.reduce_max(y, axes=(1,)), o.top_k(
        y, k=2, axis=1)[0], *o.sort(y, axis=0)


# ---- templates ---------------------------------------------------------------------------------

@graph((5, 7), (33, 7))
def transposed_operands(x: Any, w: Any) -> Any:
    t = o.transpose(x, perm=(1, 0))
    return (o.matmul(t, weights(x, 5, 40)), o.matmul(x, w, transpose_b=True),
            o.transpose(o.matmul(x, weights(x, 7, 40)), perm=(1, 0)),
            o.matmul(w, t), o.matmul(x, t) * 2.0)


@graph((2, 6, 3, 8), (2, 6, 3, 8))
def heads(q: Any, k: Any) -> Any:
    a, b = (o.transpose(v, perm=(0, 2, 1, 3)) for v in (q, k))
    s = o.softmax(o.matmul(a, b, transpose_b=True) * 0.3, axis=-1)
    y = o.transpose(o.matmul(s, b), perm=(0, 2, 1, 3))
    return o.matmul(o.reshape(y, shape=(2, 6, 24)), weights(q, 24, 24)), y


@graph((5, 16))
def a_template_with_much_behind_it(x: Any) -> Any:
    y = o.matmul(x, weights(x, 16, 48)) + weights(x, 48)
    z = o.gelu(y)
    return z, o.gt(z, 0.1), y, o.concat(z, o.tanh(y), axis=1), o.cast(z, dtype=dtypes.float16)


@graph((1, 64), (1, 64))
def one_row(x: Any, y: Any) -> Any:
    h = o.matmul(x, weights(x, 64, 300))
    return o.concat(h, y, axis=1), o.matmul(o.relu(h), weights(x, 300, 10)) + 1.0


@graph((1, 3, 6, 6))
def an_image_gains_an_axis(x: Any) -> Any:
    y = o.relu(o.conv(x, weights(x, 4, 3, 3, 3)))
    return o.broadcast(y, shape=(2, 1, 4, 4, 4)), y, o.cumulative(y, kind="sum", axis=1)


# ---- symbolic ----------------------------------------------------------------------------------

@symbolic((B, 5), (B, 5))
def rows(x: Any, y: Any) -> Any:
    h = o.relu(o.matmul(x, weights(x, 5, 24)) + weights(x, 24))
    return o.softmax(o.matmul(h, weights(x, 24, 7)), axis=1), o.concat(x, y * 2.0, axis=0), h


@symbolic((B, 3, 8, 8))
def images(x: Any) -> Any:
    y = o.relu(o.conv(x, weights(x, 16, 3, 3, 3), padding=((1, 1), (1, 1)), strides=(2, 2)))
    y = o.conv(y, weights(x, 16, 16, 3, 3), padding=((1, 1), (1, 1)))
    y = o.reduce_mean(y, axes=(2, 3))
    return o.reshape(y, shape=(B, 16)), o.max_pool(x, window=(2, 2), strides=(2, 2))


@symbolic((B, T, 8))
def sequences(x: Any) -> Any:
    s = o.softmax(o.matmul(x, x, transpose_b=True), axis=-1)
    y = o.matmul(s, x)
    flat = o.reshape(y, shape=(B * T, 8))
    return y, o.matmul(flat, weights(x, 8, 20)), o.reduce_max(x, axes=(0,)), o.pad(
        x, lo=(0, 1, 0), hi=(0, 2, 0), value=1.0)


@symbolic((T,), (B, T))
def lengths(x: Any, y: Any) -> Any:
    return (o.concat(x, x, axis=0), o.cumulative(y, kind="sum", axis=1), x + y,
            o.reverse(y, axes=(1,)), o.reduce_sum(x, axes=(0,)), o.reduce_mean(y, axes=(0,)),
            o.sort(y, axis=1)[0], o.transpose(y, perm=(1, 0)))


@symbolic((T, B, 4), (1, B, 20))
def layers(x: Any, h: Any) -> Any:
    y, last = o.gru(x, weights(x, 1, 60, 4), weights(x, 1, 60, 20), weights(x, 1, 120), h,
                    linear_before_reset=True)
    flat = o.reshape(y, shape=(T, B, 20))
    z, _, cell = o.lstm(flat, weights(x, 2, 36, 20), weights(x, 2, 36, 9),
                        direction="bidirectional")
    return o.reduce_mean(z, axes=(1,)), o.transpose(z, perm=(2, 0, 1, 3)), last, cell


@symbolic((T, 4))
def sizes_with_bounds_of_their_own(x: Any) -> Any:
    y = o.sort(o.pad(x, lo=(-2, 0), hi=(0, 0)), axis=1)[0]
    z = o.slice(x, start=(0, 0), limit=(T, 4), strides=(3, 1))
    return o.cumulative(y, kind="sum", axis=1), o.sort(o.exp(z), axis=1)[0], o.concat(
        o.top_k(y, k=2, axis=1)[0], y, axis=1)


@pytest.mark.parametrize("batch", [1, 5])
def test_threads_share_the_steps_of_a_wide_layer(batch: int, tmp_path: Path) -> None:
    """All threads work on one sequence: their waiting for each other is what is tried here."""
    def small(x: Any, *shape: int) -> Any:
        return weights(x, *shape) * 0.1  # large ones make states that any rounding upsets

    def layers(x: Any) -> Any:
        y, _, cell = o.lstm(x, weights(x, 1, 1024, 4), small(x, 1, 1024, 256),
                            direction="reverse")
        z, last = o.gru(o.reshape(y, shape=(9, batch, 256)), small(x, 1, 1536, 256),
                        small(x, 1, 1536, 512), weights(x, 1, 3072), linear_before_reset=True)
        return y, cell, z, last
    table = {"layers": (layers, [(9, batch, 4)])}
    assert check(side_by_side(table), "default", tmp_path / "m", [{}]) == []


def side_by_side(table: Graphs) -> Module:
    """One module with all graphs of the table, so that one build tests them."""
    b, ins, outs, names = Builder(), [], [], []
    for name, (fn, shapes) in table.items():
        xs = [b.input(TensorType(dtypes.float32, s), f"{name}:{i}") for i, s in enumerate(shapes)]
        ins += xs
        made = fn(*xs)
        for i, y in enumerate(made):
            outs.append(y.value)
            names.append(f"{name}={i}")
    g = Graph(tuple(x.value for x in ins), tuple(b.nodes), tuple(outs))
    return Module(g, tuple(names), SYMBOLS if table is SYMBOLIC else {})


PIPELINES: dict[str, Any] = {
    "default": None,
    "plain": [PassCall("decompose", {"keep": ("recurrence",)})],
    "fused": [PassCall("decompose", {"keep": ("recurrence",)}), "layout", "select", "fold", "fuse"]}


def check(module: Module, pipeline: str, path: Path, sizes: list[dict[str, int]]) -> list[str]:
    ready = passes.run(module, PIPELINES[pipeline])
    model = compiled(ready, path, target=named("native", threads=max(THREADS)), eager=True)
    found = []
    for n, size in enumerate(sizes):
        inputs = made_up.random_inputs(module, n, size)
        want = interp.run(module, inputs)
        for threads in THREADS:
            model.threads = threads
            found += [f"{size} {threads} threads: {f}"
                      for f in faults(model.run(inputs), want)]
    return found


@pytest.mark.part(2)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_awkward_graphs(pipeline: str, tmp_path: Path) -> None:
    assert check(side_by_side(STATIC), pipeline, tmp_path / "m", [{}]) == []


@pytest.mark.part(2)
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_symbolic_sizes(pipeline: str, tmp_path: Path) -> None:
    sizes = [{"B": b, "T": t} for b, t in ((3, 5), (1, 1), (7, 0), (50, 33), (2, 70))]
    assert check(side_by_side(SYMBOLIC), pipeline, tmp_path / "m", sizes) == []


def test_donations_keep_values(tmp_path: Path) -> None:
    b = Builder()
    w, g = (b.input(TensorType(dtypes.float32, (4, 6)), n) for n in ("w", "g"))
    new = w - g * 0.1
    norm = o.reduce_sum(w * w, axes=(0, 1))
    module = Module(Graph((w.value, g.value), tuple(b.nodes), (new.value, norm.value)),
                    ("new", "norm"), donations=((0, 0),))
    assert check(module, "default", tmp_path / "m", [{}]) == []
