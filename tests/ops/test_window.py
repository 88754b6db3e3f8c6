"""Convolution in every form, and pooling, against torch, with gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from graphtool import dtypes, passes, transforms
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import rules_of
from tests.evaluating import run
from tests.lower.compiling import compiled
from tests.torch_oracle import agree, normal

CONV: list[Callable[..., Any]] = [F.conv1d, F.conv2d, F.conv3d]
TRANSPOSED: list[Callable[..., Any]] = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d]
SPACE = (7, 6, 5)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_conv(n: int, stride: int, dilation: int, groups: int) -> None:
    x, w = normal(2, 4, *SPACE[:n]), normal(8, 4 // groups, *(3, 2, 2)[:n])
    agree(lambda x, w: o.conv(x, w, strides=(stride,) * n, padding=((1, 1),) * n,
                              rhs_dilation=(dilation,) * n, groups=groups),
          lambda x, w: CONV[n - 1](x, w, None, stride, 1, dilation, groups), [x, w])


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed_conv_is_conv_with_left_dilation(n: int, stride: int, dilation: int,
                                                    groups: int) -> None:
    kernel = (3, 2, 3)[:n]
    x, w = normal(2, 4, *(4, 3, 2)[:n]), normal(4, 6 // groups, *kernel)
    extra = stride - 1

    def ours(x: Any, w: Any) -> Any:
        wide = o.reshape(w, shape=(groups, 4 // groups, 6 // groups, *kernel))
        turned = o.transpose(wide, perm=(0, 2, 1, *range(3, 3 + n)))
        turned = o.reshape(turned, shape=(6, 4 // groups, *kernel))
        spans = [(k - 1) * dilation for k in kernel]
        return o.conv(x, o.reverse(turned, axes=tuple(range(2, 2 + n))),
                      padding=tuple((s - 1, s - 1 + extra) for s in spans),
                      lhs_dilation=(stride,) * n, rhs_dilation=(dilation,) * n, groups=groups)
    agree(ours, lambda x, w: TRANSPOSED[n - 1](x, w, None, stride, 1, extra, groups, dilation),
          [x, w])


INFINITE = [(stride, pad, dilation) for stride in (1, 2, 3) for pad in (0, 1)
            for dilation in (1, 2)]


@pytest.mark.parametrize(("stride", "pad", "dilation"), INFINITE)
def test_infinite_weights_make_nan_of_no_gap(stride: int, pad: int, dilation: int) -> None:
    """The gradient by x adds what each g spreads: it multiplies no zeros, as torch's does not."""
    x, w = normal(1, 2, 9, 8), normal(2, 2, 3, 3)
    w[0, 1, 0, 2], w[1, 0, 2, 1] = np.inf, np.nan
    agree(lambda x: o.conv(x, w, strides=(stride,) * 2, padding=((pad, pad),) * 2,
                           rhs_dilation=(dilation,) * 2),
          lambda x: F.conv2d(x, torch.from_numpy(w), None, stride, pad, dilation), [x])


@np.errstate(invalid="ignore")
def spread(x: Any, w: Any, g: Any, stride: int, pad: int, dilation: int) -> tuple[Any, Any, Any]:
    """A transposed convolution and both gradients by the definition, element by element."""
    y, gx, gw = np.zeros_like(g), np.zeros_like(x), np.zeros_like(w)
    for i, j, a, b in np.ndindex(*x.shape[2:], *w.shape[2:]):
        row, column = i * stride + a * dilation - pad, j * stride + b * dilation - pad
        if 0 <= row < g.shape[2] and 0 <= column < g.shape[3]:
            y[:, :, row, column] += x[:, :, i, j] @ w[:, :, a, b]
            gx[:, :, i, j] += g[:, :, row, column] @ w[:, :, a, b].T
            gw[:, :, a, b] += x[:, :, i, j].T @ g[:, :, row, column]
    return y, gx, gw


