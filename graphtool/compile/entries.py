"""The C of several entry points over one set of weights, each a model that was lowered by itself.

With a tokenizer the example is a program that writes text, and `generate` can do so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from graphtool.compile.lowering import LoweredFunction
from graphtool.compile.options import Build
from graphtool.compile.rows import describe
from graphtool.compile.texts import Texts, beyond_c, nodes_of, precision, store_of
from graphtool.compile.unit import LibraryUnit
from graphtool.compile.weights import WeightsSide, common, placed
from graphtool.emit.c import emit
from graphtool.emit.device import device_loader
from graphtool.emit.entries import entries_sources
from graphtool.emit.example import example_of_entries
from graphtool.emit.headers import used_headers
from graphtool.emit.language import Device, named
from graphtool.emit.text_program import roles, writer_program
from graphtool.emit.weights import loader
from graphtool.errors import InputError
from graphtool.io.manifest import FIELDS
from graphtool.language import tokenizer as tokens
from graphtool.language.tokenizer import Tokenizer
from graphtool.loops.program import Program

TOKENS = "tokens.json"


def entry_texts(unit: LibraryUnit, lowered: Mapping[str, LoweredFunction], how: Build) -> Texts:
    """The C of the functions, one for each entry point.

    Raises InputError GT3154 for an entry point that is no step of a language model, GT3155 for
    other tokens.
    """
    held = common((f.program for f in lowered.values()), store_of(lowered))
    side = WeightsSide(unit.name, held, how.weights_in)
    programs = {entry: placed(f.program, held) for entry, f in zip(
        unit.entries, lowered.values(), strict=True)}
    files = _glue(unit.name, programs, side, named(unit.target.language).device)
    for program in programs.values():
        files |= emit(program, side.parts, owner=unit.name, nodes=nodes_of(unit, lowered, how))
    rows = _rows(unit.name, programs, side)
    if how.tokenizer is not None:
        known = how.tokenizer
        if isinstance(known, (str, PathLike)):
            known = tokens.load(Path(known))
        more, rows["language"] = _language(unit.name, programs, known, side)
        files |= more
    return Texts(unit.name, files, (side,), rows, beyond_c(programs.values()),
                 precision(next(iter(programs.values()))), devices=unit.target.devices,
                 programs=tuple(p.name for p in programs.values()))


def _glue(name: str, programs: Mapping[str, Program], side: WeightsSide,
          device: Device | None) -> dict[str, str]:
    """What the entry points share: the header, the loader and the example."""
    size = 0 if side.parts else side.size
    files = entries_sources(name, programs, bool(size), device=device)
    first = next(iter(programs.values())).name
    files[f"{name}_load.c"] = loader(name, size) if device is None else device_loader(
        name, side.size, bool(size), device, first)
    files[f"{name}_example.c"] = example_of_entries(name, list(programs.values()), side.file)
    return files | used_headers(files.values())


def _language(name: str, programs: Mapping[str, Program], tokenizer: Tokenizer, side: WeightsSide
              ) -> tuple[dict[str, str], dict[str, Any]]:
    """The files of a language model, and what build.json says of it."""
    roles_ = {entry: roles(p) for entry, p in programs.items()}
    rooms, sizes = {r.room for r in roles_.values()}, {r.size for r in roles_.values()}
    texts = {r.texts for r in roles_.values()}
    if len(texts) > 1:
        raise InputError("GT3154", f"the entry points take {_joined(texts)} texts at once",
                         hint="give all of them the same batch")
    if len(rooms) > 1 or sizes != {tokenizer.size}:
        raise InputError("GT3155", f"the model has {_joined(sizes)} tokens and room for "
                                   f"{_joined(rooms)}, the tokenizer {tokenizer.size} tokens",
                         hint="all entry points must have the tokens of the tokenizer, and caches "
                              "of one size")
    files = {TOKENS: tokens.dumps(tokenizer)}
    if texts == {1}:  # the program writes one text; else the example stays that of any build
        source = writer_program(name, list(programs.values()), {
            p.name: roles_[e] for e, p in programs.items()}, tokenizer.merges, side.file)
        files |= {f"{name}_example.c": source, **used_headers([source])}
    return files, {"tokenizer": TOKENS, "roles": {e: asdict(r) for e, r in roles_.items()}}


def _joined(numbers: set[int]) -> str:
    return " and ".join(map(str, sorted(numbers)))


def _rows(name: str, programs: Mapping[str, Program], side: WeightsSide) -> dict[str, Any]:
    """What build.json says: of the first entry point as of a model, of the others in `entries`."""
    first, *others = programs
    rows = {entry: describe(p, side.held) for entry, p in programs.items()}
    return rows[first] | {
        "name": name, "header": f"{name}.h", "weights": f"{name}.safetensors", "entry": first,
        "entries": {entry: {k: rows[entry][k] for k in FIELDS} for entry in others}}
