"""What passes assumed: the rows that a module keeps of a journal, and their check.

The check derives from the kernels that were chosen what must have been assumed. A pass that assumes
something without a record is found, and so is a rewrite that makes a forbidden assumption.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphtool.assume import ASSUMPTIONS, Assumed, Soundness
from graphtool.errors import InputError, InternalError
from graphtool.ir.graph import Module, Node
from graphtool.ir.plan import chosen_plan, of_plan
from graphtool.ir.run_sizes import all_nodes
from graphtool.kernels.choice.alternatives import alternative
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import is_site, site
from graphtool.kernels.record import serving
from graphtool.rewrite.journal import Journal


def claims(name: str, journal: Journal) -> Iterator[Assumed]:
    """What the pass `name` assumed: by its rules, and by what else it did."""
    for fired in journal:
        for need in fired.needs:
            yield Assumed(need, f"{name}.{fired.rule}", fired.why, fired.matched[:1])
    for r in journal.assumed:
        yield Assumed(r.needs, f"{name}.{r.by}" if r.by else name, r.why, r.values)


def refuse(module: Module, rules: Rules) -> None:
    """Raise InputError GT0636 if the module was made under an assumption that is not allowed."""
    for r in module.assumes:
        if r.needs in ASSUMPTIONS and r.needs not in rules.allowed:
            raise InputError(
                "GT0636", f"the graph was made under an assumption that may not be made here: "
                f"{r.needs} numbers, by {r.by}", where=", ".join(r.values[:8]),
                hint=f"begin with the model, or with a graph that `graphtool opt --assume "
                     f"{rules.assume}` has made")


def check_claims(before: Module, after: Module, rules: Rules) -> None:
    """Check what a pass assumed, which turned one module into the other.

    Raises InternalError GT7114 for what the rules do not allow, GT7115 for what is not recorded.
    """
    known = set(before.assumes)
    for r in after.assumes:
        if r.needs not in rules.allowed and r not in known:
            raise InternalError("GT7114", f"{r.by} assumes {r.needs} numbers, and {rules.assume} "
                                          "may be assumed", where=", ".join(r.values))
    recorded = {(name, r.needs) for r in after.assumes for name in r.values}
    for name, need, kernel in sorted(set(derived(after)) - set(derived(before))):
        if not any((root, need) in recorded for root in roots(name)):
            raise InternalError("GT7115", f"{kernel} assumes {need} numbers, and the module does "
                                          "not record it", where=name)


def derived(module: Module) -> Iterator[tuple[str, Soundness, str]]:
    """What the kernels of a module assume, as its nodes show it: node, class, kernel."""
    for node in all_nodes(module.graph):
        if (claim := _of_kernel(module, node)) is not None:
            yield (node.outputs[0].hint, *claim)


def _of_kernel(module: Module, node: Node) -> tuple[Soundness, str] | None:
    """What the kernel of a node assumes, and the kernel; None if it assumes nothing."""
    choice = module.choices.get(node.outputs[0]) if node.outputs else None
    plan = node.attrs.get("plan")
    if choice is not None and plan is not None and is_site(choice.site):
        chosen = chosen_plan(of_plan(choice, plan) or choice)
        kind = alternative(site(choice.site), chosen).assumes(site(choice.site), chosen)
        return None if kind == "nothing" else (kind, chosen.kind)
    record = serving(node.op)
    return None if record is None or record.assumes == "nothing" else (record.assumes, record.name)


def roots(name: str) -> list[str]:
    """The names from which `a.b.c` was derived: a, a.b, and itself."""
    words = name.split(".")
    return [".".join(words[:i + 1]) for i in range(len(words))]
