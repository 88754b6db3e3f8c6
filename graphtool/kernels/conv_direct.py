"""conv_direct.h: direct convolution, channels last, of float32 or 16-bit floats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.kernels.choice import device
from graphtool.kernels.choice.contractions import conv_cost
from graphtool.kernels.images import (
    HOOK, OUTPUT, POINTERS, STRIDES, UNPADDED, WINDOW, fits_tile, image, image_area, over_pixels,
    padded, padded_space, seen_unpadded, tall, unpadded, window)
from graphtool.kernels.kit import (
    HALF, NV, TILE, Alternative, Area, Assumption, Chosen, Contract, Conv, Dim, Form, Instance,
    Lowered, Macro, MacroValue, Node, Numbers, Parameter, Plan, Record, Rows, Rules, Target,
    TensorType, Use, Value, View, all_bfloat16, elements, half_macros, narrowed, need,
    never, number, panel_bytes, panel_vectors, product, register, rounding, rows_of_neighbours,
    rows_of_tile, sizes, summed, sums, target_op, unpacked, vectors_of, widths)
from graphtool.kernels.packing.pairs import row_pairs, whole_rows
from graphtool.kernels.tiles import PAIRS

MACROS = (
    HALF, PAIRS, *TILE, Macro("TALL", "literal", "the greatest number of whole output rows in a "
                                                 "tile", 1),
    *OUTPUT, *STRIDES,
    *sizes(GROUPS="groups", C="input channels of a group", O="output channels of a group"),
    *WINDOW,
    *(Macro(name, "size", "the input counts as zeros " + where, None) for name, where in (
        ("TOP", "above this row"), ("BOTTOM", "from this row on"), ("LEFT", "before this column"),
        ("RIGHT", "from this column on"))),
    Macro("ROWS_FIRST", "flag",
                   "1: each row is multiplied by all panels before the next row; 0: each panel by "
                   "as many rows as stay in the cache", None),
    *UNPADDED, *device.MACROS, device.SLICES)


def meaning(t: Instance) -> None:
    """The convolution of the elements that the windows reach, as the C computes it."""
    groups, c, m, kh, kw = t.sizes("GROUPS C O KH KW")
    x, attrs = seen_unpadded(t, groups * c)
    w, given = t.read("W"), {"channels": groups * m, "window": (kh, kw), **attrs}
    if t.get("PAIRS"):
        t.rows(o.conv_bf16(x, w, **given))
    else:
        inside = tuple(t.sizes("TOP BOTTOM LEFT RIGHT")) if t.has("TOP") else None
        t.rows(o.conv_direct(x, w, inside=inside, **given))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    groups, c, m, kh, kw = t.sizes("GROUPS C O KH KW")
    nr, kind = vectors_of(t), number(t)
    runs = 1 if not t.get("PAIRS") or whole_rows(groups, (t.get("DH"), t.get("DW"))) else kw
    row = (runs * -(-kw * c // runs // 2), nr * 2) if t.get("PAIRS") else (kw * c, nr)
    fits_tile(t)
    inside = [name for name in ("TOP", "BOTTOM", "LEFT", "RIGHT") if t.has(name)]
    t.need(not inside or (len(inside) == 4 and t.get("TALL") == 1 and not t.get("PAIRS")),
           "all four borders of what is read, and tiles of one row")
    yield Rows((*t.sizes("BATCH OH OW"), groups * m))
    yield image_area(t, groups * c, kind)
    yield Area("W", (groups, -(-m // nr), kh, *row), None, (), kind, True)
    yield from device.touched(t, groups, prod(t.sizes("BATCH OH OW")), m)


def lower(use: Use, pairs: bool = False) -> Lowered:
    """The register tile covers pixels of one row, or some whole rows of a narrow image. `pairs`:
    the filters have pairs of channels."""
    x, w, a = use.view(0), use.view(1), use.node.attrs
    groups, _, kh, _, nr = w.shape
    kw = a["window"][1]
    assert isinstance(nr, int) and isinstance(groups, int)
    nv = panel_vectors(use.target, nr // 2 if pairs else nr)
    out = use.out.type.shape
    tile: dict[str, MacroValue] = tall(use.target, nv, out, x.strides[2] * a["strides"][1])
    if inside := a.get("inside"):
        tile = {"MR": rows_of_tile(use.target, nv, out[2]), "TALL": 1,
                **dict(zip(("TOP", "BOTTOM", "LEFT", "RIGHT"), inside, strict=True))}
    macros: dict[str, MacroValue] = {
        **half_macros(x.dtype, pairs), **tile, "NV": nv, **image(use), **unpadded(use),
        "GROUPS": groups,
        "C": x.shape[3] // groups, "O": a["channels"] // groups, **window((kh, kw), a)}
    more = on_device(use, macros)
    if (rows_first := use.plan.get("rows")) is not None:
        macros["ROWS_FIRST"] = rows_first == 1
    flops = product(out) * kh * kw * (x.shape[3] // groups) * 2
    return over_pixels(use, "conv_direct", macros, flops, **more)


def pointwise(use: Use, x: View, w: View, pairs: bool) -> Lowered:
    """A 1×1 convolution, for a product whose rows lie in an image with a margin."""
    nr = w.shape[-1]
    assert isinstance(nr, int)
    nv = panel_vectors(use.target, nr // 2 if pairs else nr)
    out, c = use.out.type.shape, x.shape[3]
    macros: dict[str, MacroValue] = {
        **half_macros(x.dtype, pairs), **tall(use.target, nv, out, x.strides[2]), "NV": nv,
        **image(use), "C": c, "O": out[3],
        **dict.fromkeys(("GROUPS", "KH", "KW", "SH", "SW", "DH", "DW"), 1)}
    more = on_device(use, macros)
    return over_pixels(use, "conv_direct", macros, product(out) * c * 2, **more)


def on_device(use: Use, macros: dict[str, Any]) -> dict[str, tuple[str, Dim]]:
    """Adds the macros of a device's tile; returns the pointers that it needs."""
    rows = macros["BATCH"] * macros["OH"] * macros["OW"]
    sizes, depth = (macros["GROUPS"], rows, macros["O"]), macros["KH"] * macros["KW"] * macros["C"]
    macros |= device.tile(use.target, *sizes, depth, macros["NV"],
                          use.view(0).dtype in dtypes.HALVES, use.plan["unit"], 0)
    return device.slabs(use, macros, *sizes)


