"""ONNX models for `simplify`, as text, with the sizes that their dims have in a run: each has
operators that are several nodes in our graphs. Those that torch exports are made when asked for.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, parser

_HEAD = '<ir_version: 8, opset_import: ["" : {}, "com.microsoft" : 1]>\n'


@dataclass(frozen=True)
class Text:
    """A model as text, and the sizes of its open dims, one mapping for each run. `weights` have an
    element type and a shape. `random`: what it gives differs from run to run."""

    text: str
    sizes: tuple[Mapping[str, int], ...] = ({},)
    opset: int = 18
    weights: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    random: bool = False

    def model(self) -> ModelProto:
        """The model, checked."""
        model = parser.parse_model(_HEAD.format(self.opset) + self.text)
        rng = np.random.default_rng(0)
        for name, (kind, *shape) in self.weights.items():
            values = rng.random(shape) * (100 if kind.startswith("int") else 1)
            model.graph.initializer.append(numpy_helper.from_array(values.astype(kind), name))
        onnx.checker.check_model(model)
        return model


N_AND_ONE = ({"N": 4, "M": 4}, {"N": 1, "M": 4}, {"N": 4, "M": 1}, {"N": 1, "M": 1})
B_AND_T = ({"B": 2, "T": 5}, {"B": 1, "T": 1})

TEXTS = {
    "float16 norm, broadcast, ReduceL2": Text('''
g (float16[N,8] x, float16[8] s, float16[8,8] w, float16[M,8] b) => (float16[K] y) {
  n = LayerNormalization <axis = -1> (x, s)
  m = MatMul (n, w)
  a = Add (m, b)
  k = Constant <value = int64[1] {-1}> ()
  y = ReduceL2 <keepdims = 0> (a, k)
}''', N_AND_ONE),
    "mask of attention": Text('''
g (float[B,2,T,4] q, float[B,2,T,4] k, float[B,2,T,4] v, bool[B,1,1,T] m) => (float[B,2,T,4] y) {
  t = Transpose <perm = [0, 1, 3, 2]> (k)
  s = MatMul (q, t)
  low = Constant <value = float {-1000.0}> ()
  z = Where (m, s, low)
  p = Softmax <axis = -1> (z)
  y = MatMul (p, v)
}''', B_AND_T),
    "positions and heads": Text('''
g (float[B,T,8] x, float[16,8] places) => (float[B,2,T,4] y, float[B,8] last) {
  s = Shape (x)
  i = Constant <value = int64 {1}> ()
  t = Gather <axis = 0> (s, i)
  zero = Constant <value = int64 {0}> ()
  r = Range (zero, t, i)
  e = Gather <axis = 0> (places, r)
  a = Add (x, e)
  to = Constant <value = int64[4] {0, 0, 2, 4}> ()
  h = Reshape (a, to)
  y = Transpose <perm = [0, 2, 1, 3]> (h)
  minus = Constant <value = int64 {-1}> ()
  last = Gather <axis = 1> (a, minus)
}''', B_AND_T),
    "split, gather, cumulative sum, one-hot": Text('''
g (float[B,8] x, int64[B] i, int64[1] axis) => (float[B,4] y, float[B] s, float[B,3] o) {
  a, b = Split <axis = 1, num_outputs = 2> (x)
  c = Sigmoid (b)
  y = Mul (a, c)
  g = Gather <axis = 0> (x, i)
  z = Constant <value = int64 {1}> ()
  u = CumSum (g, z)
  s = ReduceSum <keepdims = 0> (u, axis)
  d = Constant <value = int64 {3}> ()
  v = Constant <value = float[2] {0.0, 1.0}> ()
  o = OneHot (i, d, v)
}''', ({"B": 3}, {"B": 1})),
    "boxes": Text('''
g (float[1,N,4] boxes, float[1,2,N] scores) => (float[K,4] y) {
  most = Constant <value = int64 {3}> ()
  iou = Constant <value = float {0.5}> ()
  p = NonMaxSuppression (boxes, scores, most, iou)
  last = Constant <value = int64 {2}> ()
  at = Gather <axis = 1> (p, last)
  zero = Constant <value = int64[1] {0}> ()
  flat = Squeeze (boxes, zero)
  y = Gather <axis = 0> (flat, at)
}''', ({"N": 6}, {"N": 1})),
    "quantised": Text('''
g (float[N,3,8,8] x) => (float[N,4,6,6] y)
<float s = {0.05}, uint8 z = {128}, float t = {0.01}, int8 o = {0},
 float u = {0.0005}, int32 p = {0}> {
  q = QuantizeLinear (x, s, z)
  d = DequantizeLinear (q, s, z)
  k = DequantizeLinear (w, t, o)
  c = DequantizeLinear (b, u, p)
  v = Conv <kernel_shape = [3, 3]> (d, k, c)
  r = Relu (v)
  e = QuantizeLinear (r, s, z)
  y = DequantizeLinear (e, s, z)
}''', ({"N": 2},), weights={"w": ("int8", 4, 3, 3, 3), "b": ("int32", 4)}),
    "convolution and norm": Text('''
g (float[N,3,H,W] x) => (float[N,4] y) {
  c = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
  n = BatchNormalization (c, s, b, m, v)
  r = Relu (n)
  a = GlobalAveragePool (r)
  y = Flatten (a)
}''', ({"N": 2, "H": 5, "W": 4},), weights={
    "w": ("float32", 4, 3, 3, 3), **{name: ("float32", 4) for name in "sbmv"}}),
    "transposed convolution and norms": Text('''
g (float[N,3,4,4] x) => (float[N,4,6,6] y) {
  n = BatchNormalization (x, s, b, m, v)
  r = Relu (n)
  c = ConvTranspose <kernel_shape = [3, 3]> (r, w)
  y = BatchNormalization (c, p, q, h, k)
}''', ({"N": 2},), weights={
    "w": ("float32", 3, 4, 3, 3), **{name: ("float32", 3) for name in "sbmv"},
    **{name: ("float32", 4) for name in "pqhk"}}),
    "recurrent": Text('''
g (float[T,B,3] x, float[1,16,3] w, float[1,16,4] r) => (float[T,B,4] y, float[1,B,4] c) {
  h, last, c = LSTM <hidden_size = 4> (x, w, r)
  one = Constant <value = int64[1] {1}> ()
  y = Squeeze (h, one)
}''', B_AND_T),
    "a branch and a loop": Text('''
g (float[N] x, bool p) => (float[N] y) {
  z = If (p) <then_branch = yes () => (float[N] a) { a = Exp (x) },
              else_branch = no () => (float[N] b) { b = Neg (x) }>
  n = Constant <value = int64 {3}> ()
  t = Constant <value = bool {1}> ()
  y = Loop (n, t, z) <body = step (int64 i, bool c, float[N] u) => (bool d, float[N] v) {
    d = Identity (c)
    v = Mul (u, x)
  }>
}''', ({"N": 4},)),
    "opset 11": Text('''
g (float[B,4,6] x) => (float[B,4] y, float[B,2,6] a, float[B,2,8] e) {
  m = ReduceMean <axes = [2], keepdims = 0> (x)
  u = Unsqueeze <axes = [0]> (m)
  y = Squeeze <axes = [0]> (u)
  a, b = Split <axis = 1, split = [2, 2]> (x)
  p = Constant <value = int64[6] {0, 0, 1, 0, 0, 1}> ()
  e = Pad <mode = "reflect"> (b, p)
}''', ({"B": 2},), opset=11),
    "interpolated": Text('''
g (float[N,2,H,W] x) => (float[N,2,I,J] y, float[N,2,8,8] z) {
  s = Constant <value = float[4] {1.0, 1.0, 2.0, 2.0}> ()
  y = Resize <mode = "linear"> (x, , s)
  t = Constant <value = int64[4] {1, 2, 8, 8}> ()
  z = Resize <mode = "nearest"> (x, , , t)
}''', ({"N": 1, "H": 3, "W": 4},)),
    "random": Text('''
g (float[N,4] x) => (float[N,4] y) {
  r = RandomNormalLike (x)
  y = Add (x, r)
}''', ({"N": 2},), random=True),
    "contributed": Text('''
g (float[B,T,8] x, float[B,T,8] s, float[8] g, float[8] b) => (float[B,T,8] y, float[B,T,8] z) {
  y = com.microsoft.SkipLayerNormalization <epsilon = 1.0e-5> (x, s, g, b)
  z = com.microsoft.FastGelu (y)
}''', B_AND_T),
}


def _torch(make: Callable[[], Any], x: Any, axes: Mapping[str, Any]) -> ModelProto:
    """A model of torch, as torch.onnx writes it with these open dims of its input x."""
    import torch
    torch.manual_seed(0)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(make().eval(), (x,), file, dynamo=False, dynamic_axes=axes,
                          input_names=["x"], opset_version=17)
    return onnx.load_from_string(file.getvalue())


def exported() -> dict[str, Callable[[], ModelProto]]:
    """Models that torch exports: an encoder and a decoder with open batch and length, a network of
    images, a recurrent one."""
    import torch

    from benchmarks.models import open_nets as nets
    words = {"x": {0: "B", 1: "T"}}
    ids = partial(torch.randint, 100, (2, 5))
    return {
        "encoder": lambda: _torch(lambda: nets.Encoder(64, 2, 100), ids(), words),
        "decoder": lambda: _torch(lambda: nets.Language(64, 2, 100), ids(), words),
        "lstm": lambda: _torch(lambda: torch.nn.LSTM(8, 16, 2, batch_first=True),
                               torch.randn(2, 5, 8), words),
        "images": lambda: _torch(_images, torch.randn(2, 3, 16, 16), {"x": {0: "B"}}),
    }


def _images() -> Any:
    """A small residual network with norms, as classifiers of images have."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
                                   nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x + self.a(x))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Block(), Block(), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, 10), nn.Softmax(1))
