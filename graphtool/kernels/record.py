"""All facts about a kernel: one record, which its module registers.

The module is named like the text that it describes: c/compute/NAME.h. Passes, lowering, the loop
interpreter, the verifier and the C printer read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphtool.assume import Assumption
from graphtool.errors import InternalError
from graphtool.io.manifest_rows import Choice
from graphtool.ir import op as ops
from graphtool.ir.facets import Lowering, Trait
from graphtool.ir.graph import Node, TensorType, Value
from graphtool.ir.op import Op
from graphtool.ir.plan import Form, chosen_plan
from graphtool.ir.rounded_once import rounded_once
from graphtool.kernels.choice import alternatives
from graphtool.kernels.choice.alternatives import Alternative, alternative
from graphtool.kernels.choice.sites import is_site, site
from graphtool.kernels.use import Lowered, Use
from graphtool.loops import contract
from graphtool.loops.contract import Contract
from graphtool.loops.ir import Template
from graphtool.loops.program import Kernel
from graphtool.loops.pull import View
from graphtool.loops.walk import statements
from graphtool.ops.costs import Cost

Reads = Callable[[Node, Value, View], bool]


def rows_of_neighbours(node: Node, x: Value, view: View) -> bool:
    """Whether the operand can be read here: rows of adjacent elements; operands other than the
    first, which are packed, without gaps."""
    if any(w is x for w in node.inputs[1:]):
        return view.contiguous
    return view.shape[-1] == 1 or view.strides[-1] == 1


def anywhere(node: Node, x: Value, view: View) -> bool:
    """Accept operands with any strides."""
    return True


@dataclass(frozen=True)
class Record:
    """One kernel.

    `lower` has, for each op that it computes, the function that turns a use into statements,
    of one kernel or of several that run one after the other.
    `reads` says whether it can read an operand where it is in memory. `sums`: the axes over which
    it can sum what its hook stores. `serves`: the sites for which it can be chosen, with its plans
    and their costs. `assumes`: what a kernel without such sites assumes of the numbers.
    """

    contract: Contract
    lower: Mapping[str, Callable[[Use], Lowered | list[Lowered]]] = field(default_factory=dict)
    reads: Reads = rows_of_neighbours
    sums: tuple[int, ...] = ()
    serves: tuple[Alternative, ...] = ()
    assumes: Assumption = "nothing"

    @property
    def name(self) -> str:
        """The kernel's name, which is also that of its module and header."""
        return self.contract.name

    @property
    def fuses(self) -> bool:
        """Whether elementwise nodes can run on the rows that it finished."""
        return bool(self.contract.hook)


def target_op(name: str, infer: Callable[..., TensorType], decompose: Callable[..., Any],
              form: Form, cost: Cost, doc: str, *, traits: Trait = Trait.CONTRACTION) -> Op:
    """Add the op that stands for a kernel in a graph; its meaning is that of `decompose`.

    `form` is that of its plans: lowering reads them, values do not depend on them.
    """
    return ops.register(Op(name, infer, decompose=rounded_once(decompose), traits=traits,
                           cost=cost, doc=doc, lowering=Lowering.TEMPLATE, plans=(form,)))


KERNELS: dict[str, Record] = {}
_SERVING: dict[str, Record] = {}


def register(record: Record) -> Record:
    """Add a kernel to the table. Called at import only."""
    contract.register(record.contract)
    alternatives.register(*record.serves, languages=record.contract.languages)
    for op in record.lower:
        if op in _SERVING:
            raise InternalError("GT7001", f"{record.name} and {_SERVING[op].name} both compute "
                                          f"{op}")
        _SERVING[op] = record
    KERNELS[record.name] = record
    return record


def unregister(record: Record) -> None:
    """Remove a kernel of a plug-in from the table."""
    contract.CONTRACTS.pop(record.name)
    alternatives.unregister(*record.serves)
    KERNELS.pop(record.name)
    for op in record.lower:
        _SERVING.pop(op)


def serving(op: Op) -> Record | None:
    """The kernel that computes an op; None if plain loops compute it."""
    return _SERVING.get(op.name)


def sums(op: Op) -> tuple[int, ...]:
    """The axes over which the op's kernel can also sum what it computes; none for most."""
    record = serving(op)
    return () if record is None else record.sums


def has_text(op: Op, language: str) -> bool:
    """Whether the op can be emitted in a language: plain loops can, and kernels with a text."""
    record = serving(op)
    return record is None or language in record.contract.languages


def has_kernels(language: str) -> bool:
    """Whether any kernel has a text in a language."""
    return any(language in r.contract.languages for r in KERNELS.values())


def assumption(choice: Choice | None, kernel: Kernel) -> Assumption:
    """What a step assumes: by the choice of its kernel if there was one, else by the kernel."""
    if choice is not None and is_site(choice.site):
        chosen_site, plan = site(choice.site), chosen_plan(choice)
        return alternative(chosen_site, plan).assumes(chosen_site, plan)
    used = [KERNELS[s.kernel] for s in statements(kernel.body)
            if isinstance(s, Template) and s.kernel in KERNELS]
    return "finite" if any(k.assumes == "finite" for k in used) else "nothing"
