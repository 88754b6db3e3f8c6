"""Rows of operators that work element by element, of casts and of quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from tests.lab.fuzz.growing import DTYPES, Growing, Known
from tests.lab.fuzz.table import kinds, need, op

UNARY = {
    **kinds("Ceil Floor Sqrt Exp Log Sin Cos Sigmoid Tanh Reciprocal IsNaN", "f"),
    **kinds("Softplus Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Relu", "F"), "Round": "D",
    **kinds("Erf Selu Softsign Mish HardSwish", "F"),
    **kinds("Abs Sign Identity", "n"), **kinds("Neg", "n"), "IsInf": "D", "Not": "b",
    "BitwiseNot": "w"}


@op(*UNARY)
def unary(g: Growing, op: str) -> None:
    """The operators of one operand without attributes."""
    g.add(op, [g.take(UNARY[op])])


ALPHA: dict[str, dict[str, tuple[float, ...]]] = {
    "LeakyRelu": {"alpha": (0.01, 0.3, -0.5)}, "Elu": {"alpha": (1.0, 0.3)},
    "Celu": {"alpha": (1.0, 0.7, 2.0)}, "HardSigmoid": {"alpha": (0.2, 0.5), "beta": (0.5, 0.1)},
    "ThresholdedRelu": {"alpha": (1.0, 0.0, 0.4)},
    "Shrink": {"lambd": (0.5, 1.0), "bias": (0.0, 0.5)}}


@op(*ALPHA)
def with_alpha(g: Growing, op: str) -> None:
    """The activations with numbers as attributes."""
    how: dict[str, Any] = {k: g.rng.choice(v) for k, v in ALPHA[op].items() if g.coin()}
    g.add(op, [g.take("F")], **how)


@op("Gelu")
def gelu(g: Growing) -> None:
    """Gelu, exact or by tanh."""
    g.add("Gelu", [g.take("F")], approximate=g.rng.choice(("none", "tanh")))


@op("QuickGelu", "FastGelu")
def contrib(g: Growing, op: str) -> None:
    """The activations of com.microsoft."""
    g.add(op, [g.take("F", 1)], domain="com.microsoft")


BINARY = {**kinds("Add Sub Mul Max Min Equal Greater GreaterOrEqual Less LessOrEqual", "n"),
          "PRelu": "F", **kinds("And Or Xor", "b"), **kinds("BitwiseAnd BitwiseOr BitwiseXor", "w")}


@op(*BINARY)
def binary(g: Growing, op: str) -> None:
    """The operators of two operands that broadcast."""
    x = g.take(BINARY[op])
    g.add(op, [x, g.along(x)] if op == "PRelu" or g.coin(0.8) else [g.along(x), x])


@op("Div", "Mod")
def divided(g: Growing, op: str) -> None:
    """Quotients; integers are divided by a constant without zeros and −1 (of the least number)."""
    x = g.take("n")
    if x.dtype.kind == "f":
        g.add(op, [x, g.along(x)], fmod=1 if op == "Mod" else None)
        return
    shape = x.sizes[1:] if g.coin() else x.sizes
    by = np.abs(g.array(x.dtype.name, shape) % 7) + 2
    need(np.isfinite(by).all())
    g.add(op, [x, g.const(by * (1 if g.coin() else -1), x.dtype)],
          fmod=g.rng.choice((None, 1)) if op == "Mod" else None)


@op("Pow")
def power(g: Growing) -> None:
    """Powers; integers by small constants, which overflow as they like."""
    x = g.take("n")
    if x.dtype.kind == "f":
        g.add("Pow", [x, g.along(x) if g.coin() else g.const(
            g.rng.choice((2, 3, 0.5, -1, 0, 1.5)), x.dtype)])
    else:
        g.add("Pow", [x, g.const(g.rng.choice((0, 1, 2, 3)), x.dtype)])


@op("BitShift")
def shift(g: Growing) -> None:
    """Shifts by fewer bits than there are."""
    x = g.take("u", 1)
    g.add("BitShift", [x, g.const(np.abs(g.array("int32", x.sizes).astype(np.int64)) % 8, x.dtype)],
          direction=g.rng.choice(("LEFT", "RIGHT")))


@op("Sum", "Mean")
def variadic(g: Growing, op: str) -> None:
    """One to four operands."""
    x = g.take("D" if op == "Sum" else "F")
    g.add(op, [x, *(g.along(x) for _ in range(g.rng.randrange(4)))])


@op("Where")
def where(g: Growing) -> None:
    """A choice that broadcasts."""
    x = g.take("n")
    g.add("Where", [g.take("b", shape=x.sizes if g.coin() else x.sizes[1:]), x, g.along(x)])


@op("Clip")
def clip(g: Growing) -> None:
    """Bounds from constants, either of which may be missing."""
    x = g.take("n")
    low = g.const(-2, x.dtype) if g.coin(0.8) else None
    g.add("Clip", [x, low, g.const(3, x.dtype)] if g.coin(0.8) else [x, low])


def tame(g: Growing, x: Known) -> Known:
    """`x` without NaN and in the range of every integer type."""
    low = g.const(0, x.dtype)
    bad = g.add("IsNaN", [x])[0]
    x = g.add("Where", [bad, low, x])[0]
    return g.add("Clip", [x, low, g.const(100, x.dtype)])[0]


@op("Cast", "CastLike")
def cast(g: Growing, op: str) -> None:
    """Casts from every type to every type; floats to integers in range only: the rest is
    undefined."""
    x, to = g.take("c"), np.dtype(g.rng.choice([d for d in DTYPES["c"] if d != "bfloat16"]))
    if x.dtype.kind not in "iub" and to.kind in "iu":
        need(x.dtype.name != "bfloat16")
        x = tame(g, x)
    if op == "Cast":
        g.add("Cast", [x], to=helper.np_dtype_to_tensor_dtype(to))
    else:
        g.add("CastLike", [x, g.const(g.array(to.name, (1,)))])


@op("QuantizeLinear")
def quantize(g: Growing) -> None:
    """Per tensor or per axis, to 8 or 16 bits."""
    x = g.take("F", 1)
    to = g.rng.choice((np.uint8, np.int8, np.uint16, np.int16))
    axis = g.axis(x) if g.coin() else None
    n = () if axis is None else (x.sizes[axis],)
    scale = np.nan_to_num(np.abs(g.array("float32", n))).clip(0.01, 2)
    zero = g.const(g.array("int32", n).clip(0, 9), to)
    g.add("QuantizeLinear", [x, g.const(scale, np.float32), zero], axis=axis)


@op("DequantizeLinear")
def dequantize(g: Growing) -> None:
    """Per tensor or per axis, with or without zero points."""
    x = g.take("B", 1)
    axis = g.axis(x) if g.coin() else None
    n = () if axis is None else (x.sizes[axis],)
    scale = g.const(np.nan_to_num(np.abs(g.array("float32", n))).clip(0.01, 2), np.float32)
    zero = [g.const(g.array("int32", n).clip(0, 9), x.dtype)] if g.coin() else []
    g.add("DequantizeLinear", [x, scale, *zero], axis=axis)


@op("DynamicQuantizeLinear")
def dynamic(g: Growing) -> None:
    """Scale and zero point from the values."""
    g.add("DynamicQuantizeLinear", [g.take("F", 1, least=1)], 3)


@op("Dropout")
def dropout(g: Growing) -> None:
    """Dropout of inference: the identity, perhaps with its mask."""
    g.add("Dropout", [g.take("D")], g.rng.choice((1, 2)))


@op("Constant")
def constant(g: Growing) -> Any:
    """A constant as a node."""
    from onnx import numpy_helper
    value = g.array(g.rng.choice(DTYPES["a"]), g.shape())
    return g.add("Constant", [], value=numpy_helper.from_array(value))
