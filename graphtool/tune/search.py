"""tune: measures the alternatives of every site of an artifact; or checks what was measured before.

A site that occurs many times is measured once; sites that should cost most come first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from graphtool import passes
from graphtool.analysis.bounds import median_bounds, ratios
from graphtool.io.manifest_rows import Choice
from graphtool.ir.graph import Module
from graphtool.ir.plan import Plan, chosen_plan
from graphtool.kernels.choice.choose import choose, cost, plans, weight
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Site, is_site
from graphtool.kernels.choice.sites import site as read_site
from graphtool.kernels.choice.tuning import Tuning, key, key_of, merged, row
from graphtool.target import Target
from graphtool.tune.measure import calls_of, is_measurable, quartile

NOISE = 0.05  # a committed choice is refuted by a rival that is so much better


class Tuned(msgspec.Struct):
    """One site: how often it occurs, and microseconds of the candidates.

    `usual` is what would be taken without the measurement: by cost, or as the file says. It is
    `refuted` where the best is clearly better by what builds weigh: time, and bytes of weights.
    `low` and `high` are bounds of 95 % for its time over the best one's, from calls in turns; null
    for too few. It is only refuted if they exclude 1.
    """

    site: str
    count: int
    best: str
    us: float
    usual: str
    usual_us: float
    refuted: bool
    candidates: dict[str, float]
    low: float | None = None
    high: float | None = None


class TuneReport(msgspec.Struct):
    """`tune --json`; schemas/tune.schema.json is made from it. `left`: sites without a time."""

    threads: int
    sites: list[Tuned]
    left: list[str]
    ok: bool


@dataclass(frozen=True)
class Search:
    """What is measured for: the machine, what is allowed, and seconds for each site's calls."""

    target: Target
    rules: Rules
    seconds: float = 0.3
    cc: str | None = None


def records(module: Module, target: Target) -> list[Choice]:
    """The alternatives of a module's kernels; a module without choices runs through the passes
    first."""
    choices = module.choices or passes.run(module, supply={"target": target}).choices
    return list(choices.values())


def sites(records: Iterable[Choice | None], search: Search) -> dict[Site, int]:
    """The sites in the records that have alternatives, and how often they occur; costliest first.
    One without a model that can be measured is left as its cost says.
    """
    counts = Counter(read_site(r.site) for r in records if r is not None and is_site(r.site))
    open_ = {s: n for s, n in counts.items()
             if is_measurable(s) and len(plans(s, search.target, search.rules)) > 1}

    def expected(s: Site) -> float:
        first = plans(s, search.target, search.rules)[0]
        return counts[s] * cost(s, first, search.target)
    return dict(sorted(open_.items(), key=lambda item: -expected(item[0])))


def tune(sites: Mapping[Site, int], search: Search, budget: float | None,
         keep: Callable[[Tuning], None], known: Tuning) -> Iterator[Tuned]:
    """Measure the sites until the budget (in seconds) is spent; `keep` gets the rows so far."""
    end = time.perf_counter() + budget if budget is not None else None
    rows = list(known.rows.values())
    for site, count in sites.items():
        if end is not None and time.perf_counter() >= end:
            return
        times = _measured(site, search)
        rows.append(row(site, search.target, _quartiles(times)))
        keep(merged(rows))
        usual = chosen_plan(choose(site, search.target, _untuned(search.rules)))
        yield _tuned(site, count, times, usual, search.target)


def due(known: Tuning, search: Search) -> list[Site]:
    """The file's sites of this kind of machine and number of threads, if they can be measured."""
    sites = [read_site(r.site) for r in known.rows.values() if is_site(r.site)
             and key_of(r) == key(r.site, search.target, search.target.threads)]
    return [site for site in sites if is_measurable(site)]


def check(known: Tuning, search: Search) -> Iterator[Tuned]:
    """Measure the file's sites of this kind of machine again, and compare with what it chooses."""
    for sites in due(known, search):
        usual = chosen_plan(choose(sites, search.target, search.rules))
        yield _tuned(sites, 1, _measured(sites, search), usual, search.target)


def _untuned(rules: Rules) -> Rules:
    return replace(rules, tuning=Tuning())


def _measured(site: Site, search: Search) -> dict[Plan, list[float]]:
    allowed = plans(site, search.target, search.rules)
    return calls_of(site, allowed, search.target, search.rules, seconds=search.seconds,
                   cc=search.cc)


def _quartiles(calls: Mapping[Plan, Sequence[float]]) -> dict[Plan, float]:
    return {plan: quartile(times) for plan, times in calls.items()}


def _tuned(site: Site, count: int, calls: Mapping[Plan, Sequence[float]], usual: Plan,
           target: Target) -> Tuned:
    times = _quartiles(calls)
    weights = {c: weight(site, c, us, target) for c, us in times.items()}
    best = min(times, key=weights.__getitem__)
    low, high = median_bounds(ratios(calls[best], calls[usual])) or (None, None)
    refuted = weights[usual] > (1 + NOISE) * weights[best] and low is not None and low > 1
    return Tuned(str(site), count, str(best), round(times[best], 3), str(usual),
                 round(times[usual], 3), refuted,
                 {str(c): round(us, 3) for c, us in times.items()}, low, high)


def tune_lines(report: TuneReport) -> list[str]:
    """The totals in words."""
    before = sum(t.count * t.usual_us for t in report.sites)
    after = sum(t.count * t.us for t in report.sites)
    changed = sum(t.best != t.usual for t in report.sites)
    out = [f"{_sites(len(report.sites))}, {changed} of them with another kernel than before: "
           f"{before:.0f} → {after:.0f} µs over all their layers"] if report.sites else []
    return out + ([f"{_sites(len(report.left))} left out for want of time"] if report.left else [])


def _sites(count: int) -> str:
    return f"{count} site{'s' if count != 1 else ''}"
