"""Measures the plans of a site: which kernels can be timed, and their calls in turns."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.compile.as_is import build
from graphtool.errors import InputError, listed
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.plan import Plan
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Attention, Contraction, Conv, Packed, Product, Site
from graphtool.kernels.choice.tuning import merged, row
from graphtool.native import runtime
from graphtool.plugins import owner_of
from graphtool.target import Target

Operation = tuple[Callable[[Any, Any], Any], tuple[tuple[int, ...], tuple[int, ...]]]
PASSES = "select,simplify,fold,cse,dce,fuse"
LEAST, MOST = 7, 200  # calls of each candidate


def model(site: Site) -> Module:
    """A module of the operation alone, its operands in the site's type; weights that are known at
    build time are constants."""
    return MODELS[type(site)](site)


def is_measurable(site: Site) -> bool:
    """Whether there is a model of the operation alone."""
    return type(site) in MODELS


def closed(site: Site) -> Site:
    """The site as it is in its model, where no dim is open."""
    given: dict[str, Any] = {"fixed": True, "least": 0}
    names = {f.name for f in fields(site)}
    return replace(site, **{name: x for name, x in given.items() if name in names})


def _contraction(site: Contraction) -> Module:
    fn, shapes = _conv(site) if isinstance(site, Conv) else _product(site)
    if site.dtype.is_integer:
        return _of_integers(site, fn, shapes)
    kind = site.dtype
    if site.constant:
        w = np.random.default_rng(1).standard_normal(shapes[1], np.float32).astype(kind.numpy)
        graph = trace(lambda x: fn(x, w), [TensorType(kind, shapes[0])], ["x"])
    else:
        graph = trace(fn, [TensorType(kind, s) for s in shapes], ["x", "w"])
    return Module(graph, ("y",))


def _of_integers(site: Contraction, fn: Callable[[Any, Any], Any],
                 shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Module:
    """Bytes that are widened; where the kernel takes 16 bits, weights that need them."""
    wide, kinds = o.cast, (dtypes.uint8, dtypes.int8)
    if not site.constant:
        graph = trace(lambda x, w: fn(wide(x, dtype=dtypes.int32), wide(w, dtype=dtypes.int32)),
                      [TensorType(k, s) for k, s in zip(kinds, shapes, strict=True)], ["x", "w"])
        return Module(graph, ("y",))
    w = np.random.default_rng(1).integers(-20, 21, shapes[1]).astype(np.int32)
    if site.dtype is dtypes.int16:
        ends = w.reshape(shapes[1][0], -1)
        ends[:1], ends[1:2] = -200, 200
    graph = trace(lambda x: fn(wide(x, dtype=dtypes.int32), w),
                  [TensorType(dtypes.uint8, shapes[0])], ["x"])
    return Module(graph, ("y",))


def _attention(s: Attention) -> Module:
    groups = s.heads // s.shared
    shapes = [(s.heads, s.s, s.d), (groups, s.t, s.d), (groups, s.t, s.v),
              *([(s.s, s.t)] * s.masked), *([(groups, s.t, 1)] * 2 * (s.keys is dtypes.int8))]
    kinds = [dtypes.float32, s.keys, s.keys, *[dtypes.float32] * 3]

    def attend(q: Any, k: Any, v: Any, *more: Any) -> Any:
        k, v = (x if s.keys is dtypes.float32 else o.cast(x, dtype=dtypes.float32) for x in (k, v))
        if s.keys is dtypes.int8:
            k, v = k * more[-2], v * more[-1]
        return o.attention(q, k, v, *more[:s.masked], causal=s.causal)
    names = ["q", "k", "v", *["mask"] * s.masked, "key_factors", "factors"]
    graph = trace(attend, [TensorType(*both) for both in zip(kinds, shapes, strict=False)],
                  names[:len(shapes)])
    return Module(graph, ("y",))


def _conv(s: Conv) -> Operation:
    rows, columns = s.rows_read - s.above - s.below, s.columns_read - s.left - s.right
    return lambda x, w: o.conv(
        x, w, strides=(s.sh, s.sw), padding=((s.above, s.below), (s.left, s.right)),
        rhs_dilation=(s.dh, s.dw), groups=s.groups, channels_last=True), (
            (s.n, rows, columns, s.c), (s.o, s.c // s.groups, s.kh, s.kw))


def _product(s: Product) -> Operation:
    lead = (s.batch,) if s.batch > 1 else ()
    a = (s.k, s.m) if s.across else (s.m, s.k)
    return lambda x, w: o.matmul(x, w, transpose_a=s.across), (
        (*lead, *a), (*lead, s.k, s.n))


def _packed(s: Packed) -> Module:
    """A product with weights of few bits; its scales are float16 numbers, as those of most
    models."""
    rng, parts = np.random.default_rng(1), -(-s.k // s.block)
    w = rng.integers(0, 256, (s.n, parts, s.block * s.bits // 8)).astype(np.uint8)
    scales = rng.standard_normal((s.n, parts)).astype(np.float16).astype(np.float32)
    tables = [scales, np.full_like(scales, 2 ** (s.bits - 1) - 1)] if s.zeros else [scales]
    how: dict[str, Any] = {"bits": s.bits, "block": s.block,
                           "activations": "q8" if s.q8 else "exact"}
    x = TensorType(dtypes.float32, (s.m, s.k))
    if s.constant:
        graph = trace(lambda x: o.linear_nbits(x, *(x.builder.constant(a) for a in (w, *tables)),
                                               **how), [x], ["x"])
    else:
        graph = trace(lambda x, w: o.linear_nbits(x, w, *map(x.builder.constant, tables), **how),
                      [x, TensorType(dtypes.uint8, w.shape)], ["x", "w"])
    return Module(graph, ("y",))


MODELS: dict[type[Any], Callable[[Any], Module]] = {  # plug-ins add theirs
    Conv: _contraction, Product: _contraction, Attention: _attention, Packed: _packed}


def measure(site: Site, candidates: Sequence[Plan], target: Target, rules: Rules, *,
            seconds: float = 0.3, cc: str | None = None) -> dict[Plan, float]:
    """Microseconds of each candidate: the lower quartile of its calls."""
    calls = calls_of(site, candidates, target, rules, seconds=seconds, cc=cc)
    return {plan: quartile(times) for plan, times in calls.items()}


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


def _expect(site: Site, present: Collection[str]) -> None:
    """Raises InputError GT3108 where kernels of a site's model were chosen for other sites."""
    if str(site) not in present:
        owner = owner_of("site", str(site).partition("{")[0])
        raise InputError("GT3108", f"the model for {site} contains no such site",
                         where=owner.source if owner else "",
                         hint="it has " + listed(sorted(present)))


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
        for call, times in zip(calls, samples, strict=True):
            swept.sum()
            start = clock()
            call()
            times.append(1e6 * (clock() - start))
    return samples


def _clock(threads: int) -> Callable[[], float]:
    """Seconds; of one thread its time on the processor, because other programs may take the
    processor."""
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time if threads == 1 and fine else time.perf_counter
