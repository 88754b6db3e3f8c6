"""What the kernels of ops that fuse with nothing share: operands, scratch, how much work it is."""

from __future__ import annotations

from graphtool.dtypes import DType
from graphtool.ir.graph import Node, Value
from graphtool.loops.ir import Stmt
from graphtool.lower.buffer_assignment import Placement, Storage
from graphtool.lower.views import View
from graphtool.symbolic import Dim, bounds

Lowered = tuple[tuple[Stmt, ...], Dim, int]  # body, flops, work (0: one thread alone)


def scratch(placement: Placement, dtype: DType, size: Dim, label: str) -> str:
    """A buffer that lives during one kernel only."""
    name = f"s{len(placement.buffers)}"
    placement.buffers[name] = Storage(name, dtype, size, "arena", label=f"scratch of {label}")
    return name


def work_of(size: Dim) -> int:
    """The work of so many operations, at most; endless where nothing bounds it."""
    most = bounds(size)[1]
    return 1 << 30 if most is None else most


def operand(node: Node, n: int, placement: Placement) -> View:
    x = node.inputs[n]
    assert isinstance(x, Value)
    return placement.views[x]