def teams(macros: Mapping[str, Any], lanes: int) -> Dim:
    """The tiles of a device."""
    rows = macros["BATCH"] * macros["OH"] * macros["OW"]
    return device.tiles(macros, lanes, macros["GROUPS"], rows, macros["O"])


def reads(node: Node, x: Value, view: View) -> bool:
    """Whether it can read x here: without gaps between pixels if a pair of elements can join two
    pixels."""
    if node.op is o.conv_bf16 and x is node.inputs[0] and _odd_rows(node) and (
            view.strides[2] != view.shape[3]):
        return False
    return rows_of_neighbours(node, x, view)


def _odd_rows(node: Node) -> bool:
    x, w = (v.type.shape for v in node.inputs if isinstance(v, Value))
    return w[0] == 1 and whole_rows(1, node.attrs["dilation"]) and x[3] % 2 != 0


# ---- the ops -----------------------------------------------------------------------------------

DIRECT = Form("conv_direct", (
    NV, Parameter("rows", "1: rows of the image in the outer loop, 0: panels of weights", most=1),
    device.UNIT))
BF16_CONV = Form("conv_bf16", DIRECT.parameters, "bf16")
Padding = tuple[tuple[int, int], tuple[int, int]] | None  # that is not in memory


def _infer(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
           strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
           inside: tuple[int, int, int, int] | None = None, padding: Padding = None,
           plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 5, f"{x} and {w} are not operands of a packed convolution")
    need(inside is None or all(isinstance(d, int) and 0 <= a < b <= d for d, a, b in zip(
        x.shape[1:3], inside[::2], inside[1::2], strict=True)), f"{inside} is not inside of {x}")
    need(inside is None or dilation[1] > 1 or inside[2:] == (0, x.shape[2]),
         "columns are left out of dilated windows only")
    groups, depth = w.shape[0], w.shape[3]
    need(depth * groups == window[1] * x.shape[3], f"the weights {w} do not fit {x}")
    return TensorType(sums(x.dtype),
                      (*padded_space(x, window, strides, dilation, padding), channels))


