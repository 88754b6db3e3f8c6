"""Measures the plans of one site: its model is built by each, and their calls are interleaved.

Before each call the second-level cache is swept, as the layers between two uses would.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from graphtool import passes
from graphtool.compile.as_is import build
from graphtool.errors import InputError, listed
from graphtool.ir.graph import Module
from graphtool.ir.plan import Plan
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Site
from graphtool.kernels.choice.tuning import merged, row
from graphtool.native import runtime
from graphtool.plugins import owner_of
from graphtool.target import Target
from graphtool.tune.models import closed, model

PASSES = "select,simplify,fold,cse,dce,fuse"
LEAST, MOST = 7, 200  # calls of each candidate


def measure(site: Site, candidates: Sequence[Plan], target: Target, rules: Rules, *,
            seconds: float = 0.3, cc: str | None = None) -> dict[Plan, float]:
    """Microseconds of each candidate: the lower quartile of its calls."""
    found = calls_of(site, candidates, target, rules, seconds=seconds, cc=cc)
    return {plan: quartile(own) for plan, own in found.items()}


def quartile(times: Sequence[float]) -> float:
    """The lower quartile: what disturbs a call only ever makes it longer."""
    return statistics.quantiles(times, n=4)[0]


def calls_of(site: Site, candidates: Sequence[Plan], target: Target, rules: Rules, *,
             seconds: float = 0.3, cc: str | None = None) -> dict[Plan, list[float]]:
    """Microseconds of each candidate's calls, which took turns.

    `seconds` is for all of them together, compiling apart. Raises CompilerError as `build` does.
    """
    alone = closed(site)
    module = model(alone)

    def by(plan: Plan) -> Module:
        tuned = replace(rules, tuning=merged([row(alone, target, {plan: 1.0})]))
        return passes.run(module, PASSES, verify=False, supply={"target": target, "rules": tuned})
    ready = [by(c) for c in candidates]
    _expect(alone, {c.site for m in ready for c in m.choices.values()})
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        def made(i: int) -> Path:
            return build(ready[i], Path(folder) / str(i), name="site", target=target, cc=cc,
                         jobs=1)
        with ThreadPoolExecutor(2) as pool:
            paths = list(pool.map(made, range(len(ready))))
        calls = [_call(path, target.threads) for path in paths]
        times = interleaved(calls, seconds, target)
    return dict(zip(candidates, times, strict=True))


def _expect(site: Site, found: Collection[str]) -> None:
    """Raises InputError GT3108 where kernels of a site's model were chosen for other sites."""
    if str(site) not in found:
        owner = owner_of("site", str(site).partition("{")[0])
        raise InputError("GT3108", f"the model for {site} contains no such site",
                         where=owner.source if owner else "",
                         hint="it has " + listed(sorted(found)))


def _call(path: Path, threads: int) -> Callable[[], None]:
    model = runtime.load(path, threads)
    rng = np.random.default_rng(0)
    shapes = {p.name: tuple(d for d in p.shape if isinstance(d, int)) for p in model.inputs}
    model.run({p.name: rng.integers(0, 100, shapes[p.name]).astype(p.dtype.numpy)
               if p.dtype.is_integer else
               rng.standard_normal(shapes[p.name], np.float32).astype(p.dtype.numpy)
               for p in model.inputs})
    return model.call


def interleaved(calls: Sequence[Callable[[], None]], seconds: float,
                target: Target) -> list[list[float]]:
    """Microseconds of the calls of each. One call of each at a time: a slow spell then hits all of
    them alike.
    """
    clock = _clock(target.threads)
    swept = np.ones(target.l2 // 2, np.float32)  # twice the cache
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while len(samples[0]) < MOST and (
            len(samples[0]) < LEAST or time.perf_counter() < end):
        for call, own in zip(calls, samples, strict=True):
            swept.sum()
            start = clock()
            call()
            own.append(1e6 * (clock() - start))
    return samples


def _clock(threads: int) -> Callable[[], float]:
    """Seconds; of one thread those that it has run, as other programs may take its processor."""
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time if threads == 1 and fine else time.perf_counter
