"""select's products: a matmul becomes the kernel that is best for its site, its weights packed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from graphtool import dtypes
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Movement
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import OPS, Op
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice import Product
from graphtool.kernels.choice.candidates import Rules, choose
from graphtool.kernels.choice.cost import tiled
from graphtool.plan import Choice
from graphtool.rewrite.engine import array_of
from graphtool.symbolic import Dim, bounds, product
from graphtool.target import Target

_MOVES = Movement.ONCE | Movement.FILLS | Movement.JOINS
UNKNOWN = 128  # what an open dim without bound is taken for


@dataclass(frozen=True)
class Goal:
    """What kernels are chosen for: the machine, and what may be chosen.

    `notes` say in words, by the name of a node, what became of it where no costs were compared;
    `made` lists the first results of nodes with a plan, and what it was chosen over.
    """

    target: Target
    rules: Rules
    notes: dict[str, str] = field(default_factory=dict)
    made: list[tuple[Tracer, Choice]] = field(default_factory=list)

    def note(self, x: Tracer, words: str) -> None:
        """Of the node that is rewritten, of which x is an operand."""
        self.notes[x.builder.prefix] = words

    def planned(self, made: Choice, op: Op, *operands: Any, **attrs: Any) -> Any:
        """The op on these operands by the plan that was chosen; `op` is called as usual."""
        out = op(*operands, **attrs, plan=made.plan)
        self.made.append((out[0] if isinstance(out, tuple) else out, made))
        return out

    @property
    def choices(self) -> dict[Value, Choice]:
        """What was chosen, by the nodes' first results as they are called in the end."""
        return {y.builder.renamed.get(y.value, y.value): made for y, made in self.made}


def matmul(goal: Goal, node: Node, x: Tracer, w: Tracer) -> Any:
    """The product as a target op; None where no kernel suits it."""
    if x.dtype is not w.dtype:
        return None
    across = bool(node.attrs["transpose_a"])
    if across:
        x = OPS["transpose"](x, perm=_swapped(x.ndim))
    n = w.shape[-2 if node.attrs["transpose_b"] else -1]
    constant = is_constant(w)
    if not isinstance(n, int):
        return None
    rows = product(x.shape[:-1]) if w.ndim == 2 else x.shape[-2]
    if not constant and (bounds(rows)[1] or 1 << 20) < 4:
        return None  # packing would cost as much as the product
    batch = 1 if w.ndim == 2 else product(node.outputs[0].type.shape[:-2])
    site = Product(cost_size(batch), cost_size(rows), n, cost_size(x.shape[-1]), constant, across,
                   all(isinstance(d, int) for d in (batch, rows)), half(x.dtype))
    if n < goal.target.lanes // 2 and not tiled(
            site, goal.target, node.attrs["transpose_b"] or constant):
        return _dots(node, x, w, across)
    return best_product(goal, site, x, w, node.attrs["transpose_b"])


def _dots(node: Node, x: Tracer, w: Tracer, across: bool) -> Any:
    """The product in plain loops, along columns that are adjacent where that can be known now."""
    columns = array_of(w)
    if columns is None or columns.ndim != 2 or node.attrs["transpose_b"] or across:
        return None
    turned = w.builder.constant(np.ascontiguousarray(columns.T), hint=w.value.hint)
    return OPS["matmul"](x, turned, **{**node.attrs, "transpose_b": True})


def best_product(goal: Goal, site: Product, x: Any, w: Any, transpose: bool) -> Any:
    """x·w by the kernel that is best for the site, in the type of x."""
    # an image may get a margin, and then its rows are no walk that a library takes
    rules = goal.rules if x.ndim < 4 else replace(goal.rules, kernels="generated")
    made = choose(site, goal.target, rules)
    plan = made.plan
    if plan.kind == "blas":
        plain = OPS["transpose"](w, perm=(1, 0)) if transpose else w
        return goal.planned(made, OPS["matmul_blas"], x, plain)
    nr = plan.get("nv", goal.target.nv) * goal.target.lanes
    pairs = plan.kind == "bf16"
    left, right = (narrowed(x), narrowed(w)) if pairs else (x, w)
    y = goal.planned(made, multiplication(pairs), left, packed(right, nr, pairs, transpose),
                     n=site.n)
    return y if y.dtype is x.dtype else OPS["cast"](y, dtype=x.dtype)


def packed(w: Any, nr: int, pairs: bool, transpose: bool = False) -> Any:
    """A right-hand side in panels of nr columns, of rows or of pairs of rows."""
    if not pairs:
        return OPS["pack"](w, nr=nr, transpose=transpose)
    made = OPS["pack_pairs"](w, nr=nr, transpose=transpose)
    return OPS["reshape"](made, shape=(*made.shape[:-2], nr * 2))


def multiplication(pairs: bool) -> Op:
    """The product with what `packed` made; its sums are float32."""
    return OPS["matmul_bf16" if pairs else "matmul_packed"]


def half(dtype: DType) -> int:
    """How a site says that its operands have 16 bits."""
    return dtypes.HALVES.index(dtype) + 1 if dtype in dtypes.HALVES else 0


def narrowed(x: Any) -> Any:
    """x in bfloat16; of a padded image what is inside is, so that its maker can do it."""
    if x.dtype is dtypes.bfloat16:
        return x
    node = x.builder.made.get(x.value)
    if node is not None and node.op.name == "pad" and isinstance(node.inputs[0], Value):
        return OPS["pad"](narrowed(Tracer(node.inputs[0], x.builder)), **node.attrs)
    return OPS["cast"](x, dtype=dtypes.bfloat16)


def cost_size(d: Dim) -> int:
    """The size that costs are computed for: the upper bound of an open dim."""
    return d if isinstance(d, int) else bounds(d)[1] or UNKNOWN


def is_constant(x: Tracer) -> bool:
    """Whether the value is known at build time: constants, or what is only moved from some."""
    made, pending = x.builder.made, [x.value]
    while pending:
        node = made.get(pending.pop())
        if node is None or not (node.op.lowering is Lowering.DATA or node.op.movement & _MOVES):
            return False
        pending += [v for v in node.inputs if isinstance(v, Value)]
    return True


def _swapped(rank: int) -> tuple[int, ...]:
    return (*range(rank - 2), rank - 1, rank - 2)