def _decompose(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
               inside: tuple[int, int, int, int] | None = None, padding: Padding = None,
               plan: Plan | None = None) -> Any:
    x, w = summed(padded(x, padding), w)
    if inside is not None:
        top, bottom, left, right = inside
        n, height, width, deep = x.shape
        kept = o.slice(x, start=(0, top, left, 0), limit=(n, bottom, right, deep), strides=(1,) * 4)
        x = o.pad(kept, lo=(0, top, left, 0), hi=(0, height - bottom, width - right, 0))
    groups, _, kh, deep, _ = w.shape
    kw = window[1]
    c, size = deep // kw, channels // groups
    flat = unpacked(o.transpose(w, perm=(0, 2, 1, 3, 4)), size)  # [G, KH, KW·C, O/G]
    plain = o.transpose(o.reshape(flat, shape=(groups, kh, kw, c, size)), perm=(0, 4, 3, 1, 2))
    return o.conv(x, o.reshape(plain, shape=(channels, c, kh, kw)), strides=strides,
                  rhs_dilation=dilation, groups=groups, channels_last=True)


def _flops(y: TensorType, _x: TensorType, w: TensorType, **_: Any) -> Dim:
    """Operations of a packed convolution; weights are [groups, panels, kh, kw·channels,
    columns]."""
    return 2 * elements(y) * product(w.shape[2:4])


OP = target_op("conv_direct", _infer, _decompose, DIRECT, _flops,
               "2-d convolution, channels last, with weights as `pack_conv` lays them out; x "
               "includes its padding, but for `padding`. Outside of `inside`, if it is given, x "
               "counts as zeros: the first row and the one behind the last, then the same of "
               "columns")


