"""Single operators at realistic sizes: one row is an ONNX node and the same function in torch.

A row without a torch function has only onnxruntime as a peer; a row without an ONNX op, as a
gradient or a graph's scatter, has only torch. Sizes are those of usual layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
OPSET = 22
ROWS = (64, 4096)  # elements of most elementwise rows: 1 MB of float32


@dataclass(frozen=True)
class Operand:
    """An input (drawn anew), or a constant that the model holds."""

    array: Array
    constant: bool = False


@dataclass(frozen=True)
class Operator:
    """`name` is unique; `op` an ONNX operator, "" where only torch has it."""

    name: str
    op: str
    operands: tuple[Operand | None, ...]
    torch: Callable[..., Any] | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1


def _random(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def x(*shape: int, scale: float = 1.0, add: float = 0.0) -> Operand:
    """Normal numbers, times `scale`, plus `add`."""
    return Operand(_random(shape) * np.float32(scale) + np.float32(add))


def unit(*shape: int) -> Operand:
    """Numbers between 0 and 1, neither included."""
    return Operand(np.random.default_rng(3).uniform(0.01, 0.99, shape).astype(np.float32))


def w(*shape: int) -> Operand:
    """A weight, scaled by its fan-in."""
    fan = int(np.prod(shape[1:])) or 1
    return Operand(_random(shape) / np.float32(fan ** 0.5), True)


def c(value: Any, dtype: Any = np.int64) -> Operand:
    return Operand(np.asarray(value, dtype), True)


def integers(most: int, *shape: int, dtype: Any = np.int64) -> Operand:
    """Integers from 0 to `most`, which is not included."""
    return Operand(np.random.default_rng(5).integers(0, most, shape).astype(dtype))


def truths(*shape: int) -> Operand:
    return Operand(_random(shape) > 0)


def _unary(op: str, fn: Callable[..., Any] | None, operand: Operand | None = None,
           **attributes: Any) -> Operator:
    return Operator(op, op, (operand or x(*ROWS),), fn, attributes)


def elementwise() -> list[Operator]:
    import torch as t
    from torch.nn import functional as f
    positive, big = unit(*ROWS), x(*ROWS, add=3.0)
    return [
        _unary("Abs", t.abs), _unary("Neg", t.neg), _unary("Floor", t.floor),
        _unary("Ceil", t.ceil), _unary("Round", t.round), _unary("Sign", t.sign),
        _unary("Relu", f.relu), _unary("LeakyRelu", lambda a: f.leaky_relu(a, 0.01)),
        _unary("Elu", f.elu), _unary("Selu", f.selu), _unary("Celu", f.celu),
        _unary("Gelu", f.gelu), _unary("Mish", f.mish), _unary("Softplus", f.softplus),
        _unary("Softsign", f.softsign), _unary("HardSigmoid", f.hardsigmoid, alpha=1 / 6),
        _unary("HardSwish", f.hardswish), _unary("Sigmoid", t.sigmoid), _unary("Tanh", t.tanh),
        _unary("Erf", t.erf), _unary("Exp", t.exp), _unary("Log", t.log, positive),
        _unary("Sqrt", t.sqrt, positive), _unary("Reciprocal", t.reciprocal, positive),
        _unary("Sin", t.sin), _unary("Cos", t.cos), _unary("Tan", t.tan),
        _unary("Asin", t.asin, positive), _unary("Acos", t.acos, positive),
        _unary("Atan", t.atan), _unary("Sinh", t.sinh), _unary("Cosh", t.cosh),
        _unary("Asinh", t.asinh), _unary("Acosh", t.acosh, Operand(np.abs(big.array) + 1)),
        _unary("Atanh", t.atanh, positive), _unary("IsNaN", t.isnan),
        _unary("Not", t.logical_not, truths(*ROWS)),
        _unary("ThresholdedRelu", lambda a: f.threshold(a, 1.0, 0.0)),
        Operator("Clip", "Clip", (x(*ROWS), c(-1, np.float32), c(1, np.float32)),
                 lambda a, *_: t.clamp(a, -1, 1)),
        Operator("PRelu", "PRelu", (x(8, 64, 32, 32), c(_random((64, 1, 1)), np.float32)),
                 lambda a, s: f.prelu(a, s.flatten())),
        Operator("Add", "Add", (x(*ROWS), x(*ROWS)), t.add),
        Operator("Add row", "Add", (x(*ROWS), x(ROWS[1])), t.add),
        Operator("Add column", "Add", (x(*ROWS), x(ROWS[0], 1)), t.add),
        Operator("Sub", "Sub", (x(*ROWS), x(*ROWS)), t.sub),
        Operator("Mul channel", "Mul", (x(8, 64, 32, 32), x(64, 1, 1)), t.mul),
        Operator("Div", "Div", (x(*ROWS), big), t.div),
        Operator("Pow", "Pow", (positive, x(*ROWS)), t.pow),
        Operator("Max", "Max", (x(*ROWS), x(*ROWS, add=0.1)), t.maximum),
        Operator("Mod", "Mod", (x(*ROWS, scale=10), big), t.fmod, {"fmod": 1}),
        Operator("Mod int", "Mod", (integers(1000, *ROWS), c(7)), lambda a, b: t.remainder(a, 7)),
        Operator("Equal", "Equal", (integers(4, *ROWS), integers(5, *ROWS)), t.eq),
        Operator("Less", "Less", (x(*ROWS), big), t.lt),
        Operator("And", "And", (truths(*ROWS), truths(*ROWS)), t.logical_and),
        Operator("Where", "Where", (truths(*ROWS), x(*ROWS), big), t.where),
        Operator("Cast f16", "Cast", (x(*ROWS),), lambda a: a.half(), {"to": 10}),
        Operator("Cast i32", "Cast", (x(*ROWS),), lambda a: a.int(), {"to": 6}),
        Operator("QuantizeLinear", "QuantizeLinear",
                 (x(*ROWS), c(0.02, np.float32), c(3, np.uint8))),
        Operator("DequantizeLinear", "DequantizeLinear", (
            integers(255, *ROWS, dtype=np.uint8), c(0.02, np.float32), c(3, np.uint8))),
        Operator("DynamicQuantizeLinear", "DynamicQuantizeLinear", (x(*ROWS),), outputs=3),
    ]


def reductions() -> list[Operator]:
    import torch as t
    image = x(8, 64, 28, 28)
    return [
        Operator("ReduceSum last", "ReduceSum", (x(512, 768), c([1])),
                 lambda a, *_: a.sum(1, keepdim=True)),
        Operator("ReduceSum first", "ReduceSum", (x(512, 768), c([0])),
                 lambda a, *_: a.sum(0, keepdim=True)),
        Operator("ReduceMean middle", "ReduceMean", (x(8, 196, 384), c([1])),
                 lambda a, *_: a.mean(1, keepdim=True)),
        Operator("ReduceMean image", "ReduceMean", (image, c([2, 3])),
                 lambda a, *_: a.mean((2, 3), keepdim=True)),
        Operator("ReduceMax last", "ReduceMax", (x(512, 768), c([1])),
                 lambda a, *_: a.amax(1, keepdim=True)),
        Operator("ReduceProd", "ReduceProd", (x(512, 768), c([1])),
                 lambda a, *_: a.prod(1, keepdim=True)),
        Operator("ReduceL2", "ReduceL2", (x(512, 768), c([1])),
                 lambda a, *_: t.linalg.vector_norm(a, dim=1, keepdim=True)),
        Operator("ReduceLogSumExp", "ReduceLogSumExp", (x(512, 768), c([1])),
                 lambda a, *_: t.logsumexp(a, 1, keepdim=True)),
        Operator("ArgMax last", "ArgMax", (x(64, 1000),),
                 lambda a: a.argmax(1, keepdim=True), {"axis": 1}),
        Operator("ArgMax channel", "ArgMax", (x(1, 21, 128, 128),),
                 lambda a: a.argmax(1, keepdim=True), {"axis": 1}),
        Operator("CumSum row", "CumSum", (x(256, 2048), c(1)), lambda a, *_: a.cumsum(1)),
        Operator("CumSum column", "CumSum", (x(2048, 256), c(0)), lambda a, *_: a.cumsum(0)),
        Operator("TopK 5", "TopK", (x(64, 1000), c([5])), lambda a, *_: a.topk(5), outputs=2),
        Operator("TopK 50", "TopK", (x(64, 4096), c([50])), lambda a, *_: a.topk(50), outputs=2),
        Operator("Softmax last", "Softmax", (x(8, 12, 128, 128),), lambda a: a.softmax(-1)),
        Operator("Softmax channel", "Softmax", (x(1, 21, 128, 128),), lambda a: a.softmax(1),
                 {"axis": 1}),
        Operator("LogSoftmax", "LogSoftmax", (x(64, 8000),), lambda a: a.log_softmax(-1)),
    ]


def norms() -> list[Operator]:
    import torch as t
    from torch.nn import functional as f
    image, one = x(4, 64, 56, 56), unit(64)
    const = Operand(one.array, True)
    return [
        Operator("LayerNorm", "LayerNormalization", (x(8, 128, 768), w(768), w(768)),
                 lambda a, s, b: f.layer_norm(a, (768,), s, b), {"axis": -1}),
        Operator("RMSNorm", "RMSNormalization", (x(8, 128, 768), w(768)),
                 lambda a, s: f.rms_norm(a, (768,), s, 1e-5), {"axis": -1}),
        Operator("BatchNorm", "BatchNormalization", (image, const, const, const, const),
                 lambda a, s, b, m, v: f.batch_norm(a, m, v, s, b)),
        Operator("InstanceNorm", "InstanceNormalization", (image, const, const),
                 lambda a, s, b: f.instance_norm(a, weight=s, bias=b)),
        Operator("GroupNorm", "GroupNormalization", (image, const, const),
                 lambda a, s, b: f.group_norm(a, 8, s, b), {"num_groups": 8}),
        Operator("GroupNorm time", "GroupNormalization", (x(1, 512, 3000), w(512), w(512)),
                 lambda a, s, b: f.group_norm(a, 512, s, b), {"num_groups": 512}),
        Operator("LRN", "LRN", (x(1, 96, 27, 27),), lambda a: f.local_response_norm(a, 5),
                 {"size": 5}),
        Operator("LpNormalization", "LpNormalization", (x(512, 768),),
                 lambda a: f.normalize(a, dim=-1), {"axis": -1}),
        Operator("MeanVarianceNormalization", "MeanVarianceNormalization", (image,),
                 lambda a: (a - a.mean((0, 2, 3), keepdim=True)) / (
                     a.std((0, 2, 3), keepdim=True, unbiased=False) + 1e-9)),
        Operator("Dropout off", "Identity", (x(*ROWS),), t.clone),
    ]


def moves() -> list[Operator]:
    import torch as t
    from torch.nn import functional as f
    image = x(1, 64, 56, 56)
    grid = Operand(np.random.default_rng(7).uniform(-1, 1, (1, 64, 64, 2)).astype(np.float32))
    gather_rows = integers(1000, 512)
    lengths = Operand(np.arange(1, 33, dtype=np.int64) * 4)
    return [
        Operator("Transpose heads", "Transpose", (x(8, 128, 12, 64),),
                 lambda a: a.permute(0, 2, 1, 3).contiguous(), {"perm": [0, 2, 1, 3]}),
        Operator("Transpose matrix", "Transpose", (x(1024, 768),),
                 lambda a: a.t().contiguous(), {"perm": [1, 0]}),
        Operator("Transpose channels", "Transpose", (x(4, 64, 56, 56),),
                 lambda a: a.permute(0, 2, 3, 1).contiguous(), {"perm": [0, 2, 3, 1]}),
        Operator("Concat channel", "Concat", (image, image), lambda a, b: t.cat((a, b), 1),
                 {"axis": 1}),
        Operator("Concat last", "Concat", (x(512, 384), x(512, 384)),
                 lambda a, b: t.cat((a, b), 1), {"axis": 1}),
        Operator("Split", "Split", (x(512, 768),),
                 lambda a: [p.contiguous() for p in a.chunk(3, 1)],
                 {"axis": 1, "num_outputs": 3}, 3),
        Operator("Slice", "Slice", (x(512, 768), c([0, 64]), c([512, 704]), c([0, 1])),
                 lambda a, *_: a[:, 64:704].contiguous()),
        Operator("Slice step", "Slice", (x(512, 768), c([0]), c([768]), c([1]), c([2])),
                 lambda a, *_: a[:, ::2].contiguous()),
        Operator("Pad", "Pad", (image, c([0, 0, 1, 1, 0, 0, 1, 1])),
                 lambda a, *_: f.pad(a, (1, 1, 1, 1))),
        Operator("Pad reflect", "Pad", (image, c([0, 0, 3, 3, 0, 0, 3, 3])),
                 lambda a, *_: f.pad(a, (3, 3, 3, 3), mode="reflect"), {"mode": "reflect"}),
        Operator("Expand", "Expand", (x(64, 1, 64), c([64, 64, 64])),
                 lambda a, *_: a.expand(64, 64, 64).contiguous()),
        Operator("Tile", "Tile", (x(64, 256), c([4, 4])), lambda a, *_: a.repeat(4, 4)),
        Operator("Gather rows", "Gather", (x(1000, 768), gather_rows),
                 lambda a, i: a[i], {"axis": 0}),
        Operator("Gather columns", "Gather", (x(512, 768), integers(768, 256)),
                 lambda a, i: a.index_select(1, i), {"axis": 1}),
        Operator("GatherElements", "GatherElements", (x(512, 768), integers(768, 512, 256)),
                 lambda a, i: a.gather(1, i), {"axis": 1}),
        Operator("GatherElements first", "GatherElements", (x(512, 768), integers(512, 256, 768)),
                 lambda a, i: a.gather(0, i), {"axis": 0}),
        Operator("GatherND", "GatherND", (x(64, 64, 64), integers(64, 4096, 2)),
                 lambda a, i: a[i[:, 0], i[:, 1]]),
        Operator("ScatterElements", "ScatterElements",
                 (x(512, 768), integers(768, 512, 256), x(512, 256)),
                 lambda a, i, u: a.scatter(1, i, u), {"axis": 1}),
        Operator("ScatterElements add", "ScatterElements",
                 (x(512, 768), integers(512, 512, 768), x(512, 768)),
                 lambda a, i, u: a.scatter_add(0, i, u), {"axis": 0, "reduction": "add"}),
        Operator("ScatterND", "ScatterND", (x(1000, 256), integers(1000, 500, 1), x(500, 256)),
                 lambda a, i, u: a.index_put((i[:, 0],), u)),
        Operator("DepthToSpace", "DepthToSpace", (x(1, 64, 64, 64),),
                 lambda a: f.pixel_shuffle(a, 2), {"blocksize": 2, "mode": "CRD"}),
        Operator("SpaceToDepth", "SpaceToDepth", (x(1, 16, 128, 128),), None, {"blocksize": 2}),
        Operator("Resize nearest", "Resize", (image, None, c([1, 1, 2, 2], np.float32)),
                 lambda a, *_: f.interpolate(a, scale_factor=2),
                 {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}),
        Operator("Resize linear", "Resize", (image, None, c([1, 1, 2, 2], np.float32)),
                 lambda a, *_: f.interpolate(a, scale_factor=2, mode="bilinear"),
                 {"mode": "linear"}),
        Operator("Resize cubic", "Resize", (image, None, c([1, 1, 2, 2], np.float32)),
                 lambda a, *_: f.interpolate(a, scale_factor=2, mode="bicubic"),
                 {"mode": "cubic", "cubic_coeff_a": -0.75}),
        Operator("GridSample", "GridSample", (x(1, 32, 64, 64), grid),
                 lambda a, g: f.grid_sample(a, g, align_corners=False)),
        Operator("Trilu", "Trilu", (x(8, 256, 256),), t.tril, {"upper": 0}),
        Operator("OneHot", "OneHot", (integers(1000, 512), c(1000), c([0, 1], np.float32)),
                 lambda i, *_: f.one_hot(i, 1000).float()),
        Operator("ReverseSequence", "ReverseSequence", (x(128, 32, 64), lengths)),
    ]


def operators() -> list[Operator]:
    """All rows; needs torch."""
    from benchmarks.models.operators_products import convolutions, gradients, products
    return [*elementwise(), *reductions(), *norms(), *moves(), *products(), *convolutions(),
            *gradients()]
