"""winograd.h: 3×3 convolution of stride 1 by Winograd's algorithm, of floats or small integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice.machine import barrier, cold, streamed
from graphtool.kernels.choice.operands import widened
from graphtool.kernels.images import HOOK, OUTPUT, STRIDES, image, over_pixels
from graphtool.kernels.kit import (
    HALF, TILE, Alternative, Area, Assumption, Chosen, Contract, Conv, Dim, Form, Instance,
    Lowered, Macro, Macros, MacroValue, Numbers, Parameter, Plan, Pointer, Record, Rows, Rules,
    Target, TensorType, Use, View, all_bfloat16, block_cycles, by_rows, ceil, ceildiv, elements,
    exact, fetched, half_macros, images, literals, longest, mark, need, number, overlapped,
    panel_bytes, panel_vectors, product, register, rounding, sizes, summed, sums, target_op,
    tile_rows, vectors_of, wrapped)
from graphtool.kernels.packing.transformed import FRACTIONS, G, plain, transformed

WORK = Pointer("WORK", "memory of thread t for transformed tiles", ("t",), writes=True)
TILE_SIZE = Parameter("tile", "outputs along an axis of a tile", least=2, most=4)
GROUP = Parameter("group", "tiles that are transformed and multiplied at a time", 28, least=1)


def same_tile(plan: Plan | None, tile: int) -> bool:
    """Whether a plan of a Winograd convolution has the tile size for which its weights are
    transformed."""
    return plan is None or plan.get("tile", tile) == tile


def work_area(t: Numbers, points: int, deep: int) -> Area:
    """The workspace that the C touches; see `workspace`."""
    group, out = t.sizes("GROUP O")
    share = _share(points, group, t.lanes, vectors_of(t), deep, out)
    return Area("WORK", (share,), aligned=True)


def workspace(use: Use, points: int, deep: int, out: int, nr: int) -> tuple[str, Dim]:
    """Memory for the tiles of the plan's group."""
    size = _share(points, use.plan["group"], use.target.lanes, nr, deep, out)
    return use.scratch(size), 0


