"""Templates of convolutions and pools over images whose channels are adjacent."""

from __future__ import annotations

from graphtool import dtypes
from graphtool.ir.graph import Value
from graphtool.kernels.choice import BLOCK
from graphtool.lower.site import (
    Lowered,
    Macros,
    Site,
    epilogue,
    half_macros,
    panel_vectors,
    rows_of_tile,
    scratch_of,
    template,
)
from graphtool.lower.views import View
from graphtool.symbolic import Dim, Symbol, product, symbol_of
from graphtool.target import Target, tile_rows

PIXEL = (Symbol("n", 0, None), Symbol("oh", 0, None), Symbol("ow", 0, None), Symbol("o", 0, None))


def image(site: Site) -> Macros:
    """What the convolutions have in common: sizes of the result, strides of the input."""
    x = site.view(0)
    n, oh, ow, _ = site.out.type.shape
    return [("GT_BATCH", n), ("GT_OH", oh), ("GT_OW", ow), ("GT_XN", x.strides[0]),
            ("GT_XH", x.strides[1]), ("GT_XW", x.strides[2])]


def conv(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    groups, _, kh, _, nr = w.shape
    kw, pairs = a["window"][1], site.root.op.name == "conv_bf16"
    assert isinstance(nr, int) and isinstance(groups, int)
    nv = panel_vectors(site.target, nr // 2 if pairs else nr)
    out, c = site.out.type.shape, x.shape[3] // groups
    mr, rows = tall(site.target, nv, out, x.strides[2] * a["strides"][1])
    macros: Macros = [
        *half_macros(x.dtype, pairs),
        ("GT_MR", mr), ("GT_TALL", rows), ("GT_NV", str(nv)), *image(site),
        ("GT_GROUPS", groups), ("GT_C", c), ("GT_O", a["channels"] // groups),
        ("GT_KH", kh), ("GT_KW", kw), ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    if (rows_first := site.plan.get("rows")) is not None:
        macros.append(("GT_ROWS_FIRST", str(rows_first)))
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    return template(site, "conv.h", macros, pointers, hook), product(out) * kh * kw * c * 2


def tall(target: Target, nv: int, out: tuple[Dim, ...], step: Dim,
         size: int = 4) -> tuple[str, str]:
    """The tile of a convolution, MR and TALL: some whole rows where a map is narrow.

    Not where its pixels, of elements of `size` bytes, are a multiple of 4 KB apart: so many would
    meet in one set of the cache.
    """
    _, height, width, _ = out
    most = rows_of_tile(target, nv, height * width)
    alike = isinstance(step, int) and step * size % 4096 == 0
    if alike or not isinstance(height, int) or not isinstance(width, int) or 2 * width > most:
        return str(rows_of_tile(target, nv, width)), "1"
    bands = -(-height // (most // width))
    rows = -(-height // bands)
    return str(rows * width), str(rows)


def depthwise(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    kh, kw, c = w.shape
    out, plan = site.out.type.shape, site.plan
    macros: Macros = [
        *half_macros(x.dtype), ("GT_BH", str(plan["high"])), ("GT_BW", "7"),
        ("GT_CB", str(plan["block"])),
        *image(site), ("GT_C", c), ("GT_KH", kh), ("GT_KW", kw),
        ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    if c != x.shape[3]:  # neighbours as one pixel
        macros = [(k, c if k == "GT_XW" else v) for k, v in macros]
        macros.append(("GT_XT", x.shape[3] * a["dilation"][1]))
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    summed = row_pointers(site)
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    return template(site, "depthwise.h", [*macros, *row_steps(site)], [*pointers, *summed], hook,
                    tuple(b for _, b, _ in summed)), product(out) * kh * kw * 2


def _summed(site: Site) -> tuple[View, View] | None:
    """Where the rows lie that the kernel sums, and where their sums."""
    node = site.row_sum
    if node is None:
        return None
    y, = (v for v in node.inputs if isinstance(v, Value))
    return site.placement.views[y], site.placement.views[node.outputs[0]]


def row_steps(site: Site) -> Macros:
    """From pixel to pixel, and from channel to channel of the rows that are summed."""
    found = _summed(site)
    if found is None:
        return []
    y, sums = found
    return [("GT_YW", y.strides[2]), ("GT_YC", y.strides[3]), ("GT_SUMC", sums.strides[3])]


def row_pointers(site: Site) -> list[tuple[str, str, Dim]]:
    """Where row oh of image n starts, and its sums."""
    found = _summed(site)
    n, oh = map(symbol_of, PIXEL[:2])
    return [] if found is None else [
        (f"{name}(n, oh)", v.buffer, v.index((n, oh, 0, 0)))
        for name, v in zip(("GT_Y", "GT_SUMS"), found, strict=True)]


def pooled(site: Site) -> Lowered:
    x, a = site.view(0), site.root.attrs
    (kh, kw), out = a["window"], site.out.type.shape
    kind = ("sum", "max", "min").index(a["kind"])
    macros: Macros = [
        ("GT_KIND", str(kind)), ("GT_BW", str(BLOCK)), *image(site), ("GT_C", out[3]),
        ("GT_KH", kh), ("GT_KW", kw), ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    return (template(site, "pool.h", macros, [("GT_X", x.buffer, x.offset)], hook),
            product(out) * kh * kw)


def winograd(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    m, channels, c = a["tile"], a["channels"], x.shape[3]
    kind = half_macros(x.dtype)
    if site.root.op.name == "winograd_int":  # pairs of numbers of 16 bits
        nr, kind = nr // 2, [("GT_INTEGERS", "1" if x.dtype is dtypes.uint8 else "2")]
    nv = panel_vectors(site.target, nr)
    group = site.plan["group"]
    groups = a.get("groups", 1)
    rounded_c = -(-depth * groups // site.target.lanes) * site.target.lanes
    rounded_o = -(-channels // nr) * nr
    share = points * (group * (rounded_c + 16) + 16) + points * (group * (rounded_o + 16) + 16)
    shared = site.plan["shared"]
    work = scratch_of(site, share, 1 if shared else None)
    macros: Macros = [
        *kind, ("GT_TILE", str(m)),
        ("GT_MR", str(tile_rows(site.target, nv, group))), ("GT_NV", str(nv)),
        ("GT_GROUP", str(group)), *image(site), ("GT_C", c), ("GT_O", channels),
        *((("GT_GROUPS", groups),) if groups > 1 else ()),
        *((("GT_SHARED", "1"),) if shared else ())]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    flops = product(site.out.type.shape) * 9 * c // groups * 2
    return template(site, "winograd.h", macros, pointers, hook, (work,)), flops


def winograd_line(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    points, _, depth, nr = w.shape
    assert isinstance(points, int) and isinstance(depth, int) and isinstance(nr, int)
    nv, group, channels = panel_vectors(site.target, nr), site.plan["group"], a["channels"]
    share = points * (group * (-(-depth // site.target.lanes) * site.target.lanes + 16) + 16)
    share += points * (group * (-(-channels // nr) * nr + 16) + 16)
    work = scratch_of(site, share)
    n, oh, ow, _ = site.out.type.shape
    high, wide = zip(a["window"], x.strides[1:3], (oh, ow), a["dilation"], strict=True)
    across, along = (wide, high) if a["upright"] else (high, wide)
    macros: Macros = [
        ("GT_TILE", str(a["tile"])), ("GT_MR", str(tile_rows(site.target, nv, group))),
        ("GT_NV", str(nv)), ("GT_GROUP", str(group)), ("GT_UPRIGHT", str(int(a["upright"]))),
        ("GT_BATCH", n), ("GT_ACROSS", across[2]), ("GT_ALONG", along[2]), ("GT_C", x.shape[3]),
        ("GT_O", channels), ("GT_KA", across[0]), ("GT_KL", along[0]), ("GT_DA", across[3]),
        ("GT_DL", along[3]), ("GT_XN", x.strides[0]), ("GT_XA", across[1]), ("GT_XL", along[1])]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset),
                ("GT_WORK(t)", work, symbol_of(Symbol("t", 0, None)) * share)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    flops = product(site.out.type.shape) * product(a["window"]) * x.shape[3] * 2
    return template(site, "winograd_line.h", macros, pointers, hook, (work,)), flops


def pointwise(site: Site, x: View, w: View) -> Lowered:
    """Rows that lie in an image with a halo: a 1×1 convolution."""
    nr, pairs = w.shape[-1], site.root.op.name == "matmul_bf16"
    assert isinstance(nr, int)
    nv = panel_vectors(site.target, nr // 2 if pairs else nr)
    out, c = site.out.type.shape, x.shape[3]
    ones: Macros = [(f"GT_{m}", 1) for m in ("GROUPS", "KH", "KW", "SH", "SW", "DH", "DW")]
    mr, rows = tall(site.target, nv, out, x.strides[2])
    macros: Macros = [
        *half_macros(x.dtype, pairs), ("GT_MR", mr), ("GT_TALL", rows), ("GT_NV", str(nv)),
        *image(site), ("GT_C", c), ("GT_O", out[3]), *ones]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    return template(site, "conv.h", macros, pointers, hook), product(out) * c * 2
