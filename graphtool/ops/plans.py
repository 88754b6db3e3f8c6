"""The forms of plans: the parameters of each target op's kernel, their order, meaning and values.

The verifier checks plans against these.
"""

from __future__ import annotations

from graphtool.plan import Form, Parameter, Plan

_NV = Parameter("nv", "width of a panel of packed weights, in vectors", least=1, most=16)
_TILE = Parameter("tile", "number of outputs along an axis of a tile", least=2, most=4)
_GROUP = Parameter("group", "number of tiles that are transformed and multiplied "
                            "together", 28, least=1)
_ROWS_FIRST = Parameter("rows", "1: rows of the image in the outer loop, 0: panels of weights",
                        most=1)

GEMM = Form("gemm", (
    _NV, Parameter("split", "1: threads share rows, 2: they share columns, 0: either", 0, most=2),
    Parameter("resident", "KB of the left operand that are kept in a cache, 0: all of it", 640)))
BLAS = Form("blas")
DIRECT = Form("direct", (_NV, _ROWS_FIRST))
BF16_PRODUCT, BF16_CONV = Form("bf16", GEMM.parameters), Form("bf16", DIRECT.parameters)
WINOGRAD = Form("winograd", (
    _TILE, _GROUP, Parameter("shared", "1: all threads transform the tiles together, and divide "
                                       "the weights", 0,
                             most=1)))
LINE = Form("winograd_line", (_TILE, _NV, _GROUP))
DEPTHWISE = Form("depthwise", (
    Parameter("block", "number of vectors of channels in one pass over the image", 1, least=1),
    Parameter("high", "number of output rows of a register block", 1, least=1, most=2)))
POOLED = Form("pooled")
PANELS = Form("panels", (_NV,))
ATTEND = Form("attend", (
    Parameter("keys", "number of keys that are processed together, 0: all", 0), _NV,
    Parameter("rows", "number of queries in a register tile", least=1)))


def same_tile(plan: Plan | None, tile: int) -> bool:
    """Whether a plan of a Winograd convolution has the tile size for which its weights are
    transformed."""
    return plan is None or plan.get("tile", tile) == tile
