"""The C of a unit, and what goes with it into a build directory: weights, and rows of build.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from graphtool.compile.lowering import LoweredFunction, texts_of_nodes
from graphtool.compile.options import Build
from graphtool.compile.rows import describe
from graphtool.compile.unit import LibraryUnit
from graphtool.compile.weights import WeightsSide, common, placed, weights_of
from graphtool.emit.c import emit, public_files
from graphtool.emit.deviations import TITLE, deviations_text
from graphtool.emit.entries import dispatcher
from graphtool.emit.headers import used_headers
from graphtool.emit.interface import header
from graphtool.emit.language import language_of
from graphtool.emit.main import main_program
from graphtool.io.weights import Weight
from graphtool.loops.program import Program, runs
from graphtool.symbolic import maximum
from graphtool.target import Target


@dataclass(frozen=True, slots=True)
class Texts:
    """The C files of a build by name, its files of weights, and the `rows` of its build.json. Files
    whose names start with a key of `versions` are compiled for that target alone. `beyond_c` is in
    the manifest and not in the C. `devices` are the architectures for which the kernels of the
    `programs` are compiled, if they run on a device."""

    name: str
    files: dict[str, str]
    sides: tuple[WeightsSide, ...]
    rows: Mapping[str, Any]
    beyond_c: tuple[str, ...]
    precision: str = "default"
    versions: Mapping[str, Target] = field(default_factory=dict)
    devices: tuple[int, ...] = ()
    programs: tuple[str, ...] = ()


def nodes_of(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction], how: Build
             ) -> Mapping[str, str] | None:
    """The texts that debuggers show, as `emit` takes them."""
    return texts_of_nodes(unit, lowered) if how.debug_lines and how.nodes is None else how.nodes


def beyond_c(programs: Iterable[Program]) -> tuple[str, ...]:
    """What the manifest says beyond the C: the machine, and the choices of kernels."""
    return tuple(x for p in programs for x in (
        p.meta.get("machine", ""), *(repr(s.choice) for s in runs(p.steps))))


def store_of(lowered: Mapping[str, LoweredFunction]) -> dict[str, Weight]:
    """The weights of all functions, by their hashes."""
    return {d: w for f in lowered.values() for d, w in f.store.items()}


def with_main(files: dict[str, str], program: Program, side: WeightsSide) -> dict[str, str]:
    """The files with a main program in place of the example, so that *.c is one program."""
    files = {**files, f"{program.name}_main.c": main_program(program, side.file)}
    del files[f"{program.name}_example.c"]
    return files | used_headers(files.values())


def model_texts(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction], how: Build) -> Texts:
    """The C of a single function."""
    (function,) = lowered.values()
    program = function.program
    plain = language_of(program).plain
    side = WeightsSide(unit.name, weights_of(program, function.store),
                       "c" if plain else how.weights_in, typed=plain)
    files = emit(program, side.parts, nodes=nodes_of(unit, lowered, how))
    if plain:
        files["deviations.md"] = f"{TITLE}\n\n{deviations_text()}"
    return Texts(unit.name, with_main(files, program, side) if how.exe else files, (side,),
                 describe(program, side.held), beyond_c([program]), precision(program),
                 devices=unit.target.devices, programs=(program.name,))


def level_texts(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction], how: Build) -> Texts:
    """The C of a function in a version for each level of a family of targets; the one to run is
    chosen at load time.

    The weights file has the packed weights of all levels; a machine maps only what it uses.
    """
    held = common((f.program for f in lowered.values()), store_of(lowered))
    side = WeightsSide(unit.name, held, how.weights_in)
    levels = {level: placed(f.program, held) for level, f in zip(
        unit.targets, lowered.values(), strict=True)}
    best = next(iter(levels.values()))
    whole = replace(best, name=unit.name, meta={**best.meta, "target": "fat"},
                    arena=reduce(maximum, (p.arena for p in levels.values())))
    family = unit.target.levels
    assert family is not None
    span = f"{family.name}, {min(levels)} to {max(levels)}"
    files = {f"{unit.name}.c": dispatcher(unit.name, levels, family.header, family.call),
             f"{unit.name}.h": header(whole, levels=span, built_in=bool(side.parts))}
    files |= public_files(whole, 0 if side.parts else side.size)
    for p in levels.values():
        files |= emit(p, side.parts, owner=unit.name, nodes=nodes_of(unit, lowered, how))
    files |= used_headers(files.values())
    return Texts(unit.name, with_main(files, whole, side) if how.exe else files, (side,),
                 describe(whole, held) | {"levels": list(levels)}, beyond_c(levels.values()),
                 precision(best), {p.name: unit.targets[level] for level, p in levels.items()})


def precision(program: Program) -> str:
    """The class of numerics that a program was made in."""
    return program.meta.get("precision", "default")
