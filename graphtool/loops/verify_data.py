"""Checks operands whose data decide what a template touches: they are constants, whose numbers lead
to nothing outside of a buffer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graphtool.io.weights import Weight
from graphtool.loops.program import Buffer, Program, Run, runs
from graphtool.loops.tried_sizes import tried
from graphtool.loops.verify_kernel import fault
from graphtool.loops.verify_reach import machine_of, misfit
from graphtool.loops.verify_template import Env, Use, decisive, starts, table_spans
from graphtool.symbolic import evaluate


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
        tuple[Run, dict[str, Buffer], Use, dict[str, str]]]:
    """The runs of templates whose operands decide: what they are given, and the parameters of
    these operands by the pointer's name."""
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    for run in runs(program.steps):
        kernel = kernels[run.kernel]
        for use, pointers in decisive(kernel.body, env, machine_of(program)):
            given = {p.name: buffers[a] for p, a in zip(kernel.params, run.args, strict=True)}
            yield run, given, use, pointers
