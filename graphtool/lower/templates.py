"""The table of template kernels: for each target op, how its unit becomes a header with macros."""

from __future__ import annotations

from collections.abc import Callable

from graphtool.ir.graph import Node
from graphtool.lower.attention import attention
from graphtool.lower.buffer_assignment import Placement
from graphtool.lower.convolutions import conv, depthwise, pooled, winograd, winograd_line
from graphtool.lower.integers import conv_int, depthwise_int, matmul_int
from graphtool.lower.products import library, matmul
from graphtool.lower.site import Lowered, Site
from graphtool.lower.units import Unit
from graphtool.target import Target

TEMPLATES: dict[str, Callable[[Site], Lowered]] = {
    "matmul_packed": matmul, "matmul_bf16": matmul, "matmul_blas": library, "conv_packed": conv,
    "conv_bf16": conv, "depthwise": depthwise, "winograd": winograd,
    "winograd_line": winograd_line, "attend": attention, "matmul_int": matmul_int,
    "conv_int": conv_int, "depthwise_int": depthwise_int, "winograd_int": winograd,
    "pooled": pooled}


def lower_template(unit: Unit, root: Node, placement: Placement, target: Target) -> Lowered:
    """The body of the unit's kernel, and its nominal flops."""
    return TEMPLATES[root.op.name](Site(unit, root, placement, target))
