"""Plans: the kernel that computes a node, and the kernel's parameters.

A plan is an attribute of its node; the candidates from which it was chosen are a `Choice`. The
modules of kernels/ know which plans are possible and what they cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from graphtool.errors import InputError
from graphtool.io.manifest_rows import Choice

SHOWN = 5  # the number of plans in a choice, with the chosen one first
_CALL = re.compile(r"(\w+)(?:\{([^{}]*)\})?")
_VALUE = re.compile(r"[0-9]+|[a-z]\w*")  # a number, or the name of an element type


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel and its parameters, in the order in which they are written."""

    kind: str  # the op that stands for the kernel: conv_direct, winograd, gemm, …
    parameters: tuple[tuple[str, int], ...] = ()

    def get(self, name: str, default: int) -> int:
        """The value of a parameter, or `default` if the plan does not have it."""
        return dict(self.parameters).get(name, default)

    def __str__(self) -> str:
        """`winograd{tile=4,group=28}`, or the kind alone if there are no parameters."""
        inner = ",".join(f"{k}={v}" for k, v in self.parameters)
        return f"{self.kind}{{{inner}}}" if inner else self.kind


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel's plans: its meaning, and its values, from `least` to `most`.

    `default` is the value if a plan does not have it; None if lowering computes the value.
    """

    name: str
    meaning: str
    default: int | None = None
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """The form of the plans of one kind: their parameters, in the order in which they are
    written, and the instructions that bound such a kernel: a kind of rate of report/machine."""

    kind: str
    parameters: tuple[Parameter, ...] = ()
    rate: str = "f32"

    def plan(self, **given: int) -> Plan:
        """The plan with these values, in the order of the form."""
        return Plan(self.kind, tuple((p.name, given[p.name]) for p in self.parameters
                                     if p.name in given))

    def values(self, plan: Plan | None) -> dict[str, int]:
        """The values of a plan by name, with defaults for missing parameters."""
        usual = {p.name: p.default for p in self.parameters if p.default is not None}
        return usual | dict(plan.parameters if plan else ())

    def fault(self, plan: Plan) -> str:
        """Why the plan does not have this form; empty if it has."""
        known = {p.name: p for p in self.parameters}
        names = [name for name, _ in plan.parameters]
        if names != [name for name in known if name in names]:
            return f"{plan} has other parameters than {', '.join(known) or 'none'}, in this order"
        for name, value in plan.parameters:
            p = known[name]
            if value < p.least or (p.most is not None and value > p.most):
                most = "or more" if p.most is None else f"to {p.most}"
                return f"{plan}: {name} is {p.least} {most}"
        return ""


def choice(site: str, by: str, ranking: Mapping[Plan, float]) -> Choice:
    """The record of a ranking, the best plan first: a few plans, microseconds to three digits."""
    best = list(ranking.items())[:SHOWN]
    return Choice(site, by, {str(p): float(f"{us:.3g}") for p, us in best})


def of_plan(choice: Choice | None, plan: Plan) -> Choice | None:
    """The choice with `plan` first: in a graph that was edited by hand, another plan may have
    been chosen."""
    if choice is None or next(iter(choice.us)) == str(plan):
        return choice
    return Choice(choice.site, choice.by, {str(plan): choice.us.get(str(plan), 0.0)} | choice.us)


def chosen_plan(choice: Choice) -> Plan:
    """The plan that was chosen."""
    return plan(next(iter(choice.us)))


def call(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The name and the values of `name{a=1,b=bf16}`. Raises InputError GT0631 for other texts."""
    match = _CALL.fullmatch(text)
    pairs = [p.partition("=") for p in match[2].split(",")] if match and match[2] else []
    if match is None or not all(k.isidentifier() and _VALUE.fullmatch(v) for k, _, v in pairs):
        raise InputError("GT0631", f"{text!r} is not the text of a plan or site",
                         hint="write it like winograd{tile=4,group=28}")
    return match[1], tuple((k, v) for k, _, v in pairs)


def plan(text: str) -> Plan:
    """The plan that `str` wrote. Raises InputError GT0631 for anything else."""
    kind, given = call(text)
    if not all(v.isdecimal() for _, v in given):
        raise InputError("GT0631", f"{text!r} is not the text of a plan",
                         hint="write it like winograd{tile=4,group=28}")
    return Plan(kind, tuple((k, int(v)) for k, v in given))
