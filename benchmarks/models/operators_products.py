"""Rows of operators.py that multiply: products, convolutions, recurrences, poolings, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.models.operators import Operand, Operator, c, integers, w, x


def products() -> list[Operator]:
    import torch as t
    from torch.nn import functional as f
    return [
        Operator("MatMul weight", "MatMul", (x(128, 768), w(768, 768)), t.matmul),
        Operator("MatMul heads", "MatMul", (x(8, 12, 128, 64), x(8, 12, 64, 128)), t.matmul),
        Operator("MatMul vector", "MatMul", (x(1, 1024), w(1024, 1024)), t.matmul),
        Operator("Gemm", "Gemm", (x(64, 512), w(1000, 512), w(1000)),
                 lambda a, b, c: f.linear(a, b, c), {"transB": 1}),
        Operator("Einsum", "Einsum", (x(8, 128, 12, 64), x(8, 128, 12, 64)),
                 lambda a, b: t.einsum("bqhd,bkhd->bhqk", a, b),
                 {"equation": "bqhd,bkhd->bhqk"}),
        Operator("MatMulInteger", "MatMulInteger", (
            integers(255, 128, 768, dtype=np.uint8),
            c(np.random.default_rng(1).integers(-127, 127, (768, 768)), np.int8))),
        *(Operator(f"LSTM {n}", "LSTM", (x(32, n, 128), w(1, 512, 128), w(1, 512, 128)), None,
                   {"hidden_size": 128}) for n in (1, 16)),
        Operator("GRU", "GRU", (x(32, 8, 128), w(1, 384, 128), w(1, 384, 128)), None,
                 {"hidden_size": 128}),
    ]


def _conv(name: str, image: Operand, weight: Operand, torch: Callable[..., Any],
          **attributes: Any) -> Operator:
    return Operator(name, "Conv", (image, weight), torch, attributes)


def convolutions() -> list[Operator]:
    from torch.nn import functional as f
    image = x(1, 64, 56, 56)
    return [
        _conv("Conv 3x3", image, w(64, 64, 3, 3), lambda a, k: f.conv2d(a, k, padding=1),
              pads=[1] * 4),
        _conv("Conv 3x3 stride", image, w(128, 64, 3, 3),
              lambda a, k: f.conv2d(a, k, stride=2, padding=1), pads=[1] * 4, strides=[2, 2]),
        _conv("Conv 1x1", image, w(256, 64, 1, 1), f.conv2d),
        _conv("Conv 1x1 few", x(1, 32, 112, 112), w(16, 32, 1, 1), f.conv2d),
        _conv("Conv 7x7", x(1, 3, 224, 224), w(64, 3, 7, 7),
              lambda a, k: f.conv2d(a, k, stride=2, padding=3), pads=[3] * 4, strides=[2, 2]),
        _conv("Conv dilated", image, w(64, 64, 3, 3),
              lambda a, k: f.conv2d(a, k, padding=2, dilation=2), pads=[2] * 4, dilations=[2, 2]),
        _conv("Conv groups", image, w(64, 8, 3, 3), lambda a, k: f.conv2d(
            a, k, padding=1, groups=8), pads=[1] * 4, group=8),
        _conv("Conv depthwise 3x3", x(1, 96, 56, 56), w(96, 1, 3, 3), lambda a, k: f.conv2d(
            a, k, padding=1, groups=96), pads=[1] * 4, group=96),
        _conv("Conv depthwise 5x5", x(1, 120, 28, 28), w(120, 1, 5, 5), lambda a, k: f.conv2d(
            a, k, padding=2, groups=120), pads=[2] * 4, group=120),
        _conv("Conv depthwise 7x7", x(1, 96, 56, 56), w(96, 1, 7, 7), lambda a, k: f.conv2d(
            a, k, padding=3, groups=96), pads=[3] * 4, group=96),
        _conv("Conv1d", x(1, 256, 400), w(256, 256, 3), lambda a, k: f.conv1d(a, k, padding=1),
              pads=[1, 1]),
        _conv("Conv1d long", x(1, 64, 4000), w(64, 64, 65), lambda a, k: f.conv1d(
            a, k, padding=32), pads=[32, 32]),
        _conv("Conv1d one channel", x(1, 1, 16000), w(64, 1, 400), lambda a, k: f.conv1d(
            a, k, stride=160), strides=[160]),
        _conv("Conv1d depthwise 31", x(1, 256, 400), w(256, 1, 31), lambda a, k: f.conv1d(
            a, k, padding=15, groups=256), pads=[15, 15], group=256),
        _conv("Conv3d", x(1, 16, 16, 32, 32), w(32, 16, 3, 3, 3), lambda a, k: f.conv3d(
            a, k, padding=1), pads=[1] * 6),
        Operator("ConvTranspose 4x4", "ConvTranspose", (x(1, 128, 32, 32), w(128, 64, 4, 4)),
                 lambda a, k: f.conv_transpose2d(a, k, stride=2, padding=1),
                 {"strides": [2, 2], "pads": [1] * 4}),
        Operator("ConvTranspose 2x2", "ConvTranspose", (x(1, 128, 32, 32), w(128, 64, 2, 2)),
                 lambda a, k: f.conv_transpose2d(a, k, stride=2), {"strides": [2, 2]}),
        Operator("ConvTranspose1d 16", "ConvTranspose", (x(1, 256, 100), w(256, 128, 16)),
                 lambda a, k: f.conv_transpose1d(a, k, stride=8, padding=4),
                 {"strides": [8], "pads": [4, 4]}),
        Operator("MaxPool 3x3", "MaxPool", (x(1, 64, 112, 112),),
                 lambda a: f.max_pool2d(a, 3, 2, 1),
                 {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
        Operator("MaxPool 2x2", "MaxPool", (x(1, 64, 112, 112),), lambda a: f.max_pool2d(a, 2),
                 {"kernel_shape": [2, 2], "strides": [2, 2]}),
        Operator("AveragePool", "AveragePool", (image,),
                 lambda a: f.avg_pool2d(a, 3, 1, 1, count_include_pad=False),
                 {"kernel_shape": [3, 3], "pads": [1] * 4}),
        Operator("GlobalAveragePool", "GlobalAveragePool", (x(8, 512, 7, 7),),
                 lambda a: a.mean((2, 3), keepdim=True)),
        Operator("GlobalMaxPool", "GlobalMaxPool", (x(8, 512, 7, 7),),
                 lambda a: a.amax((2, 3), keepdim=True)),
        Operator("LpPool", "LpPool", (image,), lambda a: f.lp_pool2d(a, 2, 2),
                 {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ]


def gradients() -> list[Operator]:
    """What steps of training and nets over graphs have, and ONNX has no operator for."""
    import torch as t
    from torch.nn.grad import conv2d_weight

    def depthwise(size: int) -> Operator:
        return Operator(
            f"grad depthwise {size}x{size}", "", (x(32, 96, 28, 28), x(32, 96, 28, 28)),
            lambda a, g: conv2d_weight(a, (96, 1, size, size), g, padding=size // 2, groups=96))
    edges, nodes = 8192, 2048
    ends = integers(nodes, edges)
    return [
        depthwise(3), depthwise(5),
        Operator("grad conv 3x3", "", (x(8, 32, 28, 28), x(8, 64, 28, 28)),
                 lambda a, g: conv2d_weight(a, (64, 32, 3, 3), g, padding=1)),
        Operator("scatter rows", "", (ends, x(edges, 64)),
                 lambda i, u: t.zeros(nodes, 64).index_add(0, i, u)),
        Operator("scatter rows heads", "", (ends, x(edges, 8), x(edges, 8, 16)),
                 lambda i, s, u: t.zeros(nodes, 8, 16).index_add(0, i, u * s[:, :, None])),
        Operator("dot by head", "", (x(nodes, 8, 16), x(8, 16)),
                 lambda a, s: (a * s).sum(-1)),
        Operator("gather rows", "", (ends, x(nodes, 64)), lambda i, a: a[i]),
    ]
