"""How far results may differ where numbers are rounded to few bits, as a share of the largest one.

Sums in another order differ a little. Where numbers are rounded, such a difference may lead to the
next step, and all later roundings part; n of them add up as random numbers do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import ml_dtypes

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.graph import Module, Node, Value, is_constant
from graphtool.ir.run_sizes import all_nodes

LEAST = 1e-4  # for float32 through many layers, with sums in another order
MOST = 0.25  # no tolerance is wider, so that other weights always show
OTHER_HALVES = "numbers of 16 bits, of which sums in another order may round to the next one"
NO_HALVES = "onnxruntime computes halves in float32 and does not round them between nodes"


def tolerance(module: Module) -> float:
    """The share for numbers that are rounded to 8 bits or fewer, each two steps off."""
    return _added(_step(n) for n in all_nodes(module.graph))


def halves_kept(module: Module, *halves: DType) -> float:
    """The share where one side does not round to these types, by default float16, what the graph
    does: see NO_HALVES. Each rounding moves a number by half a step."""
    steps = {d: float(ml_dtypes.finfo(d.numpy).eps) / 2 for d in halves or (dtypes.float16,)}
    return _added(steps[v.type.dtype] for n in all_nodes(module.graph) if not is_constant(n)
                  for v in n.outputs if v.type.dtype in steps)


def _added(steps: Iterable[float]) -> float:
    return max(LEAST, min(MOST, 2.0 * math.sqrt(sum(s ** 2 for s in steps))))


def _step(node: Node) -> float:
    """The step of a rounding to 8 bits or fewer, as a share of the largest number; 0 without."""
    if node.attrs.get("activations") == "q8":
        return 1 / dtypes.int8.high
    if not any(isinstance(x, Value) and x.type.dtype.is_float and x.type.dtype.bits > 8
               for x in node.inputs):
        return 0.0
    rows = [v.type.dtype for v in node.outputs if v.type.dtype.bits <= 8]
    steps = [1 / d.high if d.is_integer else float(ml_dtypes.finfo(d.numpy).eps)
             for d in rows if d.is_integer or d.is_float]
    return max(steps, default=0.0)
