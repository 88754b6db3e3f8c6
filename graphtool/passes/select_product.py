"""select's products: a matmul becomes the kernel that is best for its site, its weights packed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from graphtool import dtypes
from graphtool.choice import Product
from graphtool.choice.alternatives import Rules, choose
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import OPS
from graphtool.ir.trace import Tracer
from graphtool.symbolic import Dim, bounds, product
from graphtool.target import Target

MOVES = frozenset({"reshape", "transpose", "slice", "reverse", "pad", "concat"})
UNKNOWN = 128  # what an open dim without bound is taken for


@dataclass(frozen=True)
class Goal:
    """What kernels are chosen for: the machine, and what may be chosen."""

    target: Target
    rules: Rules


def matmul(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The product as a target op; None where no kernel suits it."""
    if x.dtype is not w.dtype or x.dtype not in (dtypes.float32, dtypes.bfloat16):
        return None
    across = bool(node.attrs["transpose_a"])
    if across:
        x = OPS["transpose"](x, perm=_swapped(x.ndim))
    n = w.shape[-2 if node.attrs["transpose_b"] else -1]
    constant = is_constant(w)
    if not isinstance(n, int) or n < goal.target.lanes // 2:
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    if not constant and (bounds(rows)[1] or 1 << 20) < 4:
        return None  # packing would cost as much as the product
    batch = 1 if w.ndim == 2 else product(node.outputs[0].type.shape[:-2])
    site = Product(cost_size(batch), cost_size(rows), n, cost_size(x.shape[-1]), constant, across,
                   all(isinstance(d, int) for d in (batch, rows)))
    return best_product(goal, site, x, w, node.attrs["transpose_b"])


def best_product(goal: Goal, site: Product, x: Any, w: Any, transpose: bool) -> Any:
    """x·w by the kernel that is best for the site."""
    # an image may get a margin, and then its rows are no walk that a library takes
    rules = goal.rules if x.ndim < 4 else replace(goal.rules, kernels="generated")
    choice = choose(site, goal.target, rules)
    if choice.candidate.kind == "blas":
        plain = OPS["transpose"](w, perm=(1, 0)) if transpose else w
        return OPS["matmul_blas"](x, plain, choice=str(choice))
    nr = choice.candidate.get("nv", goal.target.nv) * goal.target.lanes
    if x.dtype is dtypes.bfloat16:
        pairs = OPS["pack_pairs"](w, nr=nr, transpose=transpose)
        packed = OPS["reshape"](pairs, shape=(*pairs.shape[:-2], nr * 2))
        return OPS["matmul_bf16"](x, packed, n=site.n, choice=str(choice))
    if choice.candidate.kind == "bf16":
        packed = OPS["pack_bf16"](w, nr=nr, transpose=transpose)
        return OPS["matmul_bf16"](OPS["cast"](x, dtype=dtypes.bfloat16), packed, n=site.n,
                                  choice=str(choice))
    packed = OPS["pack"](w, nr=nr, transpose=transpose)
    return OPS["matmul_packed"](x, packed, n=site.n, choice=str(choice))


def cost_size(d: Dim) -> int:
    """The size that costs are computed for: the upper bound of an open dim."""
    return d if isinstance(d, int) else bounds(d)[1] or UNKNOWN


def is_constant(x: Tracer) -> bool:
    """Whether the value is known at build time: constants, or what is only moved from some."""
    made, pending = x.builder.made, [x.value]
    while pending:
        node = made.get(pending.pop())
        if node is None or node.op.name not in ("constant", *MOVES):
            return False
        pending += [v for v in node.inputs if isinstance(v, Value)]
    return True


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)
