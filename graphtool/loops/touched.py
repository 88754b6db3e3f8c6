"""What a kernel touches of each buffer, for numbers of the dims: loops, templates, hooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from graphtool.loops.ir import Stmt
from graphtool.loops.points import Points, positions
from graphtool.loops.program import Kernel
from graphtool.loops.spans import Intervals, Spans, touch
from graphtool.loops.verify_template import Env, Machine, template_spans
from graphtool.symbolic import Symbol

ACC = "acc"  # the row that a hook is given


def touched(kernel: Kernel, env: Env, machine: Machine, exact: bool = False) -> Spans:
    """The range of each parameter that a kernel touches.

    By default no condition is looked at, so it holds all that can happen; with `exact` the kernel
    is followed at points of its iteration space. A hook that leaves its row touches element -1 of
    a buffer that is no parameter. Raises InputError GT0375, GT0380 as `template_spans` does.
    """
    spans: Spans = {}
    types = {p.name: p.dtype for p in kernel.params}
    calls = template_spans(kernel.body, types, env, machine, spans)
    _follow(kernel.body, env, (), (), spans, exact)
    for hook, (*outer, last), here in calls:
        for first in sorted({0, last // 2, last - 1}):  # the parts in which a row comes
            found: Spans = {}
            part = {**here, hook.indices[-1].name: first, "count": last - first}
            _follow(hook.body, part, hook.indices, outer, found, exact)
            low, high = found.pop(ACC, (0, 0))
            if low < 0 or high >= last - first:
                touch(spans, f"{hook.name} {ACC}", -1, -1)
            for name, ends in found.items():
                touch(spans, name, *ends)
    return spans


def _follow(body: Iterable[Stmt], env: Env, indices: Iterable[Symbol], extents: Sequence[int],
            spans: Spans, exact: bool) -> None:
    """Add what statements touch for all values of `indices` below their extents."""
    names = [i.name for i, _ in zip(indices, extents, strict=False)]
    if exact:
        grid = positions(tuple(extents))
        fixed = {n: np.full(grid.shape[1], v) for n, v in env.items()}
        Points.at(fixed | dict(zip(names, grid, strict=True)), spans).body(body)
    else:
        given = {n: (0, e - 1) for n, e in zip(names, extents, strict=True)}
        Intervals({n: (v, v) for n, v in env.items()} | given, spans).body(body)
