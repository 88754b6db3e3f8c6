"""How a kernel takes part in the choice for a kind of site: its plans, their costs, and the nodes
that compute the site by a plan. Each kernel's module declares its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.errors import InputError
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Site
from graphtool.plan import Form, Plan
from graphtool.target import Target


@dataclass(frozen=True)
class Chosen:
    """A plan that was chosen for a site. `emit(op, *operands, **attrs)` makes the node of it."""

    site: Any
    plan: Plan
    target: Target
    emit: Callable[..., Any]

    def columns(self) -> int:
        """Columns of a panel of packed weights, by the plan's number of vectors."""
        return self.target.lanes * self.plan.get("nv", self.target.nv)


def nothing(*_: Any) -> int:
    """No bytes, and no error."""
    return 0


@dataclass(frozen=True)
class Alternative:
    """One way to compute the sites of a class, by plans of a form.

    plans(site, target, rules) → those that may be taken; none where the kernel does not suit.
    cost(site, plan, target) → expected microseconds with all the target's threads.
    make(chosen, *operands, **attrs) → the result; None where plain loops are this alternative.
    The operands and attributes of a Conv are x, w, strides, dilation, groups; of a Product x, w,
    transpose; of a Pool x, kind, window, strides, dilation; of an Attention those of `attend`; of
    a Recurrence those of its op, which is `op`, and `transpose` for its gradient.
    weights(site, plan, target) → bytes of weights that stay in memory as long as the model does.
    error(site, plan) → the rounding error that it brings in: rms over rms of the result.

    `usual`: it comes first, and rivals must be faster by a margin. `library`: it is taken only
    where that is asked for, or was measured to be faster.
    """

    site: type
    form: Form
    plans: Callable[[Any, Target, Rules], Sequence[Plan]]
    cost: Callable[[Any, Plan, Target], float]
    make: Callable[..., Any]
    weights: Callable[[Any, Plan, Target], int] = nothing
    error: Callable[[Any, Plan], float] = nothing
    takes: Callable[[Any], bool] = bool
    usual: bool = False
    library: bool = False


_ALTERNATIVES: list[Alternative] = []


def register(*alternatives: Alternative) -> None:
    """Add alternatives to the table; called at import only."""
    _ALTERNATIVES.extend(alternatives)
    _ALTERNATIVES.sort(key=lambda a: not a.usual)


def unregister(*alternatives: Alternative) -> None:
    """Take the alternatives of a plug-in out of the table."""
    for a in alternatives:
        _ALTERNATIVES.remove(a)


def alternatives(site: Site) -> Iterator[Alternative]:
    """Those for the site's class, the usual one first."""
    return (a for a in _ALTERNATIVES if isinstance(site, a.site) and a.takes(site))


def alternative(site: Site, plan: Plan) -> Alternative:
    """The one that a plan of the site is of. Raises InputError GT0631 where there is none."""
    for a in alternatives(site):
        if a.form.kind == plan.kind:
            return a
    raise InputError("GT0631", f"no kernel computes {site} by {plan}",
                     hint="the plan was edited, or is that of a kernel that is not there")
