"""Measures the plans of one site: a model of that one operation for each, their calls interleaved.

Before each call the second-level cache is swept, as the layers between two uses would.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool import dtypes, passes
from graphtool import ops as o
from graphtool.ir.graph import Module, TensorType
from graphtool.ir.op import OPS
from graphtool.ir.trace import trace
from graphtool.kernels.choice.rules import Rules
from graphtool.kernels.choice.sites import Attention, Contraction, Conv, Measurable, Product
from graphtool.kernels.choice.tuning import merged, row
from graphtool.native import runtime
from graphtool.native.build import build
from graphtool.plan import Plan
from graphtool.target import Target

PASSES = "select,simplify,fold,cse,dce,fuse"
LEAST, MOST = 7, 200  # calls of each candidate


def measure(site: Measurable, candidates: Sequence[Plan], target: Target, rules: Rules, *,
            seconds: float = 0.3, cc: str | None = None) -> dict[Plan, float]:
    """Microseconds of each candidate: the lower quartile of its calls.

    `seconds` is for all of them together, compiling apart. Raises CompilerError as `build` does.
    """
    closed = replace(site, fixed=True) if isinstance(site, Product | Attention) else site
    module = model(closed)
    with tempfile.TemporaryDirectory(prefix="graphtool-") as folder:
        def made(item: tuple[int, Plan]) -> Path:
            i, c = item
            tuned = replace(rules, tuning=merged([row(closed, target, {c: 1.0})]))
            ready = passes.run(module, PASSES, verify=False,
                               supply={"target": target, "rules": tuned})
            return build(ready, Path(folder) / str(i), name="site", target=target, cc=cc, jobs=1)
        with ThreadPoolExecutor(2) as pool:
            paths = list(pool.map(made, enumerate(candidates)))
        calls = [_call(path, target.threads) for path in paths]
        times = interleaved(calls, seconds, target)
    return dict(zip(candidates, times, strict=True))


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
             target: Target) -> list[float]:
    """Microseconds of each, its lower quartile. One call of each at a time: what disturbs a call
    only ever makes it longer, and a slow spell then hits all of them alike.
    """
    swept = np.ones(target.l2 // 2, np.float32)  # twice the cache
    samples: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while len(samples[0]) < MOST and (
            len(samples[0]) < LEAST or time.perf_counter() < end):
        for call, own in zip(calls, samples, strict=True):
            swept.sum()
            start = time.perf_counter()
            call()
            own.append(1e6 * (time.perf_counter() - start))
    return [statistics.quantiles(own, n=4)[0] for own in samples]


# ---- models of one operation -------------------------------------------------------------------

def model(site: Measurable) -> Module:
    """A module of the operation alone, its operands in the site's type; weights that are known at
    build time are constants."""
    match site:
        case Attention():
            return _attention(site)
        case Conv():
            fn, shapes = _conv(site)
        case Product():
            fn, shapes = _product(site)
    if site.integer:
        return _of_integers(site, fn, shapes)
    kind = dtypes.HALVES[site.half - 1] if site.half else dtypes.float32
    if site.constant:
        w = np.random.default_rng(1).standard_normal(shapes[1], np.float32).astype(kind.numpy)
        graph = trace(lambda x: fn(x, w), [TensorType(kind, shapes[0])], ["x"])
    else:
        graph = trace(fn, [TensorType(kind, s) for s in shapes], ["x", "w"])
    return Module(graph, ("y",))


def _of_integers(site: Contraction, fn: Callable[[Any, Any], Any],
                 shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> Module:
    """Bytes that are widened; where the kernel takes 16 bits, weights that need them."""
    wide, kinds = OPS["cast"], (dtypes.uint8, dtypes.int8)
    if not site.constant:
        graph = trace(lambda x, w: fn(wide(x, dtype=dtypes.int32), wide(w, dtype=dtypes.int32)),
                      [TensorType(k, s) for k, s in zip(kinds, shapes, strict=True)], ["x", "w"])
        return Module(graph, ("y",))
    w = np.random.default_rng(1).integers(-20, 21, shapes[1]).astype(np.int32)
    if site.integer == 2:
        ends = w.reshape(shapes[1][0], -1)
        ends[:1], ends[1:2] = -200, 200
    graph = trace(lambda x: fn(wide(x, dtype=dtypes.int32), w),
                  [TensorType(dtypes.uint8, shapes[0])], ["x"])
    return Module(graph, ("y",))


def _attention(s: Attention) -> Module:
    groups = s.heads // s.shared
    shapes = [(s.heads, s.s, s.d), (groups, s.t, s.d), (groups, s.t, s.v),
              *([(s.s, s.t)] * s.masked)]
    graph = trace(lambda *xs: o.attention(*xs, causal=s.causal),
                  [TensorType(dtypes.float32, shape) for shape in shapes],
                  ["q", "k", "v", "mask"][:len(shapes)])
    return Module(graph, ("y",))


Operation = tuple[Callable[[Any, Any], Any], tuple[tuple[int, ...], tuple[int, ...]]]


def _conv(s: Conv) -> Operation:
    rows = (s.h - 1) * s.sh + (s.kh - 1) * s.dh + 1
    columns = (s.w - 1) * s.sw + (s.kw - 1) * s.dw + 1
    return lambda x, w: o.conv(
        x, w, strides=(s.sh, s.sw), rhs_dilation=(s.dh, s.dw), groups=s.groups,
        channels_last=True), ((s.n, rows, columns, s.c), (s.o, s.c // s.groups, s.kh, s.kw))


def _product(s: Product) -> Operation:
    lead = (s.batch,) if s.batch > 1 else ()
    a = (s.k, s.m) if s.across else (s.m, s.k)
    return lambda x, w: o.matmul(x, w, transpose_a=s.across), (
        (*lead, *a), (*lead, s.k, s.n))