def _share(points: int, group: int, lanes: int, nr: int, deep: int, out: int) -> int:
    """Words for a group of tiles, as winograd_products.h has them: at each point `deep` numbers of
    a tile before the products, and `out` after them."""
    rows = (-(-deep // lanes) * lanes, -(-out // nr) * nr)
    return sum(points * (group * (row + 16) + 16) for row in rows)


MACROS = (
    HALF, Macro("INTEGERS", "literal", "integers: 1 for an input of u8, 2 for i16", None),
    *literals(TILE="m: a tile gives m × m outputs"), *TILE,
    *literals(GROUP="tiles that are transformed and multiplied together"), *OUTPUT, *STRIDES,
    *sizes(C="input channels", O="output channels"),
    Macro("GROUPS", "size", "groups of channels", 1),
    mark("SHARED", "all threads work on all tiles, in one workspace"))


def meaning(t: Instance) -> None:
    """The convolution by the filters from which the weights were transformed."""
    m, c, outs, n, oh, ow = t.sizes("TILE C O BATCH OH OW")
    x, w = t.array("X", (n, oh + 2, ow + 2, c), (*t.sizes("XN XH XW"), 1)), t.read("W")
    if t.has("INTEGERS"):
        t.rows(o.winograd_int(x, w, channels=outs, tile=m))
    else:
        t.rows(o.winograd(x, w, channels=outs, tile=m, groups=t.get("GROUPS")))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    m, c, outs, n, oh, ow, group = t.sizes("TILE C O BATCH OH OW GROUP")
    nr, groups, whole = vectors_of(t), t.get("GROUPS"), t.has("INTEGERS")
    t.need(m in (2, 4) and group > 0, "tiles of 2 or 4")
    t.need(groups >= 1 and c % groups == 0 and (groups == 1 or outs % (groups * nr) == 0),
           "groups of whole panels")
    t.need(not whole or (t.get("INTEGERS") in (1, 2) and groups == 1), "integers in one group")
    tiles = n * -(-oh // m) * -(-ow // m)
    t.need(not t.get("SHARED") or group >= tiles, "a GROUP of all tiles where they are shared")
    kind = (dtypes.uint8, dtypes.int16)[t.get("INTEGERS") - 1] if whole else number(t)
    yield Rows((n, oh, ow, outs))
    yield Area("X", (n, oh + 2, ow + 2, c) if tiles else (0,) * 4, (*t.sizes("XN XH XW"), 1), (),
               kind)
    yield Area("W", ((m + 2) ** 2, -(-outs // nr), *((-(-c // 2), nr * 2) if whole else
                                                     (c // groups, nr))),
               None, (), dtypes.int16 if whole else dtypes.float32, True)
    deep = -(-c // 2) if whole else c  # in words of 4 bytes
    yield work_area(t, (m + 2) ** 2, deep)


def lower(use: Use, whole: bool = False) -> Lowered:
    """The workspace holds the tiles of a group before and after the products.
    `whole`: they are 16-bit integers in pairs."""
    x, w, a = use.view(0), use.view(1), use.node.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    channels, kind = a["channels"], half_macros(x.dtype)
    if whole:
        nr, kind = nr // 2, {"INTEGERS": 1 if x.dtype is dtypes.uint8 else 2}
    work = workspace(use, points, depth * a.get("groups", 1), channels, nr)
    many = partial(_by_tiles, use, w, a["tile"], nr, kind, work)
    if len(use.node.inputs) == 2:
        return many()
    few = partial(_by_tiles, use, use.view(2), SMALL, nr, kind, work)
    return by_rows(product(use.out.type.shape[:-1]), use.plan["few"], few, many)


def _by_tiles(use: Use, w: View, tile: int, nr: int, kind: Macros, work: tuple[str, Dim]
              ) -> Lowered:
    """The template, with tiles of this size and filters that are transformed for it."""
    x, channels = use.view(0), use.node.attrs["channels"]
    nv, c, groups = panel_vectors(use.target, nr), x.shape[3], use.node.attrs.get("groups", 1)
    group, shared = use.plan["group"], use.plan["shared"]
    macros: dict[str, MacroValue] = {
        **kind, "TILE": tile, "MR": tile_rows(use.target, nv, group), "NV": nv,
        "GROUP": group, **image(use), "C": c, "O": channels,
        **({"GROUPS": groups} if groups > 1 else {}), **({"SHARED": True} if shared else {})}
    flops = product(use.out.type.shape) * 9 * c // groups * 2
    return over_pixels(use, "winograd", macros, flops, W=(w.buffer, w.offset), WORK=work)


# ---- the ops -----------------------------------------------------------------------------------

PARAMETERS = (TILE_SIZE, GROUP, Parameter(
    "shared", "1: threads share all tiles, and split the weights", 0, most=1))
WINOGRAD = Form("winograd", (*PARAMETERS, Parameter(
    "few", "fewer outputs than these are computed in tiles of 2, 0: none", 0)))
WINOGRAD_INT = Form("winograd_int", PARAMETERS, "int8")


def _infer(x: TensorType, w: TensorType, small: TensorType | None = None, *, channels: int,
           tile: int, plan: Plan | None = None, groups: int = 1) -> TensorType:
    need(x.rank == 4 and w.rank == 4 and x.shape[3] == w.shape[2] * groups
         and (groups == 1 or channels % (groups * w.shape[3]) == 0), f"{x} and {w} are not "
                                                                     f"operands of this Winograd "
                                                                     f"convolution")
    need(same_tile(plan, tile), f"tiles of {tile}, and {plan} is planned")
    need(small is None or small.shape == ((SMALL + 2) ** 2, *w.shape[1:]),
         f"{small} are not the filters of {w} for tiles of {SMALL}")
    return TensorType(sums(x.dtype), (x.shape[0], x.shape[1] - 2, x.shape[2] - 2, channels))


def _decompose(x: Any, w: Any, _: Any = None, *, channels: int, tile: int,
               plan: Plan | None = None, groups: int = 1) -> Any:
    x, w = summed(x, w)
    g = plain(o.cast(w, dtype=dtypes.float64), G[tile], channels, x.shape[3] // groups)
    return o.conv(x, o.cast(g, dtype=x.dtype), channels_last=True, groups=groups)


def _flops(y: TensorType, _x: TensorType, w: TensorType, *_: TensorType, tile: int,
           **__: Any) -> Dim:
    """(t+2)² products of all channels for t² outputs; the transforms are not counted."""
    return 2 * elements(y) * w.shape[2] * (tile + 2) ** 2 // tile**2


OP = target_op("winograd", _infer, _decompose, WINOGRAD, _flops,
               "3×3 convolution of stride 1, channels last, by Winograd's algorithm F(t×t, 3×3) "
               "with t = `tile` (Lavin and Gray, arXiv:1509.09308). A third operand holds the "
               "filters for tiles of 2 too, by which a run computes few outputs")


def _infer_int(x: TensorType, w: TensorType, *, channels: int, tile: int,
               plan: Plan | None = None) -> TensorType:
    need(x.dtype in (dtypes.uint8, dtypes.int16) and w.dtype is dtypes.int16,
         f"the operands must be u8 or i16, and i16, got {x} and {w}")
    need(x.rank == 4 and w.rank == 4 and ceildiv(x.shape[3], 2) == w.shape[2],
         f"{x} and {w} are not operands of this Winograd convolution")
    need(same_tile(plan, tile), f"the plan {plan} is not for tiles of {tile}")
    return TensorType(dtypes.int32, (x.shape[0], x.shape[1] - 2, x.shape[2] - 2, channels))


def _decompose_int(x: Any, w: Any, *, channels: int, tile: int, plan: Plan | None = None) -> Any:
    g = plain(exact(w), G[tile] / FRACTIONS[tile][:, None], channels, x.shape[3], 2)
    return wrapped(o.conv(exact(x), o.round(g), channels_last=True))


OP_INT = target_op("winograd_int", _infer_int, _decompose_int, WINOGRAD_INT, _flops,
                   "3×3 convolution of small integers of stride 1, channels last, by Winograd's "
                   "algorithm; exact while sums stay below 2²⁹ with tiles of 2, 2²⁵ with tiles "
                   "of 4")


# ---- plans and their costs ---------------------------------------------------------------------

# from this number of input and of output channels on, the transforms are worth their time
LEAST = 16
SMALL = 2  # outputs along an axis of the tiles for few outputs
MOST_FEW = 4  # tiles of 4 along an axis, beyond which outputs are never few
# vector operations to transform one tile of a vector of channels: loads, sums, stores
_INPUT = {2: 32, 4: 110}
_OUTPUT = {2: 24, 4: 80}


def plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """Tiles of 4 and 2 outputs per axis, up to the largest that the rules allow.

    Weights that training changes use tiles of 2: the rounding errors of larger tiles would add up
    over the steps.
    """
    suits = (s.kh, s.kw) == (3, 3) and s.sh == s.sw == s.dh == s.dw == 1
    if not suits or s.depthwise or all_bfloat16(s, target) or not _pays(s, target):
        return []
    found = [p for m in ((4, 2) if s.constant or s.dtype.is_integer else (2,))
             if m <= min(rules.winograd, s.h, s.w) or m == 2 <= rules.winograd
             for p in _groups(s, m, target)]
    return [_by_size(s, p, target) for p in found] if s.least else found


def _by_size(s: Conv, p: Plan, t: Target) -> Plan:
    """The plan for a site of open sizes. Larger tiles have more than twice the weights, which are
    most of the work for few outputs: these are computed in small tiles then, and filters for both
    are kept, 36 + 16 numbers in place of 36."""
    if p.get("tile", SMALL) == SMALL or not s.constant or s.dtype is not dtypes.float32:
        return p
    small = WINOGRAD.plan(tile=SMALL)
    square = (replace(s, n=1, h=e, w=e) for e in range(4 * MOST_FEW, 0, -4))
    few = next((i.h * i.w + 1 for i in square if cost(i, small, t) < cost(i, p, t)), 0)
    return WINOGRAD.plan(**dict(p.parameters), few=few) if few > s.least else p


def _pays(s: Conv, target: Target) -> bool:
    """Whether there are enough channels; each group must also fill whole panels."""
    if min(s.o, s.c) < LEAST * s.groups:
        return False
    if s.groups > 1 and (s.dtype.is_integer or not s.constant):
        return False
    return panel(s.o // s.groups, s.groups, target) > 0


def _groups(s: Conv, m: int, target: Target) -> list[Plan]:
    """All tiles at once if they are few, else groups of tiles that leave room for the planes in the
    cache.

    If threads share all tiles, they divide the weights, and each thread reads a part of them. A
    run of open sizes may have so few tiles that most of its time goes into the weights: smaller
    groups read those twice, which is free in the cache only.
    """
    tiles = s.n * ceil(s.h, m) * ceil(s.w, m)
    form = WINOGRAD_INT if s.dtype.is_integer else WINOGRAD
    heavy = s.least and weights(s, form.plan(tile=m), target) > target.l2 // 2
    sizes = () if tiles <= 28 else (28,) if heavy else (28, 16)
    apart = [form.plan(tile=m, group=g) for g in sizes]
    if tiles > 64:
        return apart
    shared = [form.plan(tile=m, group=tiles, shared=1)] if target.threads > 1 else []
    return [form.plan(tile=m, group=tiles), *shared, *apart]


def panel(columns: int, groups: int, target: Target) -> int:
    """The width of a panel of transformed weights for the columns of one group, in vectors.

    With several groups the panels must be full, because those of adjacent groups follow each other:
    0 if that is impossible.
    """
    usual = 1 if columns <= target.lanes else target.nv
    whole = [nv for nv in range(usual, 0, -1) if columns % (nv * target.lanes) == 0]
    return usual if groups == 1 else next(iter(whole), 0)


def cost(s: Conv, c: Plan, t: Target) -> float:
    """Expected microseconds of the products of all points, of the transforms before and after
    them, and of the planes that go through the caches in between."""
    m, group, shared = c.get("tile", 2), c.get("group", 28), c.get("shared", 0)
    depth, columns = s.c // s.groups, s.o // s.groups
    points, nv = (m + 2) ** 2, panel(columns, s.groups, t)
    nr = nv * t.lanes
    slow = 1.0
    if s.dtype.is_integer:  # integers are multiplied in pairs of 16 bits
        depth, slow = ceil(depth, 2), t.pair[t.dot8]
    panels, all_tiles = s.groups * ceil(columns, nr), s.n * ceil(s.h, m) * ceil(s.w, m)
    busiest = longest(all_tiles, t.threads)
    tiles, split = (all_tiles, t.threads) if shared else (busiest, 1)
    groups = ceil(tiles, group)
    last = tiles - (groups - 1) * group
    most = tile_rows(t, nv, group)
    step = (groups - 1) * block_cycles(group, most, nv) + block_cycles(last, most, nv)
    weights = points * panels * depth * nr * 4 / split
    products = overlapped(t, points * panels * depth * step * slow / split,
                          streamed(t, weights, groups))
    ends = busiest * (_INPUT[m] * ceil(depth * s.groups, t.lanes) + _OUTPUT[m] * ceil(s.o, t.lanes))
    planes = points * min(group, tiles) * (depth * s.groups + panels * nr + 32) * 4
    # threads that share the planes read in the second phase what the others wrote in the first
    moved = fetched(t, (4 if shared else 2) * planes * groups / split, max(planes, t.l2 * shared))
    # weights that are not constant are read, transformed along both axes and packed at every call
    transform = 0 if s.constant else fetched(t, 5 * split * weights / t.threads, split * weights)
    moved += cold(t, planes / split)
    return products + ends / t.mhz + moved + 2 * barrier(t) * shared + transform


def weights(s: Conv, p: Plan, t: Target) -> int:
    """Bytes of the transformed filters."""
    points = (p.get("tile", 2) + 2) ** 2 + ((SMALL + 2) ** 2 if p.get("few", 0) else 0)
    return panel_bytes(s, points, panel(s.o // s.groups, s.groups, t),
                       2 if s.dtype.is_integer else 4, t)


def error(s: Conv, p: Plan) -> float:
    """The rounding error: larger tiles lose more; sums of integers are exact."""
    return 0.0 if s.dtype.is_integer else rounding.winograd(p.get("tile", 2), s.c // s.groups)


def make(chosen: Chosen, x: Any, w: Any, *, strides: Any, dilation: Any, groups: int) -> Any:
    """The convolution node with filters that are transformed at build time, or at every call if
    they are not constant."""
    outs, tile, s = w.shape[0], chosen.plan.get("tile", 2), chosen.site
    nr = chosen.target.lanes * panel(outs // groups, groups, chosen.target)
    if s.dtype.is_integer:
        packed = o.pack_int_winograd(w, tile=tile, nr=nr)
        return chosen.emit(OP_INT, x, packed, channels=outs, tile=tile)
    sizes = [tile, SMALL] if chosen.plan.get("few", 0) else [tile]
    packed = [o.pack_winograd(widened(w), tile=m, nr=nr) if s.constant
              else transformed(widened(w), m, nr) for m in sizes]
    return chosen.emit(OP, x, *packed, channels=outs, tile=tile, groups=groups)


def assumes(s: Conv, _: Plan) -> Assumption:
    """Of floats: numbers of a tile are added up first, so that a NaN reaches all its outputs."""
    return "nothing" if s.dtype.is_integer else "finite"


SERVES = (
    Alternative(Conv, WINOGRAD, plans, cost, make, weights, error,
                lambda s: not s.dtype.is_integer, assumes=assumes),
    Alternative(Conv, WINOGRAD_INT, plans, cost, make, weights, error,
                lambda s: s.dtype.is_integer))

register(Record(
    Contract("winograd", "a 3×3 convolution by Winograd's algorithm", MACROS,
             (*images.POINTERS, WORK), meaning, HOOK, touches, grain="shares", phases="SHARED"),
    {"winograd": lower, "winograd_int": partial(lower, whole=True)}, serves=SERVES))
