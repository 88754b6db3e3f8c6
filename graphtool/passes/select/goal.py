"""What select chooses kernels for: the machine, the rules, and what it says of its choices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphtool import dtypes
from graphtool import ops as o
from graphtool.choice import Choice
from graphtool.dtypes import DType
from graphtool.ir.facets import Lowering, Movement
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import Op
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.alternatives import Chosen, alternative
from graphtool.kernels.choice.choose import choose
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Site
from graphtool.plan import chosen_plan
from graphtool.symbolic import Dim, bounds
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

    def best(self, site: Site, *operands: Any, rules: Rules | None = None, **attrs: Any) -> Any:
        """The site's result by the plan that is best for it, under the goal's rules or others; None
        where that is plain loops. kernels/choice/alternatives.py says which operands and attributes
        a class of sites has.
        """
        made = choose(site, self.target, rules or self.rules)
        plan = chosen_plan(made)

        def emit(op: Op, *operands: Any, **attrs: Any) -> Any:
            out = op(*operands, **attrs, plan=plan)
            self.made.append((out[0] if isinstance(out, tuple) else out, made))
            return out
        chosen = Chosen(site, plan, self.target, emit)
        return alternative(site, plan).make(chosen, *operands, **attrs)

    @property
    def choices(self) -> dict[Value, Choice]:
        """What was chosen, by the nodes' first results as they are called in the end."""
        return {y.builder.renamed.get(y.value, y.value): made for y, made in self.made}


def half(dtype: DType) -> int:
    """How a site says that its operands have 16 bits."""
    return dtypes.HALVES.index(dtype) + 1 if dtype in dtypes.HALVES else 0


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


def in_type(node: Node, y: Any) -> Any:
    """y in the type of the node's result."""
    own = node.outputs[0].type.dtype
    return y if y.dtype is own else o.cast(y, dtype=own)
