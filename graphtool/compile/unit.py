"""A unit: what becomes one library, that is functions over one set of weights, or over one state.

A model is a unit of one function, a training graph one of four with a state, and with `fat` there
is a version of the function for each level of a family of targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from graphtool.compile.options import (
    ENTRIES,
    KINDS,
    LEVELS,
    MODEL,
    ONE_LEVEL,
    PROGRAM,
    TRAINING,
    Build,
    ThreadsBy,
    refuse,
)
from graphtool.compile.source import Source
from graphtool.emit.names import check_name
from graphtool.errors import UsageError
from graphtool.ir.graph import Module
from graphtool.passes.distribute import distribute
from graphtool.target import X86_64, Target, family
from graphtool.transforms.training import programs as functions_of

MODES = ("file", "embed", "c")  # of --weights
FAT = "fat"
_TAKEN = ("example", "kernels", "load", "main", "status_text", "free", "weights")


@dataclass(frozen=True, slots=True)
class LibraryUnit:
    """What becomes one library: the sources of its functions by their names, the targets by level,
    and for a training graph the graph with the `state`. `kind` is a key of KINDS."""

    name: str
    kind: str
    entries: Mapping[str, Source]
    targets: Mapping[int, Target]
    state: Module | None = None

    @property
    def target(self) -> Target:
        """The target of the code that all versions share: the lowest level."""
        return self.targets[min(self.targets)]


def unit_of(given: Source | Mapping[str, Source], how: Build, name: str) -> LibraryUnit:
    """The unit of a source, or of several by the names of their entry points.

    Raises UsageError GT2110 for an entry point's name, GT3052, GT3054, GT3055 for what does not go
    together, and as `check` does; InputError GT0617.
    """
    check(how, name, isinstance(given, Mapping))
    if isinstance(given, Mapping):
        check_entries(name, tuple(given))
        if wrong := [s.where or n for n, s in given.items() if s.training]:
            raise UsageError("GT3055", f"{wrong[0]} is a training graph", hint="alone it becomes a "
                             "library of init, step, loss and predict over one state")
        return LibraryUnit(name, ENTRIES, given, _targets(how))
    kind = TRAINING if given.training else PROGRAM if given.program is not None else MODEL
    if how.target == FAT:
        if kind != MODEL:
            raise UsageError("GT3054", "--march fat compiles a model several times over, this is "
                                       f"{KINDS[kind][0]}", where=given.where, hint=ONE_LEVEL)
        kind = LEVELS
    refuse(how, kind, given.where)
    if kind != TRAINING:
        return LibraryUnit(name, kind, {"": given}, _targets(how))
    assert given.module is not None
    state = distribute(given.module) if how.mpi else given.module
    return LibraryUnit(name, kind, {part: Source(cut) for part, cut in functions_of(state).items()},
                       _targets(how), state)


def check(how: Build, name: str, several: bool = False) -> None:
    """Raises the errors that can be known before the sources are read: UsageError GT2110 for a bad
    name, GT2113 and GT2118 for an unknown word, GT2116, GT3054 and GT3055."""
    check_name(name)
    if how.weights not in MODES:
        raise UsageError("GT2113", f"weights cannot be {how.weights!r}", hint=", ".join(MODES))
    if how.threads_by not in get_args(ThreadsBy):
        raise UsageError("GT2118", f"threads cannot be by {how.threads_by!r}",
                         hint=", ".join(get_args(ThreadsBy)))
    if how.single and (how.debug_lines or how.nodes is not None):
        raise UsageError("GT2116", "--debug-lines cannot go with --single",
                         hint="build without --single to debug")
    if several and how.target == FAT:
        raise UsageError(KINDS[ENTRIES][1], f"--march fat cannot go with {KINDS[ENTRIES][0]}",
                         hint=ONE_LEVEL)
    if several or how.target == FAT:
        refuse(how, ENTRIES if several else LEVELS)


def _targets(how: Build) -> dict[int, Target]:
    """The targets by level; one alone is level 0."""
    if how.target == FAT:
        return {level: how.on_machine(t) for level, t in family(X86_64).items()}
    return {0: how.goal}


def check_entries(name: str, entries: tuple[str, ...]) -> None:
    """Raises UsageError GT2110 for an entry point that cannot have a function or a file of its
    own."""
    for entry in entries:
        check_name(entry)
        if entry in _TAKEN:
            raise UsageError("GT2110", f"{name}_{entry} is another function or file of the build",
                             hint="give the entry point another name: NAME=graph.json")
    if twice := [e for e in entries if entries.count(e) > 1]:
        raise UsageError("GT2110", f"two entry points are called {twice[0]!r}",
                         hint="give them names: prefill=a.graph.json decode=b.graph.json")
