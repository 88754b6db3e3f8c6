"""Winograd's transform of 3×3 weights that are not constants, as ops that run at every call.

Only for F(2×2, 3×3), whose sums are as exact as the direct ones: weights that are trained change in
every step, and what a tile of 4 loses would add up.
"""

from __future__ import annotations

from typing import Any

from graphtool.ir.op import OPS
from graphtool.ir.trace import Tracer
from graphtool.ops.target_winograd import G


def transformed(w: Tracer, tile: int, nr: int) -> Any:
    """w [O, C, 3, 3] to G·g·Gᵀ in panels, [(tile + 2)², ceil(O/nr), C, nr].

    Packed first: all that follows then walks along memory.
    """
    o, c = w.shape[:2]
    panels = OPS["pack"](OPS["reshape"](w, shape=(o, c * 9)), nr=nr, transpose=True)
    out: Any = OPS["transpose"](OPS["reshape"](panels, shape=(panels.shape[0], c, 3, 3, nr)),
                                perm=(2, 3, 0, 1, 4))
    for axis in (0, 1):
        out = OPS["concat"](*(_combined(out, axis, row) for row in G[tile]), axis=axis)
    return OPS["reshape"](out, shape=((tile + 2) ** 2, *out.shape[2:]))


def _combined(x: Any, axis: int, row: Any) -> Any:
    """Σᵣ row[r]·x[r] along an axis."""
    total = None
    for r, factor in enumerate(map(float, row)):
        if factor:
            at = [(r, r + 1) if a == axis else (0, d) for a, d in enumerate(x.shape)]
            part = OPS["slice"](x, start=tuple(a for a, _ in at), limit=tuple(b for _, b in at),
                                strides=(1,) * x.ndim)
            part = part if factor == 1.0 else part * factor
            total = part if total is None else total + part
    return total
