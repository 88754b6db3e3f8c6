"""blas.h: products by a CBLAS library, on weights that are not packed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphtool import ops as o
from graphtool.kernels.gemm import GEMM, plain
from graphtool.kernels.kit import (
    Alternative, Area, Chosen, Contract, Form, Instance, Lowered, Numbers, Plan, Pointer,
    Product, Record, Rows, Rules, Symbol, Target, TensorType, UnsupportedError, Use, fetched,
    if_zeros, need, never, product, product_cost, register, round_up, rows_by_columns, sizes,
    symbol_of, target_op, unflatten_index)
from graphtool.loops.pull import row_stride

MACROS = sizes(M="rows of A", N="columns of B", K="columns of A",
               LDA="elements between the starts of adjacent rows of A")
POINTERS = (Pointer("A", "the left-hand side"), Pointer("B", "the right-hand side, dense"),
            Pointer("WORK", "M rows of N rounded up to 16", writes=True))


def meaning(t: Instance) -> None:
    """One product, as the C computes it."""
    t.rows(o.blas(t.read("A"), t.read("B")), 0)


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the C touches."""
    m, n, k, lda = t.sizes("M N K LDA")
    yield Rows((1, m, n))
    yield Area("A", (m, k), (lda, 1))
    yield Area("B", (k, n))
    yield Area("WORK", (m, -(-n // 16) * 16), aligned=True)


def lower(use: Use) -> Lowered:
    """All rows are computed in one product, so they must be at equal distances."""
    a, b = use.view(0), use.view(1)
    *rows, n = use.out.type.shape
    m, step = product(tuple(rows)), row_stride(a)
    if step is None:
        raise UnsupportedError("GT2006", f"{use.out.hint}: a BLAS library needs rows at equal "
                                         f"distances",
                               hint="build with --kernels generated")
    at, row, first = Symbol("b", 0, None), Symbol("m", 0, None, m), Symbol("n", 0, None)
    inner = unflatten_index(symbol_of(row), tuple(rows)) if m != 1 else (0,) * len(rows)
    work = use.scratch(m * round_up(n, 16))
    macros = {"M": m, "N": n, "K": a.shape[-1], "LDA": step}
    pointers = {"A": (a.buffer, a.offset), "B": (b.buffer, b.offset), "WORK": (work, 0)}
    hook = use.epilogue((at, row, first), (*inner, symbol_of(first)),
                         symbol_of(row) if len(rows) > 1 else None)
    return Lowered(use.template("blas", macros, pointers, hook), m * n * a.shape[-1] * 2)


# ---- the op ------------------------------------------------------------------------------------

BLAS = Form("blas")


def _infer(a: TensorType, b: TensorType, *, plan: Plan | None = None) -> TensorType:
    need(a.rank >= 2 and b.rank == 2 and a.shape[-1] == b.shape[0],
         f"{a} and {b} are not operands of a product")
    return TensorType(a.dtype, (*a.shape[:-1], b.shape[1]))


OP = target_op("blas", _infer, lambda a, b, *, plan=None: o.matmul(a, b), BLAS, rows_by_columns,
               "a·b, computed by a CBLAS library")


# ---- plans and their costs ---------------------------------------------------------------------

_LIBRARY = 1.15  # relative to a generated kernel: a library packs both operands at every call


def plans(s: Product, target: Target, rules: Rules) -> list[Plan]:
    """One plan for products that are large enough, if the rules allow a library."""
    large = s.fixed and s.m >= 16 and s.n >= 64 and s.k >= 64
    return [BLAS.plan()] if rules.kernels != "generated" and plain(s) and large else []


def cost(s: Product, p: Plan, t: Target) -> float:
    """Expected microseconds, with the time to pack both operands."""
    packing = fetched(t, 2 * (s.m * s.k + s.n * s.k) * 4 * s.batch / t.threads, t.l2)
    return _LIBRARY * product_cost(s, GEMM.plan(), t) + packing


def make(chosen: Chosen, x: Any, w: Any, *, transpose: bool) -> Any:
    """The product node with dense weights [K, N]."""
    dense = o.transpose(w, perm=(1, 0)) if transpose else w
    return chosen.emit(OP, x, dense)


SERVES = (Alternative(Product, BLAS, plans, cost, make, takes=lambda s: not s.dtype.is_integer,
                      library=True, assumes=if_zeros, in_order=never),)

register(Record(
    Contract("blas", "a product by a CBLAS library", MACROS, POINTERS, meaning, ("b", "m", "n"),
             touches),
    {"blas": lower}, serves=SERVES))
