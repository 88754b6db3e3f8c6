"""What of the machine a kernel can use at most: its instructions, and how often it multiplies."""

from __future__ import annotations

import re

from graphtool.io.manifest_rows import Choice
from graphtool.ir.plan import Plan, plan

# the end of a kernel's name, and the rate of graphtool.report.rates that it cannot pass
_RATES = (("amx", "tile_bf16"), ("amx_blocked", "tile_bf16"), ("bf16", "bf16"), ("int", "int8"),
          ("q8", "int8"), ("nbits", "int8"))
_TAPS = 3  # of the filters that Winograd's kernels are for


def roof_of(choice: Choice | None) -> tuple[str, float]:
    """The kind of rate that bounds the kernel of a step, and how many multiplications it does for
    one that the op's definition has: Winograd's do with fewer."""
    if choice is None or not choice.us:
        return "f32", 1.0
    chosen = plan(next(iter(choice.us)))
    kind = next((rate for end, rate in _RATES if chosen.kind.endswith(f"_{end}")),
                "bf16" if chosen.get("rounded", 0) else "f32")
    if kind == "tile_bf16" and re.search(r"\bdtype=u8\b", choice.site):
        kind = "tile_int8"
    return kind, _multiplied(chosen)


def _multiplied(chosen: Plan) -> float:
    """Of a tile of n outputs along an axis, n + 2 products stand for 3 n."""
    tile = chosen.get("tile", 0)
    if not chosen.kind.startswith("winograd") or not tile:
        return 1.0
    axes = 1 if chosen.kind == "winograd_line" else 2
    return ((tile + _TAPS - 1) / (_TAPS * tile)) ** axes
