"""A kernel for rows of length one, x / max(‖x‖, ε): its op, how it is found, its cost and its C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphtool.extend import (
    Alternative,
    Area,
    Chosen,
    Contract,
    Form,
    Goal,
    Instance,
    Lowered,
    Lowering,
    Macro,
    Module,
    Node,
    Numbers,
    Op,
    OwnSite,
    Plan,
    Pointer,
    Record,
    Rows,
    Symbol,
    Target,
    TensorType,
    Trait,
    Use,
    add_kernel,
    add_op,
    add_rule,
    add_selector,
    add_site,
    composite,
    cost_size,
    dtype,
    ops,
    per_result,
    product,
    rule,
    sizes,
    symbol_of,
    trace,
)

__version__ = "1.0"
ROWS, LOOPS = Form("rows"), Form("loops")
START = 0.05  # microseconds that a kernel of its own costs
LATENCY = 4  # cycles from one addition to the next that needs it


# ---- what it computes: a composite that stays whole until kernels are chosen --------------------

def unit_rows(x: Any, *, eps: float) -> Any:
    """x divided by its Euclidean length along the last axis, at least eps."""
    squares = ops.reduce_sum(x * x, axes=(x.ndim - 1,))
    return x / ops.max(ops.sqrt(squares), eps)


composite(unit_rows, traits=Trait.KERNEL)


@rule(lambda x, axes, eps: ops.div(
    x, ops.max(ops.sqrt(ops.reduce_sum(ops.mul(x, x), axes=axes)), eps)))
def find_unit_rows(x: Any, axes: Any, eps: Any) -> Any:
    """The same, as exporters write it."""
    return ops.unit_rows(x, eps=eps) if axes == (x.ndim - 1,) and isinstance(eps, float) else None


add_rule(find_unit_rows, to="recognise")


# ---- the op of the kernel -----------------------------------------------------------------------

def infer(x: TensorType, *, eps: float, plan: Plan | None = None) -> TensorType:
    """Rows [rows, columns] of the same type."""
    return x


def evaluate(x: np.ndarray[Any, Any], *, eps: float, plan: Plan | None) -> np.ndarray[Any, Any]:
    """The reference meaning."""
    return np.asarray(x / np.maximum(np.sqrt((x * x).sum(-1, keepdims=True)), eps), x.dtype)


add_op(Op("norm_rows", infer, evaluate, lowering=Lowering.TEMPLATE, cost=per_result(4),
          plans=(ROWS,), doc="x / max(‖x‖, eps) for each row"))


# ---- the choice between the kernel and loops, by expected microseconds ---------------------------

@dataclass(frozen=True, slots=True)
class UnitRows(OwnSite):
    """What is chosen for: so many rows of so many elements."""

    rows: int
    columns: int


def rows_cost(site: UnitRows, plan: Plan, target: Target) -> float:
    """A start, and four cycles a vector."""
    return START + site.rows * site.columns * 4 / target.lanes / target.mhz


def loops_cost(site: UnitRows, plan: Plan, target: Target) -> float:
    """Loops add one element after the other: each addition waits for the one before."""
    return site.rows * site.columns * LATENCY / target.mhz


def by_rows(chosen: Chosen, x: Any, *, eps: float) -> Any:
    """The kernel's node, on all leading axes as one."""
    flat = ops.reshape(x, shape=(product(x.shape[:-1]), x.shape[-1]))
    return ops.reshape(chosen.emit(ops.norm_rows, flat, eps=eps), shape=x.shape)


def by_loops(chosen: Chosen, x: Any, *, eps: float) -> Any:
    """The ops that it consists of."""
    return unit_rows(x, eps=eps)


SERVES = (
    Alternative(UnitRows, LOOPS, lambda site, target, rules: [LOOPS.plan()], loops_cost, by_loops,
                usual=True),
    Alternative(UnitRows, ROWS, lambda site, target, rules: [ROWS.plan()], rows_cost, by_rows))


def select(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The composite by the best plan; other types than float32 have no kernel."""
    x, (*lead, columns) = operands[0], operands[0].shape
    if x.dtype.name != "float32" or not isinstance(columns, int):
        return (unit_rows(x, **node.attrs),)
    site = UnitRows(cost_size(product(lead)), columns)
    return (goal.best(site, x, **node.attrs),)


def alone(site: UnitRows) -> Module:
    """The operation alone, which `tune` builds by each plan and measures."""
    rows = TensorType(dtype("f32"), (site.rows, site.columns))
    return Module(trace(lambda x: ops.unit_rows(x, eps=1e-6), [rows], ["x"]), ("y",))


add_site("unit_rows", UnitRows, alone)
add_selector("unit_rows", select)


# ---- the C: norm_rows.h, its macros, and what they are at one use --------------------------------

def meaning(t: Instance) -> None:
    """What the header computes, for the interpreter of loops."""
    rows, columns, step = t.sizes("ROWS COLS XR")
    t.rows(evaluate(t.array("X", (rows, columns), (step, 1)), eps=t.get("EPS"), plan=None))


def touches(t: Numbers) -> Iterator[Area | Rows]:
    """What the header touches: rows of X, and the hook's indices, which it gives whole rows."""
    rows, columns, step = t.sizes("ROWS COLS XR")
    yield Rows((rows, columns))
    yield Area("X", (rows, columns), (step, 1))


def lower(use: Use) -> Lowered:
    """The macros of one use; the epilogue is what was fused behind it."""
    x, (rows, columns) = use.view(0), use.out.type.shape
    r, c = Symbol("r", 0, None, rows), Symbol("c", 0, None)
    hook = use.epilogue((r, c), (symbol_of(r), symbol_of(c)))
    macros = {"ROWS": rows, "COLS": columns, "XR": x.strides[0],
              "EPS": float(np.float32(use.node.attrs["eps"]))}
    return Lowered(use.template("norm_rows", macros, {"X": (x.buffer, x.offset)}, hook),
                   rows * columns * 4)


add_kernel(Record(Contract(
    "norm_rows", "rows divided by their length",
    (*sizes(ROWS="rows", COLS="elements of a row", XR="elements from a row to the next"),
     Macro("EPS", "number", "the least length")),
    (Pointer("X", "the rows"),), meaning, ("r", "c"), touches), {"norm_rows": lower},
    serves=SERVES),
    Path(__file__).with_name("norm_rows.h"))
