"""Python's operators as ops: `x + y` calls `add`. What a call does is its operands' to say."""

from __future__ import annotations

from typing import Any

from graphtool.ir.op import OPS


class Operators:
    """Python's operators as ops, for whatever stands for a tensor (Tracer, Pattern)."""

    __slots__ = ()
    __hash__ = object.__hash__
    __array_ufunc__ = None  # numpy leaves `array * tracer` to us

    def __add__(self, other: Any) -> Any:
        return OPS["add"](self, other)

    def __radd__(self, other: Any) -> Any:
        return OPS["add"](self, other)

    def __sub__(self, other: Any) -> Any:
        return OPS["sub"](self, other)

    def __rsub__(self, other: Any) -> Any:
        return OPS["sub"](other, self)

    def __mul__(self, other: Any) -> Any:
        return OPS["mul"](self, other)

    def __rmul__(self, other: Any) -> Any:
        return OPS["mul"](self, other)

    def __truediv__(self, other: Any) -> Any:
        return OPS["div"](self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return OPS["div"](other, self)

    def __neg__(self) -> Any:
        return OPS["neg"](self)
