"""What the op files share: broadcasting, axes, literals, and the short forms of declaration."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.errors import TypeMismatch
from graphtool.ir.graph import TensorType
from graphtool.ir.op import Op, register
from graphtool.loops.pull import Pull, const
from graphtool.symbolic import Dim, known, text

Array = np.ndarray[Any, Any]


def fail(message: str) -> TypeMismatch:
    return TypeMismatch("GT0412", message)


def same_dim(a: Dim, b: Dim) -> bool:
    """Whether two dims are equal; raises GT0310 where the bounds do not decide."""
    return a == b


def broadcast_dims(a: Dim, b: Dim) -> Dim:
    """NumPy's rule for one dimension pair. Raises TypeMismatch where they do not fit."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if known(a, "==", b) is None:
        raise fail(f"cannot tell whether the dimensions {text(a)} and {text(b)} are equal")
    raise fail(f"dimensions {text(a)} and {text(b)} do not broadcast")


def broadcast_shapes(*shapes: tuple[Dim, ...]) -> tuple[Dim, ...]:
    rank = max(map(len, shapes))
    out: tuple[Dim, ...] = (1,) * rank
    for s in shapes:
        padded = (1,) * (rank - len(s)) + tuple(s)
        out = tuple(broadcast_dims(a, b) for a, b in zip(out, padded, strict=True))
    return out


def check_axis(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises TypeMismatch when it is out of range."""
    if not -rank <= axis < max(rank, 1):
        raise fail(f"axis {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def need(condition: bool, message: str) -> None:
    if not condition:
        raise fail(message)


def tensors(xs: tuple[Any, ...]) -> list[TensorType]:
    return [x for x in xs if isinstance(x, TensorType)]


def is_literal(x: Any) -> bool:
    return isinstance(x, (bool, int, float))


def literal_fits(x: Any, dtype: DType) -> bool:
    """bool literals go with bool, ints with any number, floats with floats."""
    if isinstance(x, bool):
        return dtype is dtypes.bool_
    return dtype.is_float or (isinstance(x, int) and dtype is not dtypes.bool_)


def as_array(x: Any, dtype: np.dtype) -> Any:
    return np.asarray(x, dtype) if is_literal(x) else x


def as_pull(x: Any, dtype: DType) -> Pull:
    """A literal as a rank-0 pull of the given type."""
    return x if isinstance(x, Pull) else Pull(dtype, (), lambda _: const(x, dtype))


def composite(fn: Callable[..., Any] | None = None, *, category: str = "compute",
              **facets: Any) -> Any:
    """Declare a composite: one function over other ops, which is its meaning and decomposition.

    Its infer runs the function on abstract tensors, so the signature is the schema and no shape
    rule is written twice. `facets` are further fields of Op (eval, vjp, traits, infer, …).
    """
    if fn is None:
        return lambda f: composite(f, category=category, **facets)
    facets.setdefault("infer", _infer_by_tracing(fn))
    traits = frozenset(facets.pop("traits", ())) | {"composite"}
    return register(Op(fn.__name__, decompose=fn, category=category, traits=traits,
                       doc=inspect.getdoc(fn) or "", **facets))


def _infer_by_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    def infer(*types: Any, **attrs: Any) -> Any:
        from graphtool.ir.trace import Builder
        builder = Builder()
        args = [builder.input(t, "x") if isinstance(t, TensorType) else t for t in types]
        out = fn(*args, **attrs)
        return tuple(o.type for o in out) if isinstance(out, tuple) else out.type
    infer.__signature__ = inspect.signature(fn)  # type: ignore[attr-defined]
    infer.__annotations__ = fn.__annotations__
    infer.__wrapped__ = fn  # type: ignore[attr-defined]
    return infer
