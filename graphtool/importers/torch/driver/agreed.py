"""Comparison of a value with torch's record of it: its type, and the memory it shares."""

from __future__ import annotations

from typing import Any

from graphtool.importers.torch.driver.captured import Complex
from graphtool.io.weights import Weight
from graphtool.ir.graph import TensorType
from graphtool.symbolic import known


def parts_of(kind: Any) -> TensorType | None:
    """The type of a tensor, or of the parts of a complex one."""
    kind = kind.parts if isinstance(kind, Complex) else kind
    return kind if isinstance(kind, TensorType) else None


def fits(kind: TensorType, wanted: TensorType) -> bool:
    """Whether the type of a result can be the one that torch declares; symbolic sizes may agree."""
    return kind == wanted or (kind.dtype is wanted.dtype and kind.rank == wanted.rank and all(
        known(a, "==", b) is not False for a, b in zip(kind.shape, wanted.shape, strict=True)))


def identity(w: Weight) -> Any:
    """A key of a tensor's memory, equal for tied parameters."""
    return w.source.ctypes.data, w.dtype.name, w.shape, w.digest
