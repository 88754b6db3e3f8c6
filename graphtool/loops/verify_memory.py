"""Checks that kernels and ports stay inside their buffers, for sizes that the dims allow.

Polynomials over open dims are not compared for all sizes: some are tried, and what cannot be shown
to be inside is refused. If data decide what a template touches, those data must be constants, and
the check reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphtool.errors import InputError
from graphtool.io.weights import Weight
from graphtool.loops.ir import Name, Stmt
from graphtool.loops.program import (
    Bind,
    Branch,
    Buffer,
    Kernel,
    Program,
    Repeat,
    Run,
    Step,
    Times,
    inner_steps,
    runs,
)
from graphtool.loops.sample_sizes import tried
from graphtool.loops.spans import WIDE, Intervals, Points, Spans, limits, positions, touch
from graphtool.loops.verify_kernel import fault
from graphtool.loops.verify_template import (
    Env,
    TemplateUse,
    decisive,
    starts,
    table_spans,
    template_spans,
)
from graphtool.loops.walk import kernel_symbols
from graphtool.symbolic import Poly, Symbol, evaluate, product, symbols

ACC = "acc"  # the row that a hook is given


def touched(kernel: Kernel, env: Env, lanes: int, exact: bool = False) -> Spans:
    """The range of each parameter that a kernel touches.

    By default no condition is looked at, so it holds all that can happen; with `exact` the kernel
    is followed at points of its iteration space. `env` may have numbers of the kernel too; others
    may be any. A hook that leaves its row touches element -1 of a buffer that is no parameter.
    Raises InputError GT0375, GT0380 as `template_spans` does.
    """
    spans: Spans = {}
    types = {p.name: p.dtype for p in kernel.params}
    calls = template_spans(kernel.body, types, env, lanes, spans)
    numbers = [n for n in kernel.numbers if n.name not in env]
    _follow(kernel.body, env, (), (), spans, numbers, exact)
    for hook, (*outer, last), here in calls:
        for first in sorted({0, last // 2, last - 1}):  # the parts in which a row comes
            result: Spans = {}
            part = {**here, hook.indices[-1].name: first, "count": last - first}
            _follow(hook.body, part, hook.indices, outer, result, numbers, exact)
            low, high = result.pop(ACC, (0, 0))
            if low < 0 or high >= last - first:
                touch(spans, f"{hook.name} {ACC}", -1, -1)
            for name, ends in result.items():
                touch(spans, name, *ends)
    return spans


def _follow(body: Iterable[Stmt], env: Env, indices: Iterable[Symbol], extents: Sequence[int],
            spans: Spans, numbers: Iterable[Name], exact: bool) -> None:
    """Add what statements touch for all values of `indices` below their extents, and for any
    `numbers`."""
    names = [i.name for i, _ in zip(indices, extents, strict=False)]
    if exact:
        grid = positions(tuple(extents))
        fixed = {n: np.full(grid.shape[1], v) for n, v in env.items()}
        points = Points.at(fixed | dict(zip(names, grid, strict=True)), spans)
        points.names |= {n.name: points.drawn(n.dtype) for n in numbers}
        points.body(body)
    else:
        given = {n: (0, e - 1) for n, e in zip(names, extents, strict=True)}
        given |= {n.name: limits(n.dtype) for n in numbers if not n.dtype.is_float}
        Intervals({n: (v, v) for n, v in env.items()} | given, spans).body(body)


def verify_memory(program: Program, where: str = "") -> None:
    """Raises InputError GT0375 for an access outside a buffer, GT0376 for a buffer that is larger
    than what the caller gives, or than the arena, or where no size is found to try, GT0380 for a
    template with wrong sizes."""
    try:
        for env in tried(program):
            _Check(program, env).check()
    except InputError as error:
        error.within(where)
        raise


def misfit(spans: Spans, sizes: Mapping[str, int]) -> tuple[str, float] | None:
    """A parameter that has too few elements for what is touched of it, and an element outside."""
    for name, (low, high) in spans.items():
        if low < 0 or high >= sizes.get(name, 0):  # 0: a hook's row
            return name, low if low < 0 else high
    return None


class _Check:
    """The check of a program for one set of sizes. What a kernel touches is found once."""

    def __init__(self, program: Program, env: Env) -> None:
        self.program, self.env = program, env
        self.kernels = {k.name: k for k in program.kernels}
        self.buffers = {b.name: b for b in program.buffers}
        self.sizes = {b.name: evaluate(b.size, env) for b in program.buffers}
        self.touched: dict[Any, Spans] = {}
        self.followed: dict[Any, Spans] = {}

    def check(self) -> None:
        """Raises InputError for the first fault."""
        for b in self.program.buffers:
            self.room(b)
        self.steps(self.program.steps)

    def steps(self, steps: Iterable[Step]) -> None:
        """Check steps, but for those of a loop that is never run."""
        for step in steps:
            match step:
                case Run():
                    self.run(step)
                case Bind(_, buffer, index):
                    at = evaluate(index, self.env)
                    if not 0 <= at < self.sizes[buffer]:
                        raise self.outside(buffer, at, self.buffers[buffer], step.label)
                case Branch(pred) | Repeat(pred) if self.sizes[pred] < 1:
                    raise self.outside(pred, 0, self.buffers[pred], step.label)
                case Times(_, extent) if evaluate(extent, self.env) <= 0:
                    continue
            self.steps(inner_steps(step))

    def room(self, b: Buffer) -> None:
        """Check that the caller's array, or the arena, has room for a buffer."""
        program, env, size = self.program, self.env, self.sizes[b.name]
        ports = {"input": program.inputs, "output": program.outputs}.get(b.space)
        offset, last = evaluate(b.offset, env), evaluate(b.offset + b.bytes_of(b.size), env)
        if size < 0 or offset < 0 or offset % program.align or last > WIDE:
            raise fault("GT0376", f"{b.name} has {size} elements from byte {offset} on", _at(env))
        if ports is not None:
            most = product(ports[b.slot].shape)
            dims = {s.name for s in program.dims}
            if isinstance(most, Poly) and any(s.name not in dims for s in symbols(most)):
                return  # the run computes the shape, and the caller gives the buffer's size
            if size > evaluate(most, env):
                raise fault("GT0376", f"{b.name} has {size} elements, the {b.space} "
                                      f"{ports[b.slot].name} has {evaluate(most, env)}", _at(env))
        elif b.space == "arena" and last > evaluate(program.arena, env) and size:
            raise fault("GT0376", f"{b.name} reaches beyond the arena", _at(env))

    def run(self, step: Run) -> None:
        """Check one call of a kernel."""
        kernel = self.kernels[step.kernel]
        given = {p.name: self.buffers[a] for p, a in zip(kernel.params, step.args, strict=True)}
        place = f"{step.label} {_at(self.env)}".strip()
        try:
            sizes = {n: self.sizes[b.name] for n, b in given.items()}
            places = _places(kernel, step)
            bad = misfit(self.spans(kernel, places), sizes)
            bad = bad and misfit(self.points(kernel, places), sizes)
        except ArithmeticError as error:
            raise fault("GT0375", f"{kernel.name} has sizes that cannot be computed: {error}",
                        place) from error
        except InputError as error:
            if not error.where:
                error.within(place)
            raise
        if bad:
            raise self.outside(bad[0], bad[1], given.get(bad[0]), place)

    def outside(self, name: str, at: float, b: Buffer | None, place: str) -> InputError:
        held = f", {b.name} has {self.sizes[b.name]} elements" if b else " outside of its row"
        return fault("GT0375", f"{name}[{at:.0f}] is touched{held}", place)

    def spans(self, kernel: Kernel, places: Env) -> Spans:
        """All that a kernel can touch, with these numbers in its indices."""
        key = kernel.name, *places.items()
        if key not in self.touched:
            self.touched[key] = touched(kernel, {**self.env, **places}, self.program.lanes)
        return self.touched[key]

    def points(self, kernel: Kernel, places: Env) -> Spans:
        """What a kernel touches where conditions decide."""
        key = kernel.name, *places.items()
        if key not in self.followed:
            self.followed[key] = touched(kernel, {**self.env, **places}, self.program.lanes,
                                         exact=True)
        return self.followed[key]


