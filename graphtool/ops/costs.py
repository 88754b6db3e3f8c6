"""Costs that several ops share, and the forms of the plans of composites that have kernels.

A cost is a function of the result's type, the operands' types and attributes: of computing, it
counts floating-point operations, of memory, bytes. If an op has several results, `y` is the type of
the first. Kernels define the plans of their own ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphtool.ir.graph import TensorType
from graphtool.ir.plan import Form, Parameter
from graphtool.symbolic import Dim, product

Cost = Callable[..., Dim]


def elements(t: TensorType) -> Dim:
    """How many elements a tensor has."""
    return product(t.shape)


def nbytes(t: TensorType) -> Dim:
    """Bytes of a tensor in memory."""
    return elements(t) * t.dtype.bytes


def nothing(*_: Any, **__: Any) -> Dim:
    """0: the op computes nothing, or moves nothing."""
    return 0


def per_result(count: int = 1) -> Cost:
    """A cost function: `count` operations for each element of the result."""
    return lambda y, *_, **__: count * elements(y)


def per_operand(_y: TensorType, x: TensorType, *_: Any, **__: Any) -> Dim:
    """One operation for each element of the first operand."""
    return elements(x)


def rows_by_columns(y: TensorType, a: TensorType, *_: Any, **__: Any) -> Dim:
    """2·M·N·K for each matrix of the batch; K is the last axis of a."""
    return 2 * elements(y) * a.shape[-1]


def per_tap(y: TensorType, *_: Any, window: tuple[int, ...], **__: Any) -> Dim:
    """One operation for each element of each window."""
    return elements(y) * product(window)


def taken(y: TensorType, _x: TensorType, *rest: Any, **_: Any) -> Dim:
    """Bytes of an op that reads only as much of its first operand as it writes: these, read and
    written, and the other operands."""
    return 2 * nbytes(y) + sum((nbytes(t) for t in rest if isinstance(t, TensorType)), 0)


NV = Parameter("nv", "vectors across a panel of packed weights", least=1, most=16)
PANELS = Form("recurrence", (NV,))
NBITS = Form("linear_nbits")
