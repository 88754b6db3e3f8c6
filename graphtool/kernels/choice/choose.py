"""The plans of a site, and the choice among them: tuned if the tuning file knows the site, else the
one that should cost least. Every kernel that serves the site is asked, and nothing is known here.
"""

from __future__ import annotations

import graphtool.kernels  # noqa: F401  (fills the table of alternatives)
from graphtool.choice import Choice
from graphtool.kernels.choice.alternatives import alternative, alternatives
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Measurable, Site, site
from graphtool.plan import Plan, choice, chosen_plan
from graphtool.target import Target

BYTE = 5e-6  # microseconds that a byte of weights is worth: a MB must save 5 of them
MARGIN = 0.03  # a rival must be expected to be so much faster before it displaces the usual one


def plans(site: Site, target: Target, rules: Rules) -> list[Plan]:
    """All plans that a site may be computed by; where costs are equal the earlier one is taken."""
    return [p for a in alternatives(site) for p in a.plans(site, target, rules)]


def cost(site: Site, plan: Plan, target: Target) -> float:
    """Expected microseconds of the plan with all the target's threads."""
    return alternative(site, plan).cost(site, plan, target)


def weight(site: Site, plan: Plan, us: float, target: Target) -> float:
    """What plans are compared by: the time, and what the bytes of their weights are worth."""
    return us + BYTE * alternative(site, plan).weights(site, plan, target)


def added_error(made: Choice | None) -> float:
    """The relative error of the kernel that was chosen, to two digits; 0 for float32 sums."""
    if made is None:
        return 0.0
    found, plan = site(made.site), chosen_plan(made)
    return alternative(found, plan).error(found, plan)


def choose(site: Site, target: Target, rules: Rules) -> Choice:
    """The best plan of a site by measurement if there is one, else by cost, and its rivals.

    Weights count by what they save: a kernel that unfolds them must be so much faster.
    """
    def by_weight(rival: tuple[Plan, float]) -> float:
        return weight(site, *rival, target)
    allowed = plans(site, target, rules)
    measured = [(p, us) for p, us in rules.tuning.find(site, target) if p in allowed]
    if measured:
        return choice(str(site), "tuned", dict(sorted(measured, key=by_weight)))
    margin = MARGIN if isinstance(site, Measurable) else 0.0  # no width of a panel is the usual
    ranked = sorted(((p, cost(site, p, target) * (1 if i == 0 else 1 + margin))
                     for i, p in enumerate(allowed)), key=by_weight)
    libraries = [r for r in ranked if alternative(site, r[0]).library]
    if rules.kernels != "blas":
        return choice(str(site), "cost", dict(r for r in ranked if r not in libraries))
    return choice(str(site), "cost", dict(libraries) | dict(ranked))
