"""Helpers that the op files share: broadcasting, axes, literals, and short ways to declare an
op."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.errors import TypeMismatch, Undecided
from graphtool.ir.facets import Trait
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.ir.rounded_once import rounded_once
from graphtool.ir.trace import Builder, like
from graphtool.loops.pull import Pull, const
from graphtool.symbolic import Dim, known, product, text

Array = np.ndarray[Any, Any]


def fail(message: str) -> TypeMismatch:
    """A TypeMismatch GT0412 with this message, for the caller to raise."""
    return TypeMismatch("GT0412", message)


def undecided(pairs: Sequence[tuple[Dim, Dim]]) -> Undecided:
    """The error for sizes that may be equal or not, for the caller to raise."""
    a, b = pairs[0]
    return Undecided("GT0412", f"cannot tell whether the dimensions {text(a)} and {text(b)} are "
                               "equal", pairs)


def equal_dims(a: Sequence[Dim], b: Sequence[Dim], message: str) -> None:
    """Raises TypeMismatch GT0412 with this message unless the sizes are equal, one by one.

    It is Undecided, with these sizes, where some are equal for some inputs only.
    """
    if len(a) != len(b) or any(known(x, "==", y) is False for x, y in zip(a, b, strict=True)):
        raise fail(message)
    if pairs := [(x, y) for x, y in zip(a, b, strict=True) if x != y]:
        raise undecided(pairs)


def equal_types(got: TensorType, want: TensorType, message: str) -> None:
    """Raises TypeMismatch GT0412 with this message unless element types and sizes are equal."""
    need(got.dtype is want.dtype, message)
    equal_dims(got.shape, want.shape, message)


def broadcast_dims(a: Dim, b: Dim) -> Dim:
    """NumPy's rule for one dimension pair. Raises TypeMismatch where they do not fit."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    equal_dims((a,), (b,), f"dimensions {text(a)} and {text(b)} do not broadcast")
    return a


