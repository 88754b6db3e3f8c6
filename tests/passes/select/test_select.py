"""Convolutions become kernels that compute the same, and the ones that cost least."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphtool import dtypes
from graphtool import ops as o
from graphtool.ir.plan import chosen_plan
from graphtool.kernels.choice.choose import choose
from graphtool.kernels.choice.rules import Rules, rules_of
from graphtool.kernels.choice.sites import Attention, Product, Recurrence
from graphtool.passes import run
from graphtool.target import TABLE
from tests.passes.pass_samples import assert_same, module, values

ONE_PIXEL = [  # channels out, window, padding
    (32, (4, 4), ((3, 3), (3, 3))),
    (8, (3, 3), ((1, 1), (1, 1))),
    (5, (4, 3), ((3, 1), (0, 2))),
    (5, (2, 3), ((1, 0), (2, 2))),
]
TRANSPOSED = [  # channels in and out, size, window, stride, padding
    (4, 3, (5, 6), (4, 4), (2, 2), ((2, 2), (2, 2))),
    (3, 2, (4, 4), (5, 3), (1, 3), ((4, 4), (2, 2))),
    (3, 1, (4, 5), (3, 3), (2, 2), ((1, 2), (1, 2))),
    (4, 40, (4, 4), (4, 4), (2, 2), ((2, 2), (2, 2))),
    (4, 6, (1, 1), (4, 4), (2, 2), ((3, 3), (3, 3))),
]


def convolution(shape: tuple[int | str, ...], out: int, window: tuple[int, int],
                **attrs: Any) -> Any:
    def fn(x: Any) -> Any:
        w = values(x, out, shape[3], *window)
        return o.conv(x, w, channels_last=True, **attrs)
    return module(fn, f"f32[{','.join(map(str, shape))}]")


def kernels(m: Any) -> list[str]:
    return [n.op.name for n in m.graph.nodes if n.op.name in (
        "gemm", "conv_direct", "winograd", "winograd_line")]


@pytest.mark.parametrize(("out", "window", "padding"), ONE_PIXEL)
def test_one_pixel_is_a_product(out: int, window: Any, padding: Any) -> None:
    m = convolution((2, 1, 1, 6), out, window, padding=padding)
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == ["gemm"]
    assert_same(m, new, rtol=1e-4)


@pytest.mark.parametrize(("c", "out", "size", "window", "stride", "padding"), TRANSPOSED)
def test_transposed_in_phases(c: int, out: int, size: Any, window: Any, stride: Any,
                              padding: Any) -> None:
    m = convolution((2, *size, c), out, window, padding=padding, lhs_dilation=stride)
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new)
    assert_same(m, new, rtol=1e-4)


@pytest.mark.parametrize(("window", "padding"), [
    ((2, 2), ((1, 1), (1, 1))), ((4, 4), ((2, 2), (2, 2))), ((3, 3), ((1, 2), (2, 1)))])
def test_open_images_are_transposed_in_phases_too(window: Any, padding: Any) -> None:
    m, fixed = (convolution((2, n, n, 4), 24, window, padding=padding, lhs_dilation=(2, 2))
                for n in ("B", 8))
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == kernels(run(fixed, "select{march=x86-64-v4},simplify,fold"))
    assert_same(m, new, rtol=1e-4)


def test_few_channels_share_the_phases_of_a_row() -> None:
    m = convolution((1, 8, 8, 4), 3, (4, 4), padding=((2, 2), (2, 2)), lhs_dilation=(2, 2))
    assert len(kernels(run(m, "select{march=x86-64-v4}"))) == 2
    assert len(kernels(run(m, "select{march=x86-64-v2}"))) == 4


LINES = [  # input, channels out, window, dilation: an image, or a row of one
    ((1, 40, 30, 32), 48, (1, 7), (1, 1)), ((2, 60, 20, 32), 32, (3, 1), (4, 1)),
    ((1, 33, 31, 48), 40, (3, 3), (2, 2)), ((1, 26, 27, 32), 64, (5, 5), (1, 1)),
    ((2, 300, 64), 64, (3,), (1,)), ((1, 500, 32), 64, (15,), (1,))]


@pytest.mark.parametrize(("shape", "out", "window", "dilation"), LINES)
def test_long_or_dilated_windows_by_sums_along_one_axis(shape: Any, out: int, window: Any,
                                                        dilation: Any) -> None:
    def fn(x: Any) -> Any:
        w = values(x, out, shape[-1], *window)
        return o.conv(x, w, channels_last=True, rhs_dilation=dilation)
    m = module(fn, f"f32[{','.join(map(str, shape))}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == ["winograd_line"]
    assert kernels(run(m, "select{march=x86-64-v4,winograd=0},simplify,fold")) == ["conv_direct"]
    assert_same(m, new, rtol=1e-4)


@pytest.mark.parametrize(("groups", "chosen"), [(2, "winograd"), (16, "winograd"),
                                               (3, "conv_direct")])
def test_groups_of_whole_panels_are_transformed(groups: int, chosen: str) -> None:
    def fn(x: Any) -> Any:
        w = values(x, x.shape[3], x.shape[3] // groups, 3, 3)
        return o.conv(x, w, channels_last=True, groups=groups)
    m = module(fn, f"f32[1,34,30,{72 if groups == 3 else 64}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == [chosen]
    assert_same(m, new, rtol=1e-4)


VOLUMES = [  # input, channels out, window, attributes, kernels
    ((2, 4, 6, 6, 16), 16, (3, 3, 3), {"padding": ((1, 1),) * 3}, ["winograd"]),
    ((1, 5, 6, 6, 3), 20, (2, 3, 3), {"strides": (2, 2, 2)}, ["conv_direct"]),
    ((2, 3, 4, 4, 8), 8, (1, 1, 1), {}, ["gemm"]),
    ((1, 3, 4, 4, 2), 5, (3, 1, 1), {"padding": ((1, 1), (0, 0), (0, 0))}, ["gemm"]),
    ((1, 1, 4, 4, 2), 5, (3, 3, 3), {"padding": ((1, 1),) * 3}, ["conv_direct"]),
    ((2, 2, 3, 4, 2), 5, (5, 1, 1), {"padding": ((4, 1), (0, 0), (0, 0)), "strides": (3, 1, 1)},
     ["gemm"]),
]


@pytest.mark.parametrize(("shape", "out", "window", "attrs", "names"), VOLUMES)
def test_volumes_by_the_kernels_of_images(shape: Any, out: int, window: Any, attrs: Any,
                                          names: list[str]) -> None:
    def fn(x: Any) -> Any:
        return o.conv(x, values(x, out, shape[4], *window), channels_last=True, **attrs)
    m = module(fn, f"f32[{','.join(map(str, shape))}]")
    new = run(m, "select{march=x86-64-v3},simplify,fold")
    assert kernels(new) == names
    assert_same(m, new, rtol=1e-4)


def _stored(kind: str) -> Any:
    """Grouped attention over keys and values of fewer bits, which are moved before it."""
    def fn(q: Any, k: Any, v: Any, *factors: Any) -> Any:
        wide = [o.cast(x, dtype=dtypes.float32) for x in (k, v)]
        wide = [x * f for x, f in zip(wide, factors, strict=True)] if factors else wide
        k, v = (o.reshape(o.broadcast(o.reshape(o.transpose(o.slice(
            x, start=(0, 1, 0), limit=(6, 3, 8), strides=(1, 1, 1)), perm=(1, 0, 2)),
            shape=(2, 1, 6, 8)), shape=(2, 2, 6, 8)), shape=(4, 6, 8)) for x in wide)
        return o.attention(q, k, v)
    rows = ("f32[6,3,1]",) * 2 if kind == "i8" else ()
    return module(fn, "f32[4,1,8]", *[f"{kind}[6,3,8]"] * 2, *rows)


@pytest.mark.parametrize("kind", ["bf16", "f16", "i8"])
def test_attention_reads_keys_as_they_are_stored(kind: str) -> None:
    m = _stored(kind)
    new = run(m, "recognise,simplify,select,simplify,dce")
    (made,) = [n for n in new.graph.nodes if n.op.name == "attend"]
    assert new.choices[made.outputs[0]].site == str(
        Attention(4, 1, 6, 8, 8, 2, keys=dtypes.dtype(kind)))
    assert not any(n.op is o.cast for n in new.graph.nodes)
    assert_same(m, new, rtol=1e-5)


@pytest.mark.parametrize("how", ["one", "another axis", "another type"])
def test_attention_widens_what_its_kernel_cannot_read(how: str) -> None:
    def fn(q: Any, k: Any, v: Any, f: Any) -> Any:
        if how == "one":
            return o.attention(q, o.cast(k, dtype=dtypes.float32), o.cast(v, dtype=dtypes.float32))
        wide = o.cast(k, dtype=dtypes.float32) * (f if how == "another type" else
                                                  o.transpose(f, perm=(0, 2, 1)))
        return o.attention(q, wide, wide)
    kinds = ("bf16", "f16") if how == "one" else ("i8" if how == "another axis" else "i16",) * 2
    m = module(fn, "f32[2,1,6]", *(f"{k}[2,6,6]" for k in kinds), "f32[2,6,1]")
    new = run(m, "select,simplify,dce")
    (made,) = [n for n in new.graph.nodes if n.op.name == "attend"]
    assert all(x.type.dtype is dtypes.float32 for x in made.inputs)
    assert_same(m, new, rtol=1e-5)


@pytest.mark.parametrize(("mask", "operands"), [
    (np.ones((), bool), 3), (np.zeros(5, np.float32), 3), (np.array([1, 0, 1, 1, 1], bool), 4)])
def test_a_mask_that_hides_nothing_is_dropped(mask: Any, operands: int) -> None:
    def fn(q: Any, k: Any) -> Any:
        return o.attention(q, k, k, q.builder.constant(mask))
    m = module(fn, "f32[2,3,4]", "f32[2,5,4]")
    new = run(m, "select")
    (made,) = [n for n in new.graph.nodes if n.op.name == "attend"]
    assert len(made.inputs) == operands
    assert new.choices[made.outputs[0]].site == str(
        Attention(2, 3, 5, 4, 4, masked=operands > 3, hidden=operands > 3))
    assert_same(m, new, rtol=1e-5)


@pytest.mark.parametrize(("size", "out", "chosen"), [
    ((4, 34, 34, 64), 64, "winograd"), ((8, 17, 23, 64), 72, "winograd"),
    ((1, 6, 6, 64), 64, "conv_direct"), ((4, 34, 34, 8), 16, "conv_direct")])
def test_weights_that_are_no_constants_are_transformed_for_many_pixels(
        size: tuple[int, ...], out: int, chosen: str) -> None:
    def fn(x: Any, w: Any) -> Any:
        return o.conv(x, w, channels_last=True)
    m = module(fn, f"f32[{','.join(map(str, size))}]", f"f32[{out},{size[3]},3,3]")
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == [chosen]
    assert_same(m, new, rtol=1e-4)


FEW = [  # width, channels out, window, stride, pixels side by side
    (28, 6, (5, 5), (1, 1), 2),
    (32, 1, (3, 3), (1, 1), 16),
    (20, 3, (3, 4), (2, 1), 5),
    (24, 2, (3, 7), (1, 2), 8),
    (14, 2, (3, 1), (1, 1), 1),
    (13, 3, (3, 3), (1, 1), 1),
]


@pytest.mark.parametrize(("width", "out", "window", "strides", "count"), FEW)
def test_few_channels_share_a_vector(width: int, out: int, window: Any, strides: Any,
                                     count: int) -> None:
    wide = strides[1] * (width - 1) + window[1]

    def fn(x: Any) -> Any:
        y = o.conv(x, values(x, out, 5, *window), channels_last=True, strides=strides)
        return o.relu(y * values(x, out) + values(x, 1, 1, 1, out)) * values(x, 1) + 0.5
    m = module(fn, f"f32[2,9,{wide},5]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce,fuse")
    assert [n.attrs["channels"] for n in new.graph.nodes if n.op.name == "conv_direct"] == [
        out * count]
    assert len(new.graph.groups) == 1
    assert_same(m, new, rtol=1e-4)


FOLLOWED = [  # input, channels out, window, shapes of what is added, kernels with all of it
    ((2, 9, 6), 20, (3,), [(20,), (2, 7, 20)], 1),
    ((1, 9, 6), 20, (1,), [(1, 1, 20), (1, 9, 1)], 1),
    ((1, 3, 5, 4, 6), 20, (3, 3, 3), [(20,), (1, 1, 3, 2, 20)], 1),
    ((2, 4, 5, 4, 6), 20, (3, 3, 3), [(20,)], 1),
    ((2, 4, 5, 4, 6), 20, (3, 3, 3), [(2, 1, 1, 1, 20)], 2),
]


@pytest.mark.parametrize(("shape", "out", "window", "added", "count"), FOLLOWED)
def test_what_follows_a_row_or_a_volume_stays_in_its_kernel(
        shape: Any, out: int, window: Any, added: Any, count: int) -> None:
    def fn(x: Any) -> Any:
        y = o.conv(x, values(x, out, shape[-1], *window), channels_last=True)
        for more in added:
            y = y + values(x, *more)
        return o.max(y, 0.0)
    m = module(fn, f"f32[{','.join(map(str, shape))}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce,fuse")
    assert len(new.graph.groups) == count
    assert_same(m, new, rtol=1e-4)



def test_a_residual_stream_stays_in_rows_where_a_later_kernel_adds() -> None:
    """The first sum stands in the convolution's kernel, the second in the product's."""
    def fn(x: Any) -> Any:
        y = o.conv(x, values(x, 20, 16, 3), channels_last=True) + values(x, 20)
        return y + (o.matmul(o.tanh(y), values(x, 20, 20)) + values(x, 20, seed=1))
    m = module(fn, "f32[2,12,16]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce,fuse")
    assert [sum(n.op.name == "add" for n in g.members) for g in new.graph.groups
            if g.kind == "template"] == [1, 2]
    assert_same(m, new, rtol=1e-4)


UNMET = [  # size, window, attributes, the window that is left
    ((8, 8), (3, 3), {"padding": ((12, 12), (9, 9)), "rhs_dilation": (12, 9)}, (1, 1)),
    ((8, 6), (3, 3), {"padding": ((7, 7), (6, 6)), "rhs_dilation": (7, 6)}, (3, 1)),
    ((2, 5), (5, 3), {"padding": ((4, 0), (0, 0)), "strides": (2, 1)}, (1, 3)),
    ((3, 4), (7, 7), {"padding": ((3, 3), (3, 3)), "strides": (2, 2)}, (5, 6)),
    ((3, 4), (2, 2), {"padding": ((2, 0), (0, 3)), "rhs_dilation": (4, 4)}, (1, 1)),
]


@pytest.mark.parametrize(("size", "window", "attrs", "left"), UNMET)
def test_taps_that_meet_only_padding_are_left_out(size: Any, window: Any, attrs: Any,
                                                  left: Any) -> None:
    m = convolution((1, *size, 3), 20, window, **attrs)
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce")
    (made,) = (n for n in new.graph.nodes if n.op.name in ("conv_direct", "gemm"))
    assert made.attrs.get("window", (1, 1)) == left
    assert_same(m, new, rtol=1e-4)


DILATED = [  # size, window, attributes, what of the padded image is read; None: all of it
    ((14, 14), (3, 3), {"padding": ((12, 12), (12, 12)), "rhs_dilation": (12, 12)},
     (12, 26, 12, 26)),
    ((9, 7), (3, 3), {"padding": ((5, 4), (3, 5)), "rhs_dilation": (5, 4)}, (5, 14, 3, 10)),
    ((15, 11), (3, 2), {"padding": ((6, 6), (5, 5)), "rhs_dilation": (6, 5), "strides": (2, 3)},
     (6, 21, 5, 16)),
    ((9, 9), (3, 3), {"padding": ((4, 4), (1, 1)), "rhs_dilation": (4, 1)}, None),
    ((40, 40), (3, 3), {"padding": ((2, 2), (2, 2)), "rhs_dilation": (2, 2)}, None),
    ((14, 14), (3, 3), {"padding": ((0, 0), (0, 0)), "rhs_dilation": (6, 6)}, None)]


@pytest.mark.parametrize(("size", "window", "attrs", "inside"), DILATED)
@pytest.mark.parametrize("march", ["x86-64-v4", "x86-64-v2"])
def test_dilated_windows_leave_out_padding(size: Any, window: Any, attrs: Any, inside: Any,
                                           march: str) -> None:
    """Where much of what they meet is padding, and the kernel is the direct one."""
    m = convolution((2, *size, 3), 20, window, **attrs)
    new = run(m, f"select{{march={march}}},simplify,fold,dce")
    (made,) = (n for n in new.graph.nodes if n.op.name == "conv_direct")
    assert made.attrs.get("inside") == inside
    assert_same(m, new, rtol=1e-4)


def test_padding_is_not_left_out_of_what_may_be_infinite() -> None:
    """A weight that is infinite makes NaN of padding: so it stays where nothing is assumed."""
    def fn(x: Any, w: Any) -> Any:
        return o.conv(x, w, channels_last=True, padding=((5, 5), (5, 5)), rhs_dilation=(5, 5))
    m = module(fn, "f32[1,9,9,3]", "f32[20,3,3,3]")
    for assume, left_out in (("finite", True), ("nothing", False)):
        new = run(m, "select,simplify,fold,dce", supply={
            "target": TABLE["x86-64-v4"], "rules": rules_of(assume=assume)})
        (made,) = (n for n in new.graph.nodes if n.op.name == "conv_direct")
        assert ("inside" in made.attrs and made.attrs["inside"] is not None) is left_out


NEIGHBOURS = [  # size, channels, window, attributes, channels of the pixels that are one
    ((9, 14), 8, (3, 3), {"padding": ((1, 1), (1, 1))}, 16),
    ((5, 12), 12, (3, 3), {"padding": ((1, 1), (1, 1)), "strides": (2, 1)}, 48),
    ((5, 9), 5, (1, 3), {"rhs_dilation": (1, 2)}, 25),
    ((9, 14), 8, (3, 3), {"strides": (2, 2)}, 8),
    ((9, 14), 16, (3, 3), {}, 16),
]


@pytest.mark.parametrize(("size", "c", "window", "attrs", "wide"), NEIGHBOURS)
def test_neighbours_of_few_channels_are_one_pixel(size: Any, c: int, window: Any, attrs: Any,
                                                  wide: int) -> None:
    def fn(x: Any) -> Any:
        y = o.conv(x, values(x, c, 1, *window), channels_last=True, groups=c, **attrs)
        return o.max(y + values(x, c), 0.0)
    m = module(fn, f"f32[2,{size[0]},{size[1]},{c}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce,fuse")
    (made,) = (n for n in new.graph.nodes if n.op.name == "depthwise")
    assert made.outputs[0].type.shape[3] == wide
    assert len(new.graph.groups) == 1
    assert_same(m, new, rtol=1e-4)


def test_what_has_the_narrow_shape_stays_outside() -> None:
    def fn(x: Any, y: Any) -> Any:
        return o.conv(x, values(x, 2, 5, 3, 3), channels_last=True) + y
    m = module(fn, "f32[2,9,18,5]", "f32[2,7,16,2]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce")
    assert [n.type.shape for n in (new.graph.nodes[-1].inputs)] == [(2, 7, 16, 2)] * 2
    assert_same(m, new, rtol=1e-4)


def test_a_window_as_large_as_the_image_is_a_product() -> None:
    m = convolution((3, 4, 5, 6), 7, (4, 5))
    new = run(m, "select{march=x86-64-v4},simplify,fold")
    assert kernels(new) == ["gemm"]
    assert_same(m, new, rtol=1e-4)


@pytest.mark.parametrize(("c", "out", "groups", "left"), [
    (32, 32, 8, 2), (8, 16, 8, 1), (12, 36, 6, 3), (40, 40, 2, 2)])
def test_small_groups_become_one(c: int, out: int, groups: int, left: int) -> None:
    def fn(x: Any) -> Any:
        return o.conv(x, values(x, out, c // groups, 3, 2), channels_last=True, groups=groups)
    m = module(fn, f"f32[2,5,6,{c}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce")
    packed = [n.inputs[1].type.shape for n in new.graph.nodes if n.op.name == "conv_direct"]
    assert [s[0] for s in packed] == [left]
    assert_same(m, new, rtol=1e-4)


@pytest.mark.parametrize(("n", "batch", "nr"), [
    (800, 1, 80), (256, 1, 128), (800, 4, 80), (544, 2, 112), (512, 32, 32), (100, 8, 16)])
def test_panels_of_recurrent_weights(n: int, batch: int, nr: int) -> None:
    """As wide as one tile of few rows holds, with little padding; for many rows the least of it."""
    made = choose(Recurrence(50, batch, n, 64), TABLE["x86-64-v4"], Rules())
    assert str(chosen_plan(made)) == f"recurrence{{nv={nr // 16}}}"


@pytest.mark.parametrize(("c", "attrs", "op"), [
    (20, {"padding": ((0, 0), (1, 1), (1, 1), (0, 0))}, "pooled"),
    (20, {"strides": (1, 3, 3, 1)}, "reduce_window"),  # windows that share nothing
    (5, {}, "reduce_window"),
])
def test_windows_that_overlap_share_columns(c: int, attrs: Any, op: str) -> None:
    def fn(x: Any) -> Any:
        y = o.reduce_window(x, kind="max", window=(1, 3, 3, 1), **attrs)
        return o.max(y + values(x, c), 0.0)
    m = module(fn, f"f32[B,11,8,{c}]")
    new = run(m, "select{march=x86-64-v4},simplify,fold,dce,fuse")
    assert op in {n.op.name for n in new.graph.nodes}
    assert_same(m, new)


@pytest.mark.parametrize(("m", "k", "n", "across", "kernel"), [
    (1024, 1024, 384, True, "gemm_blocked"),  # a gradient of weights
    (1024, 8192, 384, False, "gemm_blocked"),  # one of rows, of great depth
    (1024, 384, 384, False, "gemm"), (64, 32, 64, True, "gemm")])
def test_products_of_training(m: int, k: int, n: int, across: bool, kernel: str) -> None:
    for march in ("x86-64", "x86-64-v3", "x86-64-v4"):
        made = choose(Product(1, m, n, k, False, across), TABLE[march], Rules())
        assert chosen_plan(made).kind == kernel, march


def test_constant_weights_are_read_in_place() -> None:
    made = choose(Product(1, 1024, 384, 8192), TABLE["x86-64-v4"], Rules())
    assert chosen_plan(made).kind == "gemm"


@pytest.mark.parametrize("march", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_a_gradient_of_weights_by_blocks(march: str) -> None:
    m = module(lambda x, g: o.matmul(g, x, transpose_a=True), "f32[600,70]", "f32[600,130]")
    new = run(m, f"select{{march={march}}},simplify,fold")
    assert "gemm_blocked" in [n.op.name for n in new.graph.nodes]
    assert_same(m, new, rtol=1e-4)
