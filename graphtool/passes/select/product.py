"""select's products: a matmul becomes the kernel that is best for its site, its weights packed.

Weights that the model packs in blocks are unpacked to float32, or read with activations of 8 bits
where the model or the user asks for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.dtypes import DType
from graphtool.ir.graph import Node
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.choose import plans
from graphtool.kernels.choice.sites import Packed, Product
from graphtool.kernels.gemm import worth_tiles
from graphtool.passes.select.goal import Goal, is_constant
from graphtool.rewrite.engine import array_of
from graphtool.symbolic import bounds, product, typical_size


def matmul(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The product as a target op; None if there is no kernel for it."""
    if x.dtype is not w.dtype:
        return None
    across = bool(node.attrs["transpose_a"])
    if across:
        x = o.transpose(x, perm=_swapped(x.ndim))
    n = w.shape[-2 if node.attrs["transpose_b"] else -1]
    constant = is_constant(w)
    if not isinstance(n, int):
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    if not constant and (bounds(rows)[1] or 1 << 20) < 4:
        return None  # packing would cost as much as the product
    batch = 1 if w.ndim == 2 else product(node.outputs[0].type.shape[:-2])
    site = Product(typical_size(batch), typical_size(rows), n, typical_size(x.shape[-1]),
                   constant, across,
                   all(isinstance(d, int) for d in (batch, rows)), x.dtype)
    if n < goal.target.lanes // 2 and not worth_tiles(
            site, goal.target, node.attrs["transpose_b"] or constant):
        return _dots(node, x, w, across)
    return best_product(goal, site, x, w, node.attrs["transpose_b"], node.attrs["dtype"])


def _dots(node: Node, x: Tracer, w: Tracer, across: bool) -> Any:
    """The product in plain loops, along columns that are adjacent if that is known now."""
    columns = array_of(w)
    if columns is None or columns.ndim != 2 or node.attrs["transpose_b"] or across:
        return None
    transposed = w.builder.constant(np.ascontiguousarray(columns.T), hint=w.value.hint)
    return o.matmul(x, transposed, **{**node.attrs, "transpose_b": True})


def best_product(goal: Goal, site: Product, x: Any, w: Any, transpose: bool,
                 dtype: DType | None = None) -> Any:
    """x·w by the best kernel for the site, in the type `dtype` or that of x."""
    # an image may get a margin, and then its rows are not at equal distances, as a library needs
    rules = goal.rules if x.ndim < 4 else replace(goal.rules, kernels="generated")
    y = goal.best(site, x, w, rules=rules, transpose=transpose)
    wanted = dtype or x.dtype
    return y if y.dtype is wanted else o.cast(y, dtype=wanted)


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)


def packed(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The product by the best kernel; its definition where no kernel may compute it."""
    x, w, scales, *rest = operands
    zeros = rest[0] if rest else None
    tables = [v for v in (w, scales, zeros) if v is not None]
    m, n, k = x.shape[0], w.shape[0], x.shape[1]
    if x.dtype is dtypes.float32 and isinstance(n, int) and isinstance(k, int) and n and k:
        asked = node.attrs["activations"] == "q8" and goal.rules.activations != "exact"
        site = Packed(typical_size(m), n, k, node.attrs["bits"], node.attrs["block"],
                      zeros is not None, all(map(is_constant, tables)), asked, isinstance(m, int))
        if plans(site, goal.target, goal.rules):
            return (goal.best(site, x, w, scales, zeros),)
        goal.note(x, "in its parts: kernels assume finite numbers, or sum in another order")
    assert node.op.decompose is not None
    return (node.op.decompose(*operands, **node.attrs),)
