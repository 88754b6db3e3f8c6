"""Templates of products and convolutions of small integers."""

from __future__ import annotations

from graphtool import dtypes
from graphtool.lower.convolutions import PIXEL, image, tall
from graphtool.lower.members import read_values
from graphtool.lower.site import (
    Lowered,
    Macros,
    Site,
    batch_offset,
    epilogue,
    panel_vectors,
    row_stride,
    rows_of_tile,
    template,
)
from graphtool.lower.views import View
from graphtool.ops.indexing import unflatten_index
from graphtool.ops.integer import GROUP
from graphtool.symbolic import Dim, Symbol, product, symbol_of


def _kind(site: Site, w: View) -> tuple[Macros, int]:
    """The macros that name the element types and the tile's width, and vectors of a panel."""
    nr = w.shape[-1]
    assert isinstance(nr, int)
    nv = panel_vectors(site.target, nr // GROUP[w.dtype])
    return [("GT_PAIRS", str(int(w.dtype is dtypes.int16))), ("GT_NV", str(nv))], nv


def matmul_int(site: Site) -> Lowered:
    a, b = site.view(0), site.view(1)
    *lead, m, _ = site.out.type.shape
    shared = len(b.shape) == 3
    step = row_stride(a) if shared else None
    if shared and len(lead) == 2 and _in_margins(site):
        return _image_rows(site, a, b)
    if step is not None:  # all rows of A in one product
        return _product(site, a, b, (), product((*lead, m)), step, tuple((*lead, m)))
    if shared and len(lead) == 2:
        return _image_rows(site, a, b)
    return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))


def _product(site: Site, a: View, b: View, lead: tuple[Dim, ...], m: Dim, step: Dim,
             rows: tuple[Dim, ...]) -> Lowered:
    """`lead` independent products of m rows, `step` apart, that stand for the axes `rows`."""
    n, k, batch = site.out.type.shape[-1], a.shape[-1], product(lead)
    at, row, first = Symbol("b", 0, None, batch), Symbol("m", 0, None, m), Symbol("n", 0, None)
    which = unflatten_index(symbol_of(at), lead) if batch != 1 else (0,) * len(lead)
    inner = unflatten_index(symbol_of(row), rows) if m != 1 else (0,) * len(rows)
    kind, nv = _kind(site, b)
    macros: Macros = [
        *kind, ("GT_MR", str(rows_of_tile(site.target, nv, m))), ("GT_M", m), ("GT_N", n),
        ("GT_K", k), ("GT_LDA", step if m != 1 else k), ("GT_BATCH", batch)]
    pointers = [("GT_A(b)", a.buffer, batch_offset(a, which, len(rows) + 1)),
                ("GT_B(b)", b.buffer, batch_offset(b, which, 3))]
    hook = epilogue(site, (at, row, first), (*which, *inner, symbol_of(first)),
                    symbol_of(row) if len(rows) > 1 and not lead else None)
    return template(site, "int8_gemm.h", macros, pointers, hook), batch * m * n * k * 2


def _in_margins(site: Site) -> bool:
    """Whether an image with a margin is read or written behind the sums, so that a row's place
    would be computed by divisions."""
    views = (site.placement.views[v] for v in (*read_values(site.unit), *site.unit.outputs))
    return any(len(v.shape) == 4 and row_stride(v) is None for v in views)


def _image_rows(site: Site, x: View, w: View) -> Lowered:
    """Rows that lie in an image with a margin: a 1×1 convolution."""
    return _convolved(site, x, w, 1, x.shape[-1], (1, 1), (1, 1), (1, 1), False)


def conv_int(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    groups = w.shape[0]
    assert isinstance(groups, int)
    return _convolved(site, x, w, groups, a["depth"], a["window"], a["strides"], a["dilation"],
                      a["joined"])


def _convolved(site: Site, x: View, w: View, groups: int, depth: Dim, window: tuple[Dim, Dim],
               strides: tuple[Dim, Dim], dilation: tuple[Dim, Dim], joined: bool) -> Lowered:
    (kh, kw), out = window, site.out.type.shape
    kind, nv = _kind(site, w)
    mr, rows = tall(site.target, nv, out, x.strides[2] * strides[1], x.dtype.bytes)
    # where a kernel row covers adjacent elements, its columns and channels are one run
    adjacent = dilation[1] == 1 and x.strides[2] == depth
    whole = joined or (adjacent and isinstance(depth, int) and depth % GROUP[w.dtype] == 0)
    macros: Macros = [
        *kind, ("GT_MR", mr), ("GT_TALL", rows), *image(site), ("GT_GROUPS", groups),
        ("GT_O", out[3] // groups), ("GT_STEP", depth), ("GT_KH", kh), ("GT_SH", strides[0]),
        ("GT_SW", strides[1]), ("GT_DH", dilation[0]), ("GT_RUNS", 1 if whole else kw),
        ("GT_RUN", kw * depth if whole else depth), ("GT_HOP", dilation[1] * x.strides[2])]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    flops = product(out) * kh * kw * depth * 2
    return template(site, "int8_conv.h", macros, pointers, hook), flops


def depthwise_int(site: Site) -> Lowered:
    x, w, a = site.view(0), site.view(1), site.root.attrs
    (kh, kw), out = a["window"], site.out.type.shape
    macros: Macros = [
        ("GT_BH", str(w.shape[1])), ("GT_BW", "7"), *image(site), ("GT_C", x.shape[3]),
        ("GT_KH", kh), ("GT_KW", kw), ("GT_SH", a["strides"][0]), ("GT_SW", a["strides"][1]),
        ("GT_DH", a["dilation"][0]), ("GT_DW", a["dilation"][1])]
    pointers = [("GT_X", x.buffer, x.offset), ("GT_W", w.buffer, w.offset)]
    hook = epilogue(site, PIXEL, tuple(map(symbol_of, PIXEL)))
    return template(site, "int8_depthwise.h", macros, pointers, hook), product(out) * kh * kw * 2
