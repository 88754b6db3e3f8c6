"""Operands of elementwise ops: StableHLO repeats nothing by itself, and has no literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool.dtypes import DType
from graphtool.exporters.stablehlo.registry import Ref
from graphtool.exporters.stablehlo.sizes import vector
from graphtool.exporters.stablehlo.text import array, ints
from graphtool.exporters.stablehlo.writer import Writer
from graphtool.ir.graph import TensorType
from graphtool.symbolic import Dim


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
