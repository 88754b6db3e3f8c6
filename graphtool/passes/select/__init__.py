"""select: replaces contractions by the ops of kernels, with weights packed for them.

Packing is an op like any other: `fold` evaluates it if the weights are constant; if not, it runs as
a separate kernel. Nodes for which there is no kernel are not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.assume import Assumes
from graphtool.io.manifest_rows import Choice
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Graph, Node, Operand, Value
from graphtool.ir.op import OPS, Op
from graphtool.ir.replay import in_regions, prune, rebuild
from graphtool.ir.run_sizes import all_nodes
from graphtool.ir.trace import Builder, Tracer
from graphtool.kernels.choice.rules import Activations, Rules
from graphtool.kernels.record import has_kernels, has_text, serving
from graphtool.passes.decompose import decompose
from graphtool.passes.select import integer_convolution, integer_product
from graphtool.passes.select.attention import attention
from graphtool.passes.select.byte_attention import byte_attention
from graphtool.passes.select.channel_gates import gates
from graphtool.passes.select.convolution import conv
from graphtool.passes.select.elementwise_in_kernels import follow, in_phases
from graphtool.passes.select.goal import Goal, in_type
from graphtool.passes.select.pooling import spaced, window
from graphtool.passes.select.product import matmul, packed
from graphtool.passes.select.recurrence import recurrence, recurrence_grad
from graphtool.passes.select.shared_roundings import rounded_windows, shared_roundings
from graphtool.passes.select.sums_in_two_steps import long_sum, row_sums
from graphtool.rewrite.journal import Journal
from graphtool.target import Target, named

Selector = Callable[[Goal, Node, Sequence[Any]], Sequence[Any] | None]


def _contraction(floats: Callable[..., Any], integers: Callable[..., Any]) -> Selector:
    """Select by the element type of the sums; the result is converted to the type of the node's
    result."""
    def selector(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
        out = node.outputs[0].type
        if out.dtype not in (dtypes.float32, dtypes.int32, *dtypes.HALVES) or not all(
                isinstance(x, Tracer) for x in operands) or any(d == 0 for d in out.shape):
            return None
        if out.dtype.is_integer and not has_kernels(goal.target.language):
            return None  # in loops the node is simpler than the definition of a kernel's op
        result = (integers if out.dtype.is_integer else floats)(goal, node, *operands)
        return None if result is None else (in_type(node, result),)
    return selector


def _sums(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """A sum in two steps, if a kernel can do the first step or the sum is long."""
    x = operands[0]
    if not isinstance(x, Tracer):
        return None
    parts = None if goal.rules.in_order else row_sums(x, node.attrs)
    parts = parts or long_sum(x, node.attrs)
    return None if parts is None else (parts,)


def _by_op(goal: Goal, node: Node, operands: Sequence[Any]) -> Sequence[Any] | None:
    """The definition of an op whose kernel assumes more than is allowed; else None."""
    record = serving(node.op)
    if record is None or node.op.decompose is None:
        return None
    if record.assumes == "nothing" or goal.take(operands[0], Assumes(
            True, record.assumes, f"as the kernel {record.name} always does")):
        return None
    goal.note(operands[0], f"in its parts: the kernel {record.name} assumes finite numbers")
    return (node.op.decompose(*operands, **node.attrs),)


SELECTORS: dict[Op, Selector] = {
    o.matmul: _contraction(matmul, integer_product.matmul),
    o.conv: _contraction(conv, integer_convolution.conv),
    o.linear_nbits: packed, o.attention: attention,
    o.recurrence: recurrence, o.recurrence_grad: recurrence_grad,
    o.reduce_window: window, o.extreme_tap: spaced, o.reduce_sum: _sums}


def select(graph: Graph, *, target: Target | None = None, rules: Rules | None = None,
           march: str = "", winograd: int = 4, activations: Activations | None = None,
           notes: dict[str, str] | None = None,
           choices: dict[Value, Choice] | None = None, journal: Journal | None = None) -> Graph:
    """The graph with contractions as ops of kernels, chosen by estimated cost or by measurements.

    `march` selects for another target than the given one; `winograd` is the largest output tile
    allowed (0, 2 or 4); `activations` says which left operands of packed weights are rounded to 8
    bits: q8 all, exact none, asked those for which the model asks. `notes` receives other reasons
    for a choice, by the name of a node; `choices` the alternatives to each plan, by the node's
    first result; `journal` what was assumed.
    """
    aim = named(march or "native") if march or target is None else target
    allowed = rules or Rules()
    largest = 0 if allowed.small(aim) else min(winograd, allowed.winograd)
    goal = Goal(aim, replace(allowed, winograd=largest,
                             activations=activations or allowed.activations),
                {} if notes is None else notes)

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        operands = [Tracer(x, b) if isinstance(x, Value) else x for x in inputs]
        goal.narrowed.clear()
        if Trait.ELEMENTWISE in node.op.traits:
            moved = follow(node, inputs, b)
            if moved is None:
                moved = in_phases(node, inputs, b)
            return None if moved is None else (moved,)
        return SELECTORS.get(node.op, _by_op)(goal, node, operands)
    # decompose before, so that the contents of composites are seen, and after, because attention
    # without a kernel becomes ops such as softmax
    chosen = rebuild(byte_attention(goal, decompose(graph)), rewrite)
    chosen = decompose(chosen if goal.rules.in_order else gates(goal, chosen))
    chosen = rounded_windows(goal, prune(shared_roundings(goal, chosen)))
    chosen = _in_language(chosen, aim.language)
    if choices is not None:
        choices |= goal.choices
    if journal is not None:
        journal.assumed += goal.assumed
    return chosen


def _in_language(graph: Graph, language: str) -> Graph:
    """The graph with the definition of each op whose kernel has no text in the language, and of
    the composites in these, which no kernel takes any more."""
    lowered = tuple(op.name for op in OPS.values() if op.lowering is Lowering.STATEMENTS)

    def opens(op: Op) -> bool:
        return op.decompose is not None and not has_text(op, language)

    def rewrite(node: Node, inputs: tuple[Operand, ...], b: Builder) -> Sequence[Any] | None:
        if not opens(node.op):
            return None
        operands = [Tracer(x, b) if isinstance(x, Value) else x for x in inputs]
        out = node.op.decompose(*operands, **node.attrs)  # type: ignore[misc]
        return out if isinstance(out, tuple) else (out,)

    def opened(graph: Graph) -> Graph:
        return in_regions(prune(rebuild(graph, rewrite)), partial(decompose, keep=lowered))

    while any(opens(n.op) for n in all_nodes(graph)):
        graph = in_regions(graph, opened)
    return graph