def _infer_bf16(x: TensorType, w: TensorType, *, channels: int, window: tuple[int, int],
                strides: tuple[int, int], dilation: tuple[int, int] = (1, 1),
                padding: Padding = None, plan: Plan | None = None) -> TensorType:
    need(x.rank == 4 and w.rank == 5 and x.dtype is w.dtype is dtypes.bfloat16,
         f"{x} and {w} are not operands of a bfloat16 convolution")
    groups, c = w.shape[0], x.shape[3]
    assert isinstance(groups, int) and isinstance(c, int)
    need(row_pairs(c // groups, window[1], whole_rows(groups, dilation)) == w.shape[3],
         f"the weights {w} do not fit {x}")
    return TensorType(dtypes.float32,
                      (*padded_space(x, window, strides, dilation, padding), channels))


def _decompose_bf16(x: Any, w: Any, *, channels: int, window: Any, strides: Any, dilation: Any,
                    padding: Padding = None, plan: Plan | None = None) -> Any:
    """Plain ops that mean the same; they drop the padding of the last pair and of the last
    panel."""
    groups, panels, kh, pairs, wide = w.shape
    kw, c, outputs, nr = window[1], x.shape[3] // groups, channels // groups, wide // 2
    runs = 1 if whole_rows(groups, dilation) else kw
    split = o.reshape(o.cast(w, dtype=dtypes.float32), shape=(groups, panels, kh, pairs, nr, 2))
    rows = o.reshape(o.transpose(split, perm=(0, 1, 4, 2, 3, 5)),
                     shape=(groups, panels * nr, kh, runs, pairs * 2 // runs))
    taps = o.slice(rows, start=(0,) * 5, limit=(groups, outputs, kh, runs, kw * c // runs),
                   strides=(1,) * 5)
    plain = o.transpose(o.reshape(taps, shape=(channels, kh, kw, c)), perm=(0, 3, 1, 2))
    return o.conv(o.cast(padded(x, padding), dtype=dtypes.float32), plain, strides=strides,
                  rhs_dilation=dilation, groups=groups, channels_last=True)


OP_BF16 = target_op("conv_bf16", _infer_bf16, _decompose_bf16, BF16_CONV,
                    lambda *types, **attrs: 2 * _flops(*types, **attrs),
                    "2-d convolution in bfloat16, channels last, with weights as "
                    "`pack_conv_pairs` lays them out; the sums are float32")


# ---- plans and their costs ---------------------------------------------------------------------

def of_floats(s: Conv) -> bool:
    """Whether the sums are of floats, and a filter reads more than one channel."""
    return not s.dtype.is_integer and not s.depthwise


def direct_plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The widths of panels, and which loop is the outer one."""
    if target.grid and not all_bfloat16(s, target):
        return [DIRECT.plan(nv=nv, **device.unit(target, rules))
                for nv in device.widths(s, target)]
    pairs = bf16_plans(s, target, rules) if all_bfloat16(s, target) else []
    pairs = [p for p in pairs if rules.allows(assumed_by_pairs(s, p)) and not rules.in_order]
    return [] if pairs else _plans(DIRECT, s, target)


def bf16_plans(s: Conv, target: Target, rules: Rules) -> list[Plan]:
    """The same plans with dot products of bfloat16, if these are exact or the rules allow them."""
    allowed = rules.bf16 and target.bf16 and s.constant and not s.dtype.is_narrow
    if target.devices:
        wanted = allowed or all_bfloat16(s, target)
        return [BF16_CONV.plan(nv=nv) for nv in device.widths(s, target)] if wanted else []
    if all_bfloat16(s, target):
        return _plans(BF16_CONV, s, target)[:2]
    return _plans(BF16_CONV, s, target) if allowed else []


def _plans(form: Form, s: Conv, target: Target) -> list[Plan]:
    return [form.plan(nv=nv, rows=rows)
            for nv in widths(s.o // s.groups, target) for rows in (1, 0)]


def bf16_cost(s: Conv, p: Plan, t: Target) -> float:
    """Expected microseconds with dot products of pairs. The kernel before it rounds an operand
    that is not yet bfloat16."""
    rounded = 0 if s.dtype.is_narrow else s.n * s.h * s.sh * s.w * s.sw * s.c
    return conv_cost(s, p, t, t.dots, 2) + rounded / t.lanes / t.threads / t.mhz


def bf16_error(s: Conv, p: Plan) -> float:
    """The error of rounding the operands; none if they are bfloat16 already."""
    return 0.0 if s.dtype.is_narrow else rounding.bf16(s.kh * s.kw * s.c)


def direct(chosen: Chosen, x: Any, w: Any, **how: Any) -> Any:
    """The convolution node with filters in panels of output channels."""
    packed, s = o.pack_conv(w, nr=chosen.columns(), groups=how["groups"]), chosen.site
    inside = {"inside": (s.above, s.rows_read - s.below, s.left, s.columns_read - s.right)}
    return chosen.emit(OP, x, packed, **(inside if s.hidden else {}), **_window(w, how))


def by_pairs(chosen: Chosen, x: Any, w: Any, **how: Any) -> Any:
    """The bfloat16 convolution node with filters in pairs of channels."""
    nr, groups, dilation = chosen.columns(), how["groups"], how["dilation"]
    pairs = o.pack_conv_pairs(narrowed(w), nr=nr, groups=groups,
                              whole=whole_rows(groups, dilation))
    flat = o.reshape(pairs, shape=(*pairs.shape[:-2], nr * 2))
    return chosen.emit(OP_BF16, narrowed(x), flat, **_window(w, how))


def _window(w: Any, how: dict[str, Any]) -> dict[str, Any]:
    given = {key: v for key, v in how.items() if key != "groups"}
    return {"channels": w.shape[0], "window": w.shape[2:], **given}


def assumed_by_pairs(s: Conv, _: Plan) -> Assumption:
    """Where filters hold zeros that the model does not have, or pair one with an odd channel."""
    return "finite" if s.zeros or s.c // s.groups % 2 else "nothing"


SERVES = (
    Alternative(Conv, DIRECT, direct_plans, device.usually(conv_cost), direct, takes=of_floats,
                usual=True,
                weights=lambda s, p, t: panel_bytes(s, s.kh * s.kw, p.get("nv", t.nv), 4, t),
                error=lambda s, p: device.error(s.kh * s.kw * s.c, p), assumes=device.assumed),
    Alternative(Conv, BF16_CONV, bf16_plans, device.usually(bf16_cost), by_pairs, takes=of_floats,
                weights=lambda s, p, t: panel_bytes(s, s.kh * s.kw, p.get("nv", t.nv), 2, t),
                error=bf16_error, assumes=assumed_by_pairs, in_order=never))

register(Record(
    Contract("conv_direct", "a direct convolution, channels last", MACROS,
             (*POINTERS, device.SLABS), meaning, HOOK, touches, grain="shares", teams=teams,
             languages={"c": ".h", "cuda": "_cuda.h", "opencl": "_opencl.h"}),
    {"conv_direct": lower, "conv_bf16": partial(lower, pairs=True)}, reads, serves=SERVES))
