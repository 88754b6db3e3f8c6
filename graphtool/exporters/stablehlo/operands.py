"""Operands of elementwise ops, as StableHLO repeats nothing by itself and has no literals; and
comparisons of scalars, with NaN as an order wants it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.exporters.forms import Ref
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import array, ints, tensor
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim

# ---- repetition, literals -----------------------------------------------------------------------

def repeated(w: Writer, x: Any, dtype: DType, shape: Sequence[Dim]) -> Ref:
    """A tensor or a literal of this element type as a tensor of this shape, by NumPy's rule."""
    shape = tuple(shape)
    if not isinstance(x, Ref):
        if all(isinstance(d, int) and d > 0 for d in shape):
            return w.number(x, dtype, [d for d in shape if isinstance(d, int)])
        return repeated(w, w.number(x, dtype), dtype, shape)
    return x if x.shape == shape else widened(w, x, shape)


def widened(w: Writer, x: Ref, shape: tuple[Dim, ...], node: Sequence[Dim] | None = None
            ) -> Ref:
    """A tensor as one of another shape, by NumPy's rule; `node` as the writer has it."""
    axes = range(len(shape) - len(x.shape), len(shape))
    to = TensorType(x.dtype, shape)
    if all(isinstance(d, int) for d in shape):
        return w("broadcast_in_dim", x, to=to, attrs=f", dims = {ints(axes)}", node=node)
    return placed(w, x, to, axes, node)


def placed(w: Writer, x: Ref, to: TensorType, axes: Sequence[int],
           node: Sequence[Dim] | None = None) -> Ref:
    """x repeated to an open shape; axis i of x is axis `axes[i]` of it. Which ones are repeated is
    told, since IREE asks for it."""
    same = [i for i, a in enumerate(axes) if x.shape[i] == to.shape[a]]
    other = [i for i in range(len(x.shape)) if i not in same]
    return w("dynamic_broadcast_in_dim", x, vector(w, to.shape), to=to, node=node, attrs=(
        f", dims = {ints(axes)} {{known_expanding_dimensions = {array(other)}, "
        f"known_nonexpanding_dimensions = {array(same)}}}"))


def scalar(w: Writer, x: Any, dtype: DType) -> Ref:
    """A literal as a constant of rank 0; a tensor as it is."""
    return x if isinstance(x, Ref) else w.number(x, dtype)


def dtype_of(operands: Sequence[Any]) -> DType:
    """The element type of the first operand that is a tensor."""
    return next(x.dtype for x in operands if isinstance(x, Ref))


# ---- comparisons of scalars ---------------------------------------------------------------------

def compared(w: Writer, sign: str, a: Ref, b: Ref, wish: str = "test") -> Ref:
    """`a SIGN b` element by element: EQ, NE, LT, LE, GT or GE."""
    kind = {"float": "FLOAT", "int": "SIGNED"}.get(a.dtype.kind, "UNSIGNED")
    to = TensorType(dtypes.bool_, a.shape)
    return w.put(f"stablehlo.compare {sign}, {a.name}, {b.name}, {kind} : ({tensor(a.type)}, "
                      f"{tensor(b.type)}) -> {tensor(to)}", to, wish)


def logical(w: Writer, op: str, *xs: Ref) -> Ref:
    """`and`, `or` or `not` of truth values."""
    return w(op, *xs, to=xs[0].type)


def before(w: Writer, sign: str, a: Ref, b: Ref, nan_first: bool) -> Ref:
    """Whether a stands before b in an order by LT or GT, with NaN at one end of it."""
    answer = compared(w, sign, a, b)
    if not a.dtype.is_float:
        return answer
    nan, other = (a, b) if nan_first else (b, a)
    alone = logical(w, "and", compared(w, "NE", nan, nan), compared(w, "EQ", other, other))
    return logical(w, "or", answer, alone)


def level(w: Writer, a: Ref, b: Ref) -> Ref:
    """Whether a and b are equal, or both NaN."""
    answer = compared(w, "EQ", a, b)
    if not a.dtype.is_float:
        return answer
    nans = [compared(w, "NE", x, x) for x in (a, b)]
    return logical(w, "or", answer, logical(w, "and", *nans))
