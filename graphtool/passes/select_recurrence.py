"""select's recurrences: their weights in panels, as wide as suits the rows of the batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphtool import dtypes
from graphtool.ir.graph import Node
from graphtool.ir.op import OPS
from graphtool.symbolic import Dim
from graphtool.target import Target, tile_rows

FEW = 4  # rows of a batch that one tile takes at any width
WIDEST = 8  # vectors of a panel


def recurrence(target: Target, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """Recurrent weights in panels: every step reads all of them, one behind the other."""
    p, r, *rest = operands
    if node.attrs["packed"] or p.dtype is not dtypes.float32:
        return None
    _, hidden, wide = r.shape
    nr = panel(target, wide, p.shape[2])
    if node.attrs["kind"] == "gru":  # its last gate is a product of its own, and begins a panel
        nr = panel(target, hidden, p.shape[2], whole=True)
        if hidden % nr:
            return None
    results: Sequence[Any] = node.op(p, OPS["pack"](r, nr=nr), *rest,
                                     **{**node.attrs, "packed": nr})
    return results


def recurrence_grad(target: Target, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The same weights transposed: each step's gradients go back through all of them."""
    r, y, *rest = operands
    if node.attrs["packed"] or y.dtype is not dtypes.float32:
        return None
    nr = panel(target, y.shape[3], y.shape[2])
    results: Sequence[Any] = node.op(OPS["pack"](r, nr=nr, transpose=True), y, *rest,
                                     **{**node.attrs, "packed": nr})
    return results


def panel(target: Target, n: Dim, batch: Dim, whole: bool = False) -> int:
    """Columns of a panel of recurrent weights that have n; with `whole`, a divisor of n if any is.

    A few rows are multiplied in one tile, whose k-step starts two multiply-adds and two loads or
    prefetches a cycle, and takes five at least. More rows fill their tiles at any width: the least
    padding counts.
    """
    if not isinstance(n, int):
        return 3 * target.lanes
    few = batch if isinstance(batch, int) and batch <= FEW else None
    most = 3 if few is None else WIDEST
    widths = [v for v in range(most, 0, -1) if v == 1 or tile_rows(target, v, None) >= (few or 1)]
    if whole:
        widths = [v for v in widths if n % (v * target.lanes) == 0] or widths

    def cycles(v: int) -> float:
        panels = -(-n // (v * target.lanes))
        return panels * v if few is None else panels * max(few * v / 2, few / 2 + v, 5)
    return target.lanes * min(widths, key=cycles)
