"""From a unit to its programs: the passes run where they have not, then each function is lowered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.compile.options import LEVELS, TRAINING, LoweringOptions
from graphtool.compile.source import Source
from graphtool.compile.unit import LibraryUnit
from graphtool.errors import UsageError
from graphtool.io.weights import Weight
from graphtool.ir import serial
from graphtool.ir.graph import Module
from graphtool.ir.text import node_texts
from graphtool.kernels.choice.rules import Rules
from graphtool.loops import serial as loops
from graphtool.loops.program import Program
from graphtool.lower import lower
from graphtool.lower.arena import arena_of
from graphtool.passes import PassReport
from graphtool.passes import run as run_passes
from graphtool.passes.journal import Event, PassEvents, write_journal
from graphtool.target import Target, usual_machine

JOURNAL = "opt.journal.jsonl"  # among the stages of a build: what the passes did


@dataclass(frozen=True, slots=True)
class LoweredFunction:
    """One function of a unit for one target: its program, the weights that this may use, the
    modules on the way to it, by stage, the module that was read, what the passes did, if that was
    asked for, and the rules and passes that were left out for their tier of proof."""

    program: Program
    store: Mapping[str, Weight]
    stages: Mapping[str, Module]
    read: Module | None = None
    journal: Sequence[Event] = ()
    left_out: Sequence[str] = ()


def functions(unit: LibraryUnit, how: LoweringOptions, journal: bool = False
              ) -> dict[str, LoweredFunction]:
    """The functions of a unit by the names of their programs, each for the unit's target; with
    several targets those of the only function, best first. `journal`: they know what the passes
    did."""
    if unit.kind == TRAINING:  # over its functions no passes can have run
        how = replace(how, as_is=False)
    return {name: lowered(source, name, target, how, verify=unit.kind != TRAINING,
                          journal=journal)
            for entry, source in unit.entries.items() for level, target in unit.targets.items()
            for name in ["_".join((unit.name, *([entry] if entry else ()),
                                   *([f"v{level}"] if unit.kind == LEVELS else ())))]}


def lowered(source: Source, name: str, target: Target, how: LoweringOptions, verify: bool = True,
            journal: bool = False) -> LoweredFunction:
    """The program of a source, called `name`.

    Passes run over a model that was imported now, and over a graph that has no fusion groups
    unless it is taken `as_is`; where they are named, over any. Raises UsageError GT3090 for options
    that choose kernels where no pass runs, and what the passes and `lower` raise.
    """
    module = source.module
    if module is None:
        assert source.program is not None
        _refuse_choosing(how, target, source.where)
        meta = {"lanes": str(target.lanes), **source.program.meta}
        return LoweredFunction(replace(source.program, name=name, meta=meta), source.store, {})
    stages, recorder = {"import" if source.imported else "read": module}, PassEvents(module)
    left_out: list[str] = []

    def after(report: PassReport, module: Module) -> None:
        left_out.extend(report.left_out)
        if journal:
            recorder.after(report, module)
    if how.passes is not None or source.imported or not (how.as_is or module.graph.groups):
        rules = how.rules
        module = stages["opt"] = run_passes(module, how.passes, verify=verify, supply={
            "target": target, "rules": rules, "arena": arena_of(target, rules)},
            after=after, texts=journal)
    else:
        _refuse_choosing(how, target, source.where)
    program = lower(module, target, name=name, index_checks=how.index_checks)
    return LoweredFunction(program, {w.digest: w for w in serial.collect_all(module.graph)}, stages,
                           source.module, recorder.events, tuple(dict.fromkeys(left_out)))


def check_fits(function: LoweredFunction, target: Target) -> None:
    """Raises UsageError GT2114 for a program whose packed weights have another width than the
    target's vectors."""
    meta = function.program.meta
    if int(meta["lanes"]) != target.lanes:
        raise UsageError("GT2114", f"the program was lowered for vectors of {meta['lanes']} "
                                   f"floats, {target.march} has {target.lanes}",
                         hint=f"it was made with --march {meta.get('target', 'native')}")


def _refuse_choosing(how: LoweringOptions, target: Target, where: str) -> None:
    named = how.machine is not None and target.machine != usual_machine(target)
    if named or how.rules != Rules():
        raise UsageError("GT3090", "kernels are chosen when a graph is optimised, and this one is "
                                   "built as it is", where=where,
                         hint=f"give {'--machine' if named else _CHOOSING} to `graphtool opt`, or "
                              "to build with a model")


_CHOOSING = "--precision, --assume, --objective, --kernels and --tuning"


def texts_of_nodes(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction]) -> dict[str, str]:
    """The text of the node that makes each value, as far as there are graphs."""
    modules = [f.read for f in lowered.values()] if unit.state is None else [unit.state]
    return {name: text for m in dict.fromkeys(modules) if m is not None
            for name, text in node_texts(m).items()}


def keep(function: LoweredFunction, path: Path) -> None:
    """Write every stage's artifact into a build, in the order they were made."""
    folder = path / "stages"
    folder.mkdir()
    for i, (stage, module) in enumerate(function.stages.items()):
        serial.save(module, folder / f"{i}-{stage}.graph.json")
    if "opt" in function.stages:
        write_journal(folder / JOURNAL, function.journal)
    last = folder / f"{len(function.stages)}-lower.program.json"
    loops.save(function.program, last, function.store)