@pytest.mark.part(2)
@pytest.mark.parametrize(("stride", "pad", "dilation"), INFINITE)
def test_transposed_conv_of_infinite_numbers(stride: int, pad: int, dilation: int,
                                             tmp_path: Path) -> None:
    """What an infinite weight or gradient reaches, in both gradients and in C."""
    def ours(x: Any, w: Any) -> Any:
        spans = [(k - 1) * dilation - pad for k in (3, 2)]
        return o.conv(x, o.reverse(o.transpose(w, perm=(1, 0, 2, 3)), axes=(2, 3)),
                      padding=tuple((s, s) for s in spans), lhs_dilation=(stride,) * 2,
                      rhs_dilation=(dilation,) * 2, absent=True)
    x, w = normal(1, 2, 3, 4), normal(2, 3, 3, 2)
    graph = trace(ours, [TensorType(dtypes.float64, v.shape) for v in (x, w)])
    joint = transforms.vjp(graph, graph.inputs)
    g = normal(*graph.outputs[0].type.shape)
    w[0, 1, 0, 1], w[1, 0, 2, 0], g[0, 1, 2, 2] = np.inf, np.nan, -np.inf
    named = Module(joint, ("y", "gx", "gw"))
    ready = passes.run(named, supply={"rules": rules_of(assume="nothing")})
    feed = dict(zip([v.hint for v in joint.inputs], (x, w, g), strict=True))
    c = compiled(ready, tmp_path / "m").run(feed)
    for got in (run(joint, [x, w, g]), [c[k] for k in named.output_names]):
        for a, b in zip(got, spread(x, w, g, stride, pad, dilation), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_channels_last_is_a_transpose() -> None:
    x, w = normal(2, 4, 7, 6), normal(8, 2, 3, 2)
    attrs: dict[str, Any] = {"strides": (2, 1), "padding": ((1, 0), (0, 2)), "groups": 2}
    last = o.conv(x.transpose(0, 2, 3, 1), w, channels_last=True, **attrs)
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), o.conv(x, w, **attrs))


def test_batch_groups_are_convs_side_by_side() -> None:
    x, w = normal(4, 3, 6), normal(6, 3, 2)
    parts = [o.conv(x[2 * g:2 * g + 2], w[3 * g:3 * g + 3]) for g in range(2)]
    np.testing.assert_allclose(o.conv(x, w, batch_groups=2), np.concatenate(parts, 1))


def test_negative_padding_crops() -> None:
    x, w = normal(1, 2, 8, 8), normal(3, 2, 3, 3)
    np.testing.assert_allclose(o.conv(x, w, padding=((-1, 0), (0, -2))),
                               o.conv(x[:, :, 1:, :-2], w))


@pytest.mark.parametrize(("window", "stride", "pad", "dilation"), [
    (2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 1), (2, 1, 1, 2), (3, 3, 0, 1)])
def test_max_pool(window: int, stride: int, pad: int, dilation: int) -> None:
    agree(lambda x: o.max_pool(x, window=(window,) * 2, strides=(stride,) * 2,
                               padding=((pad, pad),) * 2, dilation=(dilation,) * 2),
          lambda x: F.max_pool2d(x, window, stride, pad, dilation), [normal(2, 3, 7, 8)])


def test_max_pool_ties_go_to_the_first() -> None:
    for x in (np.zeros((1, 1, 5, 5)), np.round(normal(1, 2, 6, 6))):
        agree(lambda x: o.max_pool(x, window=(3, 3), strides=(2, 2), padding=((1, 1), (1, 1))),
              lambda x: F.max_pool2d(x, 3, 2, 1), [x])


def test_max_pool_indices() -> None:
    x = normal(1, 1, 6, 5)
    got = o.arg_reduce_window(x, kind="max", window=(1, 1, 3, 2), strides=(1, 1, 2, 1))
    want = F.max_pool2d(torch.from_numpy(x), (3, 2), (2, 1), return_indices=True)[1]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("counted", [False, True])
def test_avg_pool(counted: bool) -> None:
    agree(lambda x: o.avg_pool(x, window=(3, 2), strides=(2, 1), padding=((1, 1), (1, 1)),
                               count_include_pad=counted),
          lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=counted),
          [normal(2, 3, 7, 8)])


def test_ceil_mode_is_uneven_padding() -> None:
    x = normal(1, 2, 8)
    agree(lambda x: o.max_pool(x, window=(3,), strides=(2,), padding=((1, 2),)),
          lambda x: F.max_pool1d(x, 3, 2, 1, ceil_mode=True), [x])
    agree(lambda x: o.avg_pool(x, window=(3,), strides=(2,), padding=((1, 2),)),
          lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False), [x])
    agree(lambda x: o.avg_pool(o.pad(x, lo=(0, 0, 1), hi=(0, 0, 1)), window=(3,), strides=(2,),
                               padding=((0, 1),)),
          lambda x: F.avg_pool1d(x, 3, 2, 1, ceil_mode=True, count_include_pad=True), [x])


def test_lp_pool() -> None:
    agree(lambda x: o.lp_pool(x, window=(3,), strides=(2,), order=3.0),
          lambda x: F.lp_pool1d(x, 3.0, 3, 2), [np.abs(normal(2, 3, 9))])
