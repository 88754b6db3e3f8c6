"""What both kernels of Winograd's algorithm share: the tiles of a plan, and the memory of a group
of tiles."""

from __future__ import annotations

from graphtool.ir.plan import Parameter, Plan
from graphtool.kernels.tiles import vectors_of
from graphtool.kernels.use import Use
from graphtool.loops.areas import Area, Numbers
from graphtool.loops.contract import Pointer
from graphtool.symbolic import Dim, Symbol, symbol_of

WORK = Pointer("WORK", "memory of thread t for transformed tiles", ("t",), writes=True)
TILE_SIZE = Parameter("tile", "outputs along an axis of a tile", least=2, most=4)
GROUP = Parameter("group", "tiles that are transformed and multiplied at a time", 28, least=1)


def same_tile(plan: Plan | None, tile: int) -> bool:
    """Whether a plan of a Winograd convolution has the tile size for which its weights are
    transformed."""
    return plan is None or plan.get("tile", tile) == tile


def work_area(t: Numbers, points: int, deep: int, threads: int) -> Area:
    """The workspace that the C touches, for each of so many threads; see `workspace`."""
    group, out = t.sizes("GROUP O")
    share = _share(points, group, t.lanes, vectors_of(t), deep, out)
    return Area("WORK", (share,), None, (threads,), aligned=True)


def workspace(use: Use, points: int, deep: int, out: int, nr: int, shares: int | None = None,
              ) -> tuple[str, Dim]:
    """Memory of thread t for the tiles of the plan's group; there is one share for each thread, or
    there are as many as `shares` says."""
    size = _share(points, use.plan["group"], use.target.lanes, nr, deep, out)
    return use.scratch(size, shares), symbol_of(Symbol("t", 0, None)) * size


def _share(points: int, group: int, lanes: int, nr: int, deep: int, out: int) -> int:
    """Words for a group of tiles, as winograd_products.h has them: at each point `deep` numbers of
    a tile before the products, and `out` after them."""
    rows = (-(-deep // lanes) * lanes, -(-out // nr) * nr)
    return sum(points * (group * (row + 16) + 16) for row in rows)
