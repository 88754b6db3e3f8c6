"""Templates of products: packed, in bfloat16 pairs, and by a CBLAS library."""

from __future__ import annotations

from graphtool.errors import UnsupportedError
from graphtool.lower.convolutions import pointwise
from graphtool.lower.site import (
    Lowered,
    Macros,
    Site,
    batch_offset,
    epilogue,
    half_macros,
    panel_vectors,
    round_up,
    row_stride,
    rows_of_tile,
    scratch_of,
    template,
)
from graphtool.lower.views import View
from graphtool.lower.windows import transposed
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Dim, Symbol, product, symbol_of


def matmul(site: Site) -> Lowered:
    a, b = site.view(0), site.view(1)
    *lead, m, _ = site.out.type.shape
    nr = b.shape[-1]
    assert isinstance(nr, int)
    shared = len(b.shape) == 3
    if transposed(a):
        return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))
    step = row_stride(a) if shared else None
    if step is not None:  # all rows of A in one product
        return _product(site, a, b, (), product((*lead, m)), step, tuple((*lead, m)))
    if shared and len(lead) == 2:
        return pointwise(site, a, b)
    return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))


def _product(site: Site, a: View, b: View, lead: tuple[Dim, ...], m: Dim, step: Dim,
             rows: tuple[Dim, ...]) -> Lowered:
    """`lead` independent products of m rows, `step` apart, that stand for the axes `rows`."""
    n, k, nr = site.out.type.shape[-1], a.shape[-1], b.shape[-1]
    assert isinstance(nr, int)
    pairs = site.root.op.name == "matmul_bf16"  # two rows of the panel in one
    batch = product(lead)
    at, row, first = Symbol("b", 0, None, batch), Symbol("m", 0, None, m), Symbol("n", 0, None)
    which = unflatten_index(symbol_of(at), lead) if batch != 1 else (0,) * len(lead)
    inner = unflatten_index(symbol_of(row), rows) if m != 1 else (0,) * len(rows)
    nv = panel_vectors(site.target, nr // 2 if pairs else nr)
    macros: Macros = [
        *half_macros(a.dtype, pairs),
        ("GT_MR", str(rows_of_tile(site.target, nv, m))), ("GT_NV", str(nv)), ("GT_M", m),
        ("GT_N", n), ("GT_K", k), ("GT_LDA", step if m != 1 else k), ("GT_BATCH", batch)]
    if transposed(a):
        macros.append(("GT_LDK", a.strides[-1]))
    plan = site.plan
    if (kept := plan["resident"]) != 640:
        macros.append(("GT_RESIDENT", str(kept * 1024 or "INT64_MAX")))
    if split := plan["split"]:
        macros.append(("GT_BY_ROWS", str(int(split == 1))))
    own = len(rows) + 1
    pointers = [("GT_A(b)", a.buffer, batch_offset(a, which, own)),
                ("GT_B(b)", b.buffer, batch_offset(b, which, 3))]
    hook = epilogue(site, (at, row, first), (*which, *inner, symbol_of(first)),
                    symbol_of(row) if len(rows) > 1 and not lead else None)
    return template(site, "gemm.h", macros, pointers, hook), batch * m * n * k * 2


def library(site: Site) -> Lowered:
    """All rows in one product by a CBLAS library; where they are not one walk, one by one."""
    a, b = site.view(0), site.view(1)
    *rows, n = site.out.type.shape
    m, step = product(tuple(rows)), row_stride(a)
    if step is None:
        raise UnsupportedError("GT2006", f"{site.out.hint}: a library takes rows one step apart",
                               hint="build with --kernels generated")
    at, row, first = Symbol("b", 0, None), Symbol("m", 0, None, m), Symbol("n", 0, None)
    inner = unflatten_index(symbol_of(row), tuple(rows)) if m != 1 else (0,) * len(rows)
    work = scratch_of(site, m * round_up(n, 16), 1)
    macros: Macros = [("GT_M", m), ("GT_N", n), ("GT_K", a.shape[-1]), ("GT_LDA", step)]
    pointers = [("GT_A", a.buffer, a.offset), ("GT_B", b.buffer, b.offset), ("GT_WORK", work, 0)]
    hook = epilogue(site, (at, row, first), (*inner, symbol_of(first)),
                    symbol_of(row) if len(rows) > 1 else None)
    return template(site, "blas.h", macros, pointers, hook, (work,)), m * n * a.shape[-1] * 2
