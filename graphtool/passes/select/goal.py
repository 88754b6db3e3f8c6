"""The goal of kernel selection: the machine, the rules, and the record of the choices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from graphtool import dtypes
from graphtool import ops as o
from graphtool.assume import Assumed, Assumes, Soundness
from graphtool.io.manifest_rows import Choice
from graphtool.ir.facets import Lowering, Movement
from graphtool.ir.graph import Node, Value
from graphtool.ir.op import Op
from graphtool.ir.plan import chosen_plan
from graphtool.ir.trace import Tracer
from graphtool.kernels.choice.alternatives import Chosen, alternative
from graphtool.kernels.choice.choose import choose
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Conv, Product, Site
from graphtool.kernels.packing.parts import splits
from graphtool.target import Target

T = TypeVar("T")
_MOVES = Movement.ONCE | Movement.FILLS | Movement.SEVERAL


@dataclass(frozen=True)
class Goal:
    """The goal of kernel selection: the machine, and the kernels that may be chosen.

    `notes` say, by the name of a node, what became of it if no costs were compared; `compared`
    lists the first results of nodes with a plan, and the alternatives; `assumed` has what was
    assumed on the way.
    """

    target: Target
    rules: Rules
    notes: dict[str, str] = field(default_factory=dict)
    compared: list[tuple[Tracer, Choice]] = field(default_factory=list)
    assumed: list[Assumed] = field(default_factory=list)
    narrowed: list[Soundness] = field(default_factory=list)  # what `take` took for this node

    def take(self, x: Tracer, proposed: Assumes[T] | T) -> T | None:
        """What is proposed for the node that is rewritten, x being one of its operands. What it
        assumes is recorded; None if that may not be assumed."""
        if not isinstance(proposed, Assumes):
            return proposed
        if proposed.needs not in self.rules.allowed:
            return None
        self.narrowed.append(proposed.needs)
        self.assumed.append(Assumed(proposed.needs, "", proposed.why, (x.builder.prefix,)))
        return proposed.value

    def note(self, x: Tracer, words: str) -> None:
        """Note something about the node that is rewritten; x is one of its operands."""
        self.notes[x.builder.prefix] = words

    def best(self, site: Site, *operands: Any, rules: Rules | None = None, **attrs: Any) -> Any:
        """The site's result by its best plan, under the goal's rules or others; None if plain loops
        are best.

        kernels/choice/alternatives.py lists the operands and attributes of each class of sites.
        """
        name = operands[0].builder.prefix
        if self.narrowed:
            site = _assuming(site)
        if isinstance(site, Product | Conv) and self.target.amx and _is_large(site, operands[1]):
            site = replace(site, large=True)
        choice = choose(site, self.target, rules or self.rules)
        plan = chosen_plan(choice)
        kernel = alternative(site, plan)
        if (kind := kernel.assumes(site, plan)) != "nothing":
            why = " ".join((kernel.assumes.__doc__ or "").split())
            self.assumed.append(Assumed(kind, plan.kind, why, (name,)))

        def emit(op: Op, *operands: Any, **attrs: Any) -> Any:
            out = op(*operands, **attrs, plan=plan)
            self.compared.append((out[0] if isinstance(out, tuple) else out, choice))
            return out
        chosen = Chosen(site, plan, self.target, emit)
        return kernel.make(chosen, *operands, **attrs)

    @property
    def choices(self) -> dict[Value, Choice]:
        """The alternatives to each chosen plan, by the final names of the nodes' first results."""
        return {y.builder.renamed.get(y.value, y.value): choice for y, choice in self.compared}


def _assuming(site: Site) -> Site:
    """The site, which says that something was assumed on the way to it."""
    match site:
        case Conv():
            return replace(site, zeros=True)
        case Product():
            return replace(site, dropped=True)
    return site


def is_constant(x: Tracer) -> bool:
    """Whether the value is known at build time: a constant, or a value that is only moved from
    constants."""
    return _sources(x) is not None


def is_finite(x: Tracer) -> bool:
    """Whether the value is known at build time, and holds neither NaN nor infinity."""
    held = _sources(x)
    return held is not None and all(np.isfinite(n.attrs["data"].source).all()
                                    for n in held if n.outputs[0].type.dtype.is_float)


def _is_large(site: Product | Conv, w: Tracer) -> bool:
    """Whether weights known at build time may hold numbers that are no sums of bfloat16 parts."""
    if not site.constant or site.dtype is not dtypes.float32:
        return False
    held = _sources(w)
    return held is None or not all(splits(n.attrs["data"].source) for n in held)


def if_finite(w: Tracer, value: T, why: str) -> T | Assumes[T]:
    """What is right if w has only finite numbers: it assumes that, unless it is known."""
    return value if is_finite(w) else Assumes(value, "finite", why)


def _sources(x: Tracer) -> list[Node] | None:
    """The nodes whose data the value is moved from; None if something else takes part."""
    made, pending, nodes = x.builder.made_by, [x.value], dict[Node, None]()
    while pending:
        node = made.get(pending.pop())
        if node is None or not (node.op.lowering is Lowering.DATA or node.op.movement & _MOVES):
            return None
        if node not in nodes:
            nodes[node] = None
            pending += [v for v in node.inputs if isinstance(v, Value)]
    return [n for n in nodes if n.op.lowering is Lowering.DATA]


def in_type(node: Node, y: Any) -> Any:
    """y converted to the type of the node's result."""
    dtype = node.outputs[0].type.dtype
    return y if y.dtype is dtype else o.cast(y, dtype=dtype)
