"""The type of a tensor: its element type and its shape."""

from __future__ import annotations

from dataclasses import dataclass

from graphtool.dtypes import DType
from graphtool.symbolic import Dim, text


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type and shape; a dimension is an int or a Poly over the module's symbols."""

    dtype: DType
    shape: tuple[Dim, ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.short}[{','.join(map(text, self.shape))}]"
