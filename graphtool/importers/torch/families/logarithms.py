"""Functions built of logarithms, each finite where its limit is: in values and in gradients."""

from __future__ import annotations

import math
from typing import Any

from graphtool import ops as o
from graphtool.front import Array
from graphtool.importers.torch.driver.context import Context
from graphtool.importers.torch.driver.table import aten
from graphtool.importers.torch.families.elementwise import operands


@aten("logaddexp")
def logaddexp(c: Context, self: Any, other: Any) -> Any:
    """log(exp a + exp b) as max(a, b) + log1p(exp(−|a − b|))."""
    return log_of_sum(*operands(c, self, other))


def log_of_sum(a: Any, b: Any) -> Any:
    """log(exp a + exp b). Equal operands share the gradient, infinite ones too."""
    equal, big = o.eq(a, b), o.max(a, b)
    gap = o.select(equal, 0.0, o.min(a, b) - big)  # not ∞ − ∞
    both = a * 0.5 + b * 0.5 + math.log(2)
    return o.select(equal, both, big + o.log1p(o.exp(gap)))


def _times_log(log: Any, one: float) -> Any:
    """a·log(b), and 0 where a = 0 and the logarithm is not finite; so are its gradients."""
    def handler(c: Context, self: Any, other: Any) -> Any:
        a, b = (c.full((), x, c.out.dtype) if not isinstance(x, Array) else x
                for x in operands(c, self, other))
        outside = (b <= one - 1.0) | o.eq(b, math.inf)
        return a * log(o.select(o.eq(a, 0.0) & outside, one, b))
    return handler


aten("xlogy", "special_xlogy")(_times_log(o.log, 1.0))
aten("special_xlog1py")(_times_log(o.log1p, 0.0))


@aten("logit", "special_logit")
def logit(c: Context, self: Array, eps: float | None = None) -> Any:
    """log x − log(1 − x); with `eps`, of x cut to [eps, 1 − eps]."""
    x = c.cast(self, c.out.dtype)
    if eps is not None:
        x = o.clamp(x, eps, 1.0 - eps)
    return o.log(x) - o.log1p(-x)


@aten("special_entr")
def entr(c: Context, self: Array) -> Any:
    """−x·log x, 0 at 0 and −∞ below; the gradient at 0 is ∞, as torch's."""
    x = c.cast(self, c.out.dtype)
    zero, below = o.eq(x, 0.0), x < 0.0
    away = o.select(zero | below, 1.0, x)
    steep = o.sqrt(o.select(zero, x, 1.0))  # 0 with an infinite gradient
    return o.select(below, -math.inf, o.select(zero, steep, -(away * o.log(away))))
