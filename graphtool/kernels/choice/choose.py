"""All plans of a site, and the choice among them.

If the tuning file has measurements of the site, the fastest plan is chosen, else the one with the
lowest expected cost. Every kernel that can compute the site is asked; this module knows none of
them.
"""

from __future__ import annotations

import graphtool.kernels  # noqa: F401  (fills the table of alternatives)
from graphtool.io.manifest_rows import Choice
from graphtool.ir.plan import Plan, choice, chosen_plan
from graphtool.kernels.choice.alternatives import alternative, alternatives, has_text
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Attention, Contraction, Site, site
from graphtool.target import Target

BYTE = 5e-6  # a byte of weights counts as so many microseconds: a MB must save 5 µs
# another alternative must be expected to be faster by this share to replace the usual one
MARGIN = 0.03


def plans(site: Site, target: Target, rules: Rules) -> list[Plan]:
    """All plans that compute a site; if costs are equal, the first is chosen.

    Where no kernel of the site has a text in the target's language, the plans are those of all:
    the op of the one that is chosen becomes its definition.
    """
    able = [a for a in alternatives(site) if a.in_order(site) or not rules.in_order]
    candidates = [(a, p) for a in able for p in a.plans(site, target, rules)
                  if rules.allows(a.assumes(site, p))]
    written = [p for a, p in candidates if has_text(a, target.language)]
    return written or [p for _, p in candidates]


def cost(site: Site, plan: Plan, target: Target) -> float:
    """Expected microseconds of the plan with all the target's threads. Without a unit for floats
    these are computed by functions."""
    us = alternative(site, plan).cost(site, plan, target)
    floats = isinstance(site, Contraction) and site.dtype.is_float
    return us * target.soft if floats else us


def weight(site: Site, plan: Plan, us: float, target: Target) -> float:
    """The number that ranks plans: microseconds, plus the price of the bytes of their weights."""
    return us + BYTE * alternative(site, plan).weights(site, plan, target)


def added_error(choice: Choice | None) -> float:
    """The relative rounding error of the chosen kernel, to two digits; 0 for sums in float32."""
    if choice is None:
        return 0.0
    chosen_site, plan = site(choice.site), chosen_plan(choice)
    return alternative(chosen_site, plan).error(chosen_site, plan)


def choose(site: Site, target: Target, rules: Rules) -> Choice:
    """The best plan of a site and the other candidates: by measurements if there are any, else by
    cost.

    The bytes of a plan's weights count too: a kernel that makes weights larger must save time for
    it.
    """
    def by_weight(rival: tuple[Plan, float]) -> float:
        return weight(site, *rival, target)
    allowed = plans(site, target, rules)
    measured = [(p, us) for p, us in rules.tuning.find(site, target) if p in allowed]
    if measured:
        return choice(str(site), "tuned", dict(sorted(measured, key=by_weight)))
    usual = isinstance(site, Contraction | Attention)  # of others, no plan is the usual one
    margin = MARGIN if usual else 0.0
    ranked = sorted(((p, cost(site, p, target) * (1 if i == 0 else 1 + margin))
                     for i, p in enumerate(allowed)), key=by_weight)
    libraries = [r for r in ranked if alternative(site, r[0]).library]
    if rules.kernels != "blas":
        return choice(str(site), "cost", dict(r for r in ranked if r not in libraries))
    return choice(str(site), "cost", dict(libraries) | dict(ranked))
