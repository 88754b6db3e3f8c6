"""One way to compute the sites of a class: its plans, their costs, and the nodes that a plan gives.

Each kernel's module declares its own alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphtool.assume import Assumption
from graphtool.errors import InputError
from graphtool.ir.plan import Form, Plan
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Product, Site
from graphtool.target import Target


@dataclass(frozen=True)
class Chosen:
    """A plan that was chosen for a site. `emit(op, *operands, **attrs)` makes its node."""

    site: Any
    plan: Plan
    target: Target
    emit: Callable[..., Any]

    def columns(self) -> int:
        """The number of columns in a panel of packed weights: the plan's vectors times their
        width."""
        return self.target.lanes * self.plan.get("nv", self.target.nv)


def if_zeros(site: Any, _: Plan) -> Assumption:
    """Where filters hold zeros that the model does not have, as 0 times NaN is NaN, or where zeros
    that it has are not multiplied by weights that may be infinite."""
    return "finite" if site.zeros or (isinstance(site, Product) and site.dropped) else "nothing"


def never(site: Any) -> bool:
    """No site at all."""
    return False


def nothing(*_: Any) -> int:
    """0: no bytes of weights, and no rounding error."""
    return 0


def no_assumption(site: Any, _: Plan) -> Assumption:
    """A NaN or an infinity comes out where the definition of the site has it."""
    return "nothing"


@dataclass(frozen=True)
class Alternative:
    """One way to compute the sites of a class, with plans of one form.

    plans(site, target, rules) → the plans that are possible; none if the kernel cannot compute the
    site. cost(site, plan, target) → expected microseconds with all the target's threads.
    make(chosen, *operands, **attrs) → the result; None if this alternative is the plain loops. The
    operands and attributes of a Conv are x, w, strides, dilation, groups; of a Product x, w,
    transpose; of a Pool x, kind, window, strides, dilation; of an Attention those of `attend`; of a
    Recurrence those of its op, the op itself as `op`, and `transpose` for its gradient.
    weights(site, plan, target) → bytes of weights that stay in memory as long as the model does.
    error(site, plan) → the rounding error of the plan: rms of the error over rms of the result.
    assumes(site, plan) → finite if a NaN or an infinity may come out in other places than by the
    definition of the site.

    in_order(site) → whether each result is one running sum, rounded at each step, over the terms as
    they follow each other in memory: what `strict` asks for.

    `loops`: it is the plain loops, which can be emitted in any language.
    `usual`: it is listed first, and others must be faster by a margin. `library`: it is chosen only
    if the user asks for it, or if it was measured to be faster.
    """

    site: type
    form: Form
    plans: Callable[[Any, Target, Rules], Sequence[Plan]]
    cost: Callable[[Any, Plan, Target], float]
    make: Callable[..., Any]
    weights: Callable[[Any, Plan, Target], int] = nothing
    error: Callable[[Any, Plan], float] = nothing
    takes: Callable[[Any], bool] = bool
    loops: bool = False
    usual: bool = False
    library: bool = False
    assumes: Callable[[Any, Plan], Assumption] = no_assumption
    in_order: Callable[[Any], bool] = bool


_ALTERNATIVES: dict[Alternative, Collection[str]] = {}


def register(*alternatives: Alternative, languages: Collection[str]) -> None:
    """Add the alternatives of a kernel that has a text in these languages. Called at import
    only."""
    _ALTERNATIVES.update(dict.fromkeys(alternatives, languages))


def unregister(*alternatives: Alternative) -> None:
    """Remove the alternatives of a plug-in from the table."""
    for a in alternatives:
        _ALTERNATIVES.pop(a)


def has_text(a: Alternative, language: str) -> bool:
    """Whether the kernel of an alternative has a text in a language, as plain loops do in any."""
    return a.loops or language in _ALTERNATIVES[a]


def alternatives(site: Site) -> Iterator[Alternative]:
    """The alternatives for the site's class, the usual one first."""
    able = (a for a in _ALTERNATIVES if isinstance(site, a.site) and a.takes(site))
    return iter(sorted(able, key=lambda a: not a.usual))


def alternative(site: Site, plan: Plan) -> Alternative:
    """The alternative to which a plan of the site belongs. Raises InputError GT0631 if there is
    none."""
    for a in alternatives(site):
        if a.form.kind == plan.kind:
            return a
    raise InputError("GT0631", f"no kernel computes {site} by {plan}",
                     hint="the plan was edited, or it belongs to a kernel that is not installed")