def broadcast_shapes(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """The shape that these shapes broadcast to; axes are aligned at the end, as in numpy."""
    rank = max(map(len, shapes))
    out: list[Dim] = [1] * rank
    pairs: list[tuple[Dim, Dim]] = []
    for s in shapes:
        for i, d in enumerate(s, rank - len(s)):
            if d != 1 and out[i] != 1 and known(d, "==", out[i]) is None:
                pairs.append((out[i], d))
            else:
                out[i] = broadcast_dims(out[i], d)
    if pairs:
        raise undecided(pairs)
    return tuple(out)


def check_axis(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises TypeMismatch when it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise fail(f"axis {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def need(condition: bool, message: str) -> None:
    """Raises TypeMismatch GT0412 with this message unless the condition is true."""
    if not condition:
        raise fail(message)


def tensors(xs: tuple[Any, ...]) -> list[TensorType]:
    """The types of the operands that are tensors; literals and omitted operands are left out."""
    return [x for x in xs if isinstance(x, TensorType)]


def is_literal(x: Any) -> bool:
    """Whether x is a Python number or boolean."""
    return isinstance(x, (bool, int, float))


def literal_fits(x: Any, dtype: DType) -> bool:
    """Whether x is a literal for this dtype: bool for bool, integers in range for integers, any
    number for floats."""
    if isinstance(x, bool) or dtype is dtypes.string:
        return isinstance(x, bool) and dtype is dtypes.bool_
    return dtype.is_float or (
        isinstance(x, int) and dtype.is_integer and dtype.low <= x <= dtype.high)


def as_array(x: Any, dtype: np.dtype) -> Any:
    """A literal as a numpy array of type `dtype`; anything else unchanged."""
    return np.asarray(x, dtype) if is_literal(x) else x


def in_float32(fn: Callable[..., Array]) -> Callable[..., Array]:
    """An `eval` that computes narrow floats in float32, as numpy's functions do not, and rounds the
    result once."""
    def run(x: Array, *rest: Any, **attrs: Any) -> Array:
        row = dtypes.of_numpy(x.dtype)
        if not row.is_narrow:
            return fn(x, *rest, **attrs)
        return fn(x.astype(row.computes.numpy), *rest, **attrs).astype(x.dtype, copy=False)
    return run


def as_pull(x: Any, dtype: DType) -> Pull:
    """A literal as a rank-0 pull of the given type."""
    return x if isinstance(x, Pull) else Pull(dtype, (), lambda _: const(x, dtype))


@overload
def composite(fn: Callable[..., Any]) -> Op:
    """The composite op that `fn` computes: for the decorator without arguments."""
@overload
def composite(fn: None = None, *, category: str = "compute",
              types: Callable[..., Any] | None = None,
              **facets: Any) -> Callable[[Callable[..., Any]], Op]:
    """A decorator that declares a composite op with these further fields."""
def composite(fn: Callable[..., Any] | None = None, *, category: str = "compute",
              types: Callable[..., Any] | None = None, **facets: Any) -> Any:
    """Declare a composite: one function over other ops, which is its meaning and decomposition.

    The function's signature is the schema. Its infer runs the function on abstract tensors, so no
    shape rule is written twice. Ops that large graphs use often also give `types(*types, **attrs)`,
    which states the result directly and is faster. `facets` are further fields of Op (eval, vjp,
    traits, …).
    """
    if fn is None:
        return lambda f: _composite(f, category, types, facets)
    return _composite(fn, category, types, facets)


def _composite(fn: Callable[..., Any], category: str, types: Callable[..., Any] | None,
               facets: dict[str, Any]) -> Op:
    facets["infer"] = _with_schema(fn, types or _infer_by_tracing(fn))
    traits = facets.pop("traits", Trait.NONE) | Trait.COMPOSITE
    return register(Op(fn.__name__, decompose=rounded_once(fn), category=category, traits=traits,
                       doc=inspect.getdoc(fn) or "", **facets))


def _with_schema(fn: Callable[..., Any], types: Callable[..., Any]) -> Callable[..., Any]:
    def infer(*operands: Any, **attrs: Any) -> Any:
        return types(*operands, **attrs)
    infer.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    infer.__annotations__ = fn.__annotations__
    infer.__wrapped__ = fn  # type: ignore[attr-defined]
    return infer


def _infer_by_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    def infer(*types: Any, **attrs: Any) -> Any:
        builder = Builder()
        args = [builder.input(t, "x") if isinstance(t, TensorType) else t for t in types]
        out = fn(*args, **attrs)
        return tuple(t.type for t in out) if isinstance(out, tuple) else out.type
    return infer


def like_first(x: Any, *_: Any, **__: Any) -> TensorType:
    """The result type of most activations: that of the first operand, which must be float."""
    need(isinstance(x, TensorType), "the first operand must be a tensor")
    need(x.dtype.is_float, f"is not defined on {x.dtype.short}")
    return x  # type: ignore[no-any-return]


def count(x: Any, axes: tuple[int, ...]) -> Any:
    """The product of the sizes of x along the axes: a literal, or a scalar if a size is
    symbolic."""
    n = product(x.shape[a] for a in axes)
    if isinstance(n, int):
        return float(n) if x.dtype.is_float else n
    return like(x, o.dim, of=n, dtype=x.dtype)


def filled(x: Any, value: float, shape: tuple[Dim, ...], dtype: Any = None) -> Any:
    """A constant of one value in the graph of the traced x."""
    one = np.full((1,) * len(shape), value, (dtype or x.dtype).numpy)
    return o.broadcast(x.builder.constant(one), shape=shape)


def took(x: Any, y: Any) -> Any:
    """Where a maximum (or minimum) y equals the element x, or both are NaN."""
    return o.or_(o.eq(x, y), o.is_nan(x))


def iota_like(x: Any, shape: tuple[Dim, ...], axis: int) -> Any:
    """0, 1, 2, … along an axis, in int64, in the graph of the traced x."""
    return like(x, o.iota, shape=shape, axis=axis, dtype=dtypes.int64)
