"""Elementwise ops and activations: by the table of names; forms for the ops that it lacks.

onnxruntime computes some operators in a few element types only. Integers of other types are cast
to a wider type and back; the cast back wraps, as arithmetic in the narrow type does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.dtypes import DType
from graphtool.exporters.onnx.kit import Node, Ref, dtypes, form, o, takes
from graphtool.exporters.onnx.registry import named
from graphtool.exporters.onnx.writer import Writer, element_type
from graphtool.front.names import written

# the integers that onnxruntime's kernels compute in, where they are not all
_KERNELS = {op: frozenset(types.split()) for op, types in {
    "Where": "i32 i64 i8 u32 u8", "Pow": "i32 i64", "Max": "i32 i64 i8 u32 u64 u8",
    "Min": "i32 i64 i8 u32 u64 u8", "Clip": "i32 i64 i8 u32 u64 u8", "ReduceSum": "i32 i64",
    "ReduceProd": "i32 i64", "ReduceMean": "i32 i64", "ReduceMax": "i32 i64 i8 u8",
    "ReduceMin": "i32 i64 i8 u8", "ArgMax": "i32 i64 i8 u8", "ArgMin": "i32 i64 i8 u8",
    "CumSum": "i32 i64", "CumProd": "i32 i64 u32 u64", "TopK": "i32 i64 i16 i8 u8",
    "BitShift": "u32 u64 u8", "MatMul": "i32 i64 u32 u64", "MaxPool": "i8 u8",
    "Relu": "i32 i8", "Pad": "i32 i64 i8 u32 u64 u8", "Neg": "i64 i32 i16 i8",
    "Range": "i32 i64 i16"}.items()}
_AS_INT32 = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Max", "Min"})
_WRAPS = frozenset({"ReduceSum", "ReduceProd", "CumSum", "Where", "MatMul", "Pow"})


def cast(w: Writer, x: Any, to: DType, saturate: bool = True) -> str:
    """The name of x cast to `to`; `saturate` matters for floats of 8 bits only."""
    narrow = to.is_float and to.bits <= 8
    return str(w("Cast", x, to=element_type(to), saturate=int(saturate) if narrow else None))


def wider(op: str, dtype: DType) -> DType | None:
    """The wider type in which onnxruntime has a kernel of `op`; None if no cast is needed."""
    known = _KERNELS.get(op)
    if known is None or not (dtype.is_integer or dtype is dtypes.bool_) or dtype.short in known:
        return None
    for row in (dtypes.int32, dtypes.uint32, dtypes.int64):
        fits = row.bits > dtype.bits or dtype is dtypes.bool_ or op in _WRAPS
        if row.short in known and fits and row.bits >= min(dtype.bits, 64):
            return row
    return None


def computed(w: Writer, op: str, dtype: DType, xs: list[Any], *more: str, **attrs: Any) -> str:
    """One node on operands of `dtype`, with casts to a wider type and back if onnxruntime needs
    them; `more` are inputs of other types."""
    wide = wider(op, dtype)
    if wide is None:
        return str(w(op, *xs, *more, **attrs))
    y = w(op, *(cast(w, x, wide) if x else x for x in xs), *more, **attrs)
    return cast(w, y, dtype)


def operands(w: Writer, xs: tuple[Any, ...]) -> tuple[DType, list[str]]:
    """(element type of the tensors, names of all operands); literals become constants."""
    dtype = next(x.type.dtype for x in xs if isinstance(x, Ref))
    return dtype, [x.name if isinstance(x, Ref) else w.array(np.asarray(x, dtype.numpy))
                   for x in xs]


@form(*written("onnx"))
def by_name(w: Writer, node: Node, *xs: Any) -> str:
    """The operator that the table of names has, with our attributes under ONNX's names.

    Declined in float64 for ops that can be decomposed. Bools are compared as int32.
    """
    dtype, names = operands(w, xs)
    there = named(node.op.name, dtype)
    takes(dtype is not dtypes.float64 or node.op.decompose is None)
    op, attrs = there.name, there.theirs(node.attrs)
    takes(op != "Celu" or dtype is dtypes.float32)
    if dtype is dtypes.bool_ and op in _AS_INT32:  # false < true
        y = str(w(op, *(cast(w, x, dtypes.int32) for x in names)))
        return cast(w, y, dtype) if op in ("Max", "Min") else y
    return computed(w, op, dtype, names, **attrs)


@form("ne")
def unequal(w: Writer, node: Node, *xs: Any) -> str:
    """Not(Equal(a, b))."""
    return str(w("Not", w("Equal", *operands(w, xs)[1])))


@form("neg")
def negative(w: Writer, node: Node, x: Ref) -> str:
    """Neg; 0 − x of unsigned integers."""
    if x.type.dtype.kind == "uint":
        return str(w("Sub", w.array(np.zeros((), x.type.dtype.numpy)), x))
    return str(w("Neg", x))


@form("erfc")
def complement(w: Writer, node: Node, x: Ref) -> str:
    """1 − Erf(x)."""
    return str(w("Sub", w.array(np.ones((), x.type.dtype.numpy)), w("Erf", x)))


@form("rem")
def remainder(w: Writer, node: Node, *xs: Any) -> str:
    """Mod with fmod=1: the sign of the result is that of a."""
    return str(w("Mod", *operands(w, xs)[1], fmod=1))


@form("mod")
def modulus(w: Writer, node: Node, *xs: Any) -> Any:
    """Mod of integers, by the sign of b; of floats restated in Mod with fmod=1."""
    dtype, names = operands(w, xs)
    if dtype.is_integer:
        return w("Mod", *names)
    return w.restate(_float_mod, xs)


def _float_mod(a: Any, b: Any) -> Any:
    """mod from rem: the remainder plus the divisor, if their signs differ."""
    r = o.rem(a, b)
    below = o.lt(b, 0.0) if hasattr(b, "dtype") else b < 0
    wrong = o.xor(o.lt(r, 0.0), below) if hasattr(b, "dtype") or below else o.lt(r, 0.0)
    if not hasattr(b, "dtype") and below:
        wrong = o.gt(r, 0.0)
    return o.select(o.and_(wrong, o.ne(r, 0.0)), o.add(r, b), r)


@form("shift_left", "shift_right")
def shift(w: Writer, node: Node, a: Any, b: Any) -> Any:
    """BitShift, which is unsigned only, between casts; a negative a shifts right as ~(~a >> b)."""
    dtype, names = operands(w, (a, b))
    way = "LEFT" if node.op.name == "shift_left" else "RIGHT"
    if dtype.kind == "uint":
        return computed(w, "BitShift", dtype, names, direction=way)
    unsigned = dtypes.BY_NAME[f"u{dtype.name}"]
    x = names[0]
    if way == "RIGHT":
        below = w("Less", x, w.array(np.zeros((), dtype.numpy)))
        mask = w("Neg", cast(w, below, dtype))  # all ones where negative
        x = w("BitwiseXor", x, mask)
    y = computed(w, "BitShift", unsigned, [cast(w, x, unsigned), cast(w, names[1], unsigned)],
                 direction=way)
    y = cast(w, y, dtype)
    return w("BitwiseXor", y, mask) if way == "RIGHT" else y


@form("relu")
def relu(w: Writer, node: Node, x: Ref) -> Any:
    """Relu; declined for unsigned integers."""
    takes(x.type.dtype.kind != "uint")
    return computed(w, "Relu", x.type.dtype, [x])


@form("softplus")
def softplus(w: Writer, node: Node, x: Ref) -> Any:
    """Softplus; declined for β ≠ 1 or a threshold below 20."""
    takes(node.attrs["beta"] == 1.0 and node.attrs["threshold"] >= 20.0)
    takes(x.type.dtype is not dtypes.float64)
    return w("Softplus", x)


@form("prelu")
def prelu(w: Writer, node: Node, x: Ref, slope: Ref) -> Any:
    """PRelu; declined if the slope broadcasts x."""
    takes(node.outputs[0].type == x.type)
    return w("PRelu", x, slope)


@form("select")
def select(w: Writer, node: Node, cond: Any, a: Any, b: Any) -> Any:
    """Where; of bools (c and a) or (not c and b)."""
    dtype, (yes, no) = operands(w, (a, b))
    if dtype is dtypes.bool_:
        return w("Or", w("And", cond, yes), w("And", w("Not", cond), no))
    wide = wider("Where", dtype)
    if wide is None:
        return w("Where", cond, yes, no)
    return cast(w, w("Where", cond, cast(w, yes, wide), cast(w, no, wide)), dtype)


@form("clamp")
def clamp(w: Writer, node: Node, x: Ref, lo: Any, hi: Any) -> Any:
    """Clip by scalar bounds; Max and Min by tensors."""
    dtype = x.type.dtype
    low, high = (None if v is None else operands(w, (x, v))[1][1] for v in (lo, hi))
    if not any(isinstance(v, Ref) and v.shape for v in (lo, hi)):
        return computed(w, "Clip", dtype, [x, low, high])
    y: Any = x if low is None else computed(w, "Max", dtype, [x, low])
    return y if high is None else computed(w, "Min", dtype, [y, high])


@form("cast")
def to_type(w: Writer, node: Node, x: Ref) -> str:
    """Cast; before a cast to a short integer, floats are clamped: ONNX does not define the rest."""
    to = node.attrs["dtype"]
    y: Any = x
    if x.type.dtype.is_float and to.is_integer and to.bits <= 16 and x.type.dtype.bits >= 16:
        edges = (w.array(np.asarray(e, x.type.dtype.numpy)) for e in (to.low, to.high))
        y = w("Clip", x, *edges)
    return cast(w, y, to, node.attrs["saturate"])


@form("bitcast")
def bitcast(w: Writer, node: Node, x: Ref) -> Any:
    """BitCast to the element type."""
    return w("BitCast", x, to=element_type(node.attrs["dtype"]))


# ---- what ONNX lacks, in its other operators ----------------------------------------------------

@form("log1p")
def log1p(w: Writer, node: Node, x: Ref) -> Any:
    """log(u)·x/(u − 1) with u = 1 + x: the rounding of u cancels (Kahan)."""
    def fn(x: Any) -> Any:
        u = x + 1.0
        plain = o.or_(o.eq(u, 1.0), o.eq(u, np.inf))
        return o.select(plain, x, o.log(u) * (x / (o.select(plain, 2.0, u) - 1.0)))
    return w.restate(fn, [x])


@form("expm1")
def expm1(w: Writer, node: Node, x: Ref) -> Any:
    """(u − 1)·x/log(u) with u = eˣ; u − 1 if u is far from 1, x if u is 1."""
    def fn(x: Any) -> Any:
        u = o.exp(x)
        less = u - 1.0
        far = o.or_(o.le(u, 1e-3), o.ge(u, 1e3))
        near = less * (x / o.log(o.select(o.or_(far, o.eq(u, 1.0)), 2.0, u)))
        return o.select(far, less, o.select(o.eq(u, 1.0), x, near))
    return w.restate(fn, [x])


@form("atan2")
def atan2(w: Writer, node: Node, a: Any, b: Any) -> Any:
    """atan(a/b), plus or minus π if b < 0, by the sign of a."""
    def fn(a: Any, b: Any) -> Any:
        near = o.atan(a / b)
        turned = o.select(o.lt(a, 0.0), near - np.pi, near + np.pi)
        return o.select(o.and_(o.eq(a, 0.0), o.eq(b, 0.0)), a, o.select(o.lt(b, 0.0), turned, near))
    return w.restate(fn, [a, b])