def _places(kernel: Kernel, run: Run) -> Env:
    """The numbers of a run that stand in the kernel's indices."""
    if not kernel.numbers:
        return {}
    read = {s.name for s in kernel_symbols(kernel)}
    return {n.name: int(x) for n, x in zip(kernel.numbers, run.numbers, strict=True)
            if n.name in read}


def _at(env: Env) -> str:
    return str(dict(env) or "")


def verify_data(program: Program, held: Mapping[str, Weight]) -> None:
    """Raises InputError GT0375, GT0380 for constants that lead out of a buffer."""
    digests = dict(program.weights)
    for env in tried(program):
        for run, given, use, pointers in _uses(program, env):
            tables = {}
            for name, param in pointers.items():
                data = held[digests[given[param].name]].stored.ravel()
                tables[name] = data[int(starts(use, name).min()):]
            types = {n: b.dtype for n, b in given.items()}
            sizes = {n: evaluate(b.size, env) for n, b in given.items()}
            if bad := misfit(table_spans(use, tables, types), sizes):
                raise fault("GT0375", f"the constants lead to {bad[0]}[{bad[1]:.0f}], "
                                      f"{given[bad[0]].name} has {sizes[bad[0]]} elements",
                            run.label)


def verify_constants(program: Program) -> None:
    """Raises InputError GT0375 where data that decide what is touched are no constants."""
    env = next(iter(tried(program)), None)
    for run, given, use, pointers in () if env is None else _uses(program, env):
        for name, param in pointers.items():
            if given[param].space != "weight":
                raise fault("GT0375", f"the data of {name} decide what {use.contract.name} "
                                      f"touches, and {given[param].name} is no constant", run.label)


def _uses(program: Program, env: Env) -> Iterator[
        tuple[Run, dict[str, Buffer], TemplateUse, dict[str, str]]]:
    """The runs of templates whose operands decide: what they are given, and the parameters of
    these operands by the pointer's name."""
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    for run in runs(program.steps):
        kernel = kernels[run.kernel]
        for use, pointers in decisive(kernel.body, env, program.lanes):
            given = {p.name: buffers[a] for p, a in zip(kernel.params, run.args, strict=True)}
            yield run, given, use, pointers
