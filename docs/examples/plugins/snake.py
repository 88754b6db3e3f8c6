"""The op snake(x) = x + sin²(αx)/α, an activation for periodic signals.

Source: Ziyin, Hartwig, Ueda, "Neural networks fail to learn periodic functions", NeurIPS 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphtool.extend import Op, Pull, TensorType, Trait, add_op, apply, const, ops, per_result

__version__ = "1.0"


def infer(x: TensorType, *, alpha: float = 1.0) -> TensorType:
    """The type of the result: that of x. The signature is the op's schema."""
    return x


def evaluate(x: np.ndarray[Any, Any], *, alpha: float) -> np.ndarray[Any, Any]:
    """The reference meaning, in numpy."""
    return np.asarray(x + np.sin(alpha * x) ** 2 / alpha, x.dtype)


def vjp(g: Any, y: Any, x: Any, *, alpha: float) -> tuple[Any]:
    """d/dx (x + sin²(αx)/α) = 1 + sin(2αx), written in other ops."""
    return (g * (1.0 + ops.sin(x * (2.0 * alpha))),)


def lower(_: Any, x: Pull, *, alpha: float) -> Pull:
    """The C: the expression of one element, of which fusion makes part of a loop."""
    def element(index: Any) -> Any:
        v, a = x.at(index), const(alpha, x.dtype)
        s = apply("sin", apply("mul", a, v))
        return apply("add", v, apply("div", apply("mul", s, s), a))
    return Pull(x.dtype, x.shape, element)


add_op(Op("snake", infer, evaluate, vjp, lower, traits=Trait.ELEMENTWISE, cost=per_result(13),
          doc="x + sin²(αx)/α, element by element"))
