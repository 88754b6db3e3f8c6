"""gemm.h: products with a packed right-hand side, of float32 or of 16 bits."""

from __future__ import annotations

from graphtool.ir.graph import Node, Value
from graphtool.ir.op import OPS
from graphtool.kernels.conv import pointwise
from graphtool.kernels.record import Record, register, rows_of_neighbours
from graphtool.kernels.site import Lowered, Site
from graphtool.kernels.tiles import (
    HALF,
    PAIRS,
    TILE,
    batch_offset,
    half_macros,
    panel_vectors,
    rows_of_tile,
)
from graphtool.loops.contract import Contract, Macro, Pointer, sizes
from graphtool.loops.instance import Instance
from graphtool.loops.ir import MacroValue
from graphtool.loops.view import View, row_stride, transposed
from graphtool.ops.indexing import unflatten_index
from graphtool.symbolic import Dim, Symbol, product, symbol_of

RESIDENT = 640  # KB of rows of A that stay in the second-level cache, unless a plan says otherwise
ENDLESS = 2 ** 63 - 1
MACROS = (
    HALF, PAIRS, *TILE,
    *sizes(M="rows of A", N="columns of B", K="columns of A",
           LDA="elements from a row of A to the next"),
    Macro("BATCH", "size", "independent products", 1),
    Macro("LDK", "size", "elements from one of a row of A to the next", 1),
    Macro("RESIDENT", "size", "bytes of rows of A that stay in the second-level cache", None),
    Macro("BY_ROWS", "flag", "threads take rows each, or cut the whole sequence evenly", None))
POINTERS = (Pointer("A", "A of product b", ("b",)), Pointer("B", "packed B of product b", ("b",)))


def meaning(t: Instance) -> None:
    """A product for each b."""
    m, n, k, lda, ldk, nr = *t.sizes("M N K LDA LDK"), t.get("NV") * t.lanes
    pairs, panels = t.get("PAIRS"), -(-n // nr)
    packed = (panels, -(-k // 2), nr * 2) if pairs else (panels, k, nr)
    op = OPS["matmul_bf16" if pairs else "matmul_packed"]
    for b in range(t.get("BATCH")):
        t.rows(op(t.array("A", (m, k), (lda, ldk), (b,)), t.array("B", packed, at=(b,)), n=n), b)


def lower(site: Site) -> Lowered:
    """All rows in one product where they are one walk, else a product for each of the batch."""
    a, b = site.view(0), site.view(1)
    *lead, m, _ = site.out.type.shape
    shared = len(b.shape) == 3
    if transposed(a):
        return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))
    step = row_stride(a) if shared else None
    if step is not None:
        return _product(site, a, b, (), product((*lead, m)), step, tuple((*lead, m)))
    if shared and len(lead) == 2:
        return pointwise(site, a, b, site.node.op.name == "matmul_bf16")
    return _product(site, a, b, tuple(lead), m, a.strides[-2], (m,))


def _product(site: Site, a: View, b: View, lead: tuple[Dim, ...], m: Dim, step: Dim,
             rows: tuple[Dim, ...]) -> Lowered:
    """`lead` independent products of m rows, `step` apart, that stand for the axes `rows`."""
    n, k, nr = site.out.type.shape[-1], a.shape[-1], b.shape[-1]
    assert isinstance(nr, int)
    pairs = site.node.op.name == "matmul_bf16"  # two rows of the panel in one
    batch = product(lead)
    at, row, first = Symbol("b", 0, None, batch), Symbol("m", 0, None, m), Symbol("n", 0, None)
    which = unflatten_index(symbol_of(at), lead) if batch != 1 else (0,) * len(lead)
    inner = unflatten_index(symbol_of(row), rows) if m != 1 else (0,) * len(rows)
    nv = panel_vectors(site.target, nr // 2 if pairs else nr)
    macros: dict[str, MacroValue] = {
        **half_macros(a.dtype, pairs), "MR": rows_of_tile(site.target, nv, m), "NV": nv, "M": m,
        "N": n, "K": k, "LDA": step if m != 1 else k, "BATCH": batch}
    if transposed(a):
        macros["LDK"] = a.strides[-1]
    if (kept := site.plan["resident"]) != RESIDENT:
        macros["RESIDENT"] = kept * 1024 or ENDLESS
    if split := site.plan["split"]:
        macros["BY_ROWS"] = split == 1
    pointers = {"A": (a.buffer, batch_offset(a, which, len(rows) + 1)),
                "B": (b.buffer, batch_offset(b, which, 3))}
    hook = site.epilogue((at, row, first), (*which, *inner, symbol_of(first)),
                         symbol_of(row) if len(rows) > 1 and not lead else None)
    return Lowered(site.template("gemm", macros, pointers, hook), batch * m * n * k * 2)


def reads(node: Node, x: Value, view: View) -> bool:
    """Rows or columns of adjacent elements on the left; packed weights without gaps."""
    left = all(w is not x for w in node.inputs[1:])
    return (left and transposed(view)) or rows_of_neighbours(node, x, view)


register(Record(
    Contract("gemm", "a product with a packed right-hand side", MACROS, POINTERS, meaning,
             ("b", "m", "n")),
    {"matmul_packed": lower, "matmul_bf16": lower}, reads))
