"""Profiles of a build: what the C is, and what goes with it, for those who must show why it is
right. `safety` is the only one: ISO C99 for one thread without extensions, in strict numerics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from graphtool.errors import InputError, UsageError, one_of
from graphtool.loops.ir import Template
from graphtool.loops.program import Bind, Kernel, Program, Repeat, every_step, runs
from graphtool.loops.walk import statements
from graphtool.target import TABLE, Target, for_threads

PROFILES = ("safety",)
_NEEDS = {"exe": "--exe", "mpi": "--mpi", "debug_lines": "--debug-lines", "single": "--single",
          "tokenizer": "--tokenizer"}


def for_profile(how: Any, target: Target) -> Target:
    """The target with the language of the profile, for one thread; the C is the same for all
    processors, so `native` stands for any machine. `how` are the options of a build.

    Raises UsageError GT2133 for an unknown profile, GT2119 for what does not go with it.
    """
    if how.profile not in PROFILES:
        raise UsageError("GT2133", f"unknown profile {how.profile!r}",
                         hint=one_of(str(how.profile), PROFILES))
    wrong = [name for field, name in _NEEDS.items() if getattr(how, field)]
    wrong += ["--kernels"] * (how.kernels != "generated")
    wrong += ["--precision"] * (how.precision not in ("default", "strict"))
    wrong += ["--weights embed"] * (how.weights == "embed")
    wrong += ["--threads-by"] * (how.threads_by == "caller")
    wrong += ["--threads"] * ((how.threads or 1) > 1)
    wrong += [f"--target {target.march}"] * target.grid
    if wrong:
        raise UsageError("GT2119", f"{', '.join(wrong)} cannot go with --profile {how.profile}",
                         hint="it is ISO C99 for one thread of a processor, in strict numerics")
    target = TABLE["generic"] if target.native else target
    return for_threads(replace(target, language="c99", lanes=1, bf16=False, dot8=False, amx=False,
                               more=(*target.more, "-std=c99")), 1)


def check(profile: str | None, program: Program) -> None:
    """Raises InputError GT2132 for what the profile cannot take, with the node and its line."""
    if profile is None:
        return
    kernels = {k.name: k for k in program.kernels}
    found = [(f"the size {s.name} is open", "--dynamic NAME=SIZE fixes it when a model is imported")
             for s in program.dims]
    for step in every_step(program.steps):
        match step:
            case Bind():
                found.append((f"{step.label}: a run computes the size {step.size.name}",
                              "a size must be known when the C is written"))
            case Repeat():
                found.append((f"{step.label}: the number of iterations depends on data",
                              "a loop must have a constant bound"))
    for run in runs(program.steps):
        if template := _template(kernels[run.kernel]):
            found.append((f"{run.label}: the kernel {template} has no definition in loops",
                          "replace the node by others"))
    if found:
        what, hint = found[0]
        raise InputError("GT2132", f"--profile {profile} cannot take the model: {what}",
                         where=program.name, hint=hint)


def _template(kernel: Kernel) -> str:
    """The name of a kernel that is not loops; "" if all of it is."""
    return next((s.kernel for s in statements(kernel.body) if isinstance(s, Template)), "")
