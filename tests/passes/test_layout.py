"""Channels go last around convolutions, and what stands between two of them follows."""

from __future__ import annotations

from typing import Any

import pytest

from graphtool import ops as o
from graphtool.passes import run
from tests.passes.pass_samples import assert_same, module, values

RESIZES = [
    {"mode": "linear"},
    {"mode": "nearest", "coordinates": "asymmetric", "rounding": "floor"},
    {"mode": "linear", "scales": (1.0, 1.0, 2.0, 1.5)},
    {"mode": "linear", "coordinates": "tf_crop_and_resize",
     "roi": (0.0, 0.0, 0.1, 0.2, 1.0, 1.0, 0.7, 0.9)},
]


@pytest.mark.parametrize("attrs", RESIZES)
def test_resize_between_convolutions(attrs: Any) -> None:
    def fn(x: Any) -> Any:
        y = o.resize(o.conv(x, values(x, 5, 3, 1, 1)), sizes=(2, 5, 8, 6), **attrs)
        return o.conv(y, values(x, 4, 5, 3, 3))
    m = module(fn, "f32[2,3,4,4]")
    new = run(m, "decompose{placed=false},layout,simplify,dce")
    moved = [n.op.name for n in new.graph.nodes if n.op.name in ("transpose", "resize")]
    assert moved == ["transpose", "resize", "transpose"]
    assert_same(m, new, rtol=1e-5)


@pytest.mark.parametrize("transposed", [False, True])
def test_flat_features_reorder_the_weights(transposed: bool) -> None:
    def fn(x: Any) -> Any:
        y = o.reshape(o.conv(x, values(x, 5, 3, 1, 1)), shape=(2, 5 * 4 * 6))
        w = values(x, 7, 120) if transposed else values(x, 120, 7)
        return o.matmul(y, w, transpose_b=transposed)
    m = module(fn, "f32[2,3,4,6]")
    new = run(m, "layout,simplify,fold,dce")
    assert [n.op.name for n in new.graph.nodes].count("transpose") == 1
    assert_same(m, new, rtol=1e-4)


def test_lines_that_the_graph_turns_itself() -> None:
    """Layer norm over channels between convolutions: turned there and back, as torch writes it."""
    def fn(x: Any) -> Any:
        y = o.transpose(o.conv(x, values(x, 8, 3, 3)), perm=(0, 2, 1))
        y = o.transpose(o.layer_norm(y, values(x, 8), axes=(2,)), perm=(0, 2, 1))
        return o.conv(o.tanh(y), values(x, 4, 8, 3))
    m = module(fn, "f32[2,3,12]")
    new = run(m, "simplify,decompose{placed=false},layout,simplify,dce")
    assert [n.op.name for n in new.graph.nodes].count("transpose") == 2
    assert_same(m, new, rtol=1e-4)


def test_rows_as_pixels_and_back() -> None:
    """Features of tokens that become images of several sizes, as a decoder of segments has them."""
    def fn(x: Any, y: Any) -> Any:
        images = [o.reshape(o.transpose(t, perm=(0, 2, 1)), shape=(2, 3, n, n + 1))
                  for t, n in ((x, 4), (y, 2))]
        wide = [o.resize(t, sizes=(2, 3, 4, 5), mode="linear") for t in images]
        z = o.relu(o.conv(o.concat(*wide, axis=1), values(x, 5, 6, 1, 1)))
        rows = o.transpose(o.reshape(z, shape=(2, 5, 20)), perm=(0, 2, 1))
        return o.matmul(o.tanh(rows), values(x, 5, 7))
    m = module(fn, "f32[2,20,3]", "f32[2,6,3]")
    new = run(m, "decompose{placed=false},layout,simplify,dce")
    assert "transpose" not in [n.op.name for n in new.graph.nodes]
    assert_same(m, new, rtol=1e-5)


def test_images_that_nothing_reads_channels_last() -> None:
    def fn(x: Any) -> Any:
        image = o.reshape(o.transpose(x, perm=(0, 2, 1)), shape=(2, 3, 4, 5))
        return o.tanh(image), o.conv(o.reshape(x, shape=(2, 3, 4, 5)), values(x, 5, 3, 3, 3))
    m = module(fn, "f32[2,20,3]")
    new = run(m, "layout,simplify,dce")
    ops = [n.op.name for n in new.graph.nodes]
    assert ops.index("tanh") > ops.index("reshape") > ops.index("transpose")
    assert_same(m, new, rtol=1e-5)


def test_rows_of_images_of_open_size() -> None:
    def fn(x: Any) -> Any:
        image = o.reshape(o.transpose(x, perm=(0, 2, 1)), shape=(x.shape[0], 3, 4, 5))
        y = o.conv(image, values(x, 6, 3, 1, 1))
        return o.transpose(o.reshape(y, shape=(x.shape[0], 6, 20)), perm=(0, 2, 1))
    m = module(fn, "f32[B,20,3]")
    new = run(m, "layout,simplify,dce")
    assert "transpose" not in [n.op.name for n in new.graph.nodes]
    assert_same(m, new, rtol=1e-5)


def test_rows_that_are_results_as_they_were_written() -> None:
    """Boxes of a detector: the maps of several scales are joined channels first."""
    def fn(x: Any, y: Any) -> Any:
        rows = [o.reshape(o.conv(v, values(x, 6, 3, 1, 1)), shape=(2, 6, n))
                for v, n in ((x, 20), (y, 6))]
        return o.sigmoid(o.concat(*rows, axis=2))
    m = module(fn, "f32[2,3,4,5]", "f32[2,3,2,3]")
    new = run(m, "decompose{placed=false},layout,simplify,dce")
    kept = {n.op.name: n.outputs[0].type.shape for n in new.graph.nodes}
    assert kept["concat"] == kept["sigmoid"] == (2, 6, 26)
    assert_same(m, new, rtol=1e-5)
