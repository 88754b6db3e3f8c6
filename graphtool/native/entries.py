"""Compiles several entry points over one set of weights into one library.

Each entry point is a model of its own, called NAME_ENTRY, which was lowered by itself; the weights
file has what they read, equal arrays once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from graphtool.emit.c import emit
from graphtool.emit.embedded_weights import Part
from graphtool.emit.entries import entries_sources
from graphtool.emit.example import example_of_entries
from graphtool.emit.headers import used_headers
from graphtool.emit.language import roles, writer_program
from graphtool.emit.loading import loader
from graphtool.emit.names import check_name
from graphtool.errors import InputError, UsageError
from graphtool.io.directory import replacing
from graphtool.io.entry_points import FIELDS
from graphtool.io.weights import Weight, layout
from graphtool.language.tokenizer import Tokenizer, dumps
from graphtool.loops.program import Program, runs
from graphtool.native.blas import linking
from graphtool.native.build import (
    Options,
    build_key,
    check_options,
    compile_all,
    describe,
    parts_of,
    unchanged,
    write_manifest,
    write_weights,
)
from graphtool.native.common_weights import common, placed
from graphtool.native.compiler import find
from graphtool.target import Target

TOKENS = "tokens.json"
TAKEN = ("example", "kernels", "load", "main", "status_text", "free", "weights")


def check_entries(name: str, entries: tuple[str, ...]) -> None:
    """Raises UsageError GT2110 for an entry point that cannot have a function or a file of its
    own."""
    for entry in entries:
        check_name(entry)
        if entry in TAKEN:
            raise UsageError("GT2110", f"{name}_{entry} is another function or file of the build",
                             hint="give the entry point another name: NAME=graph.json")
    if twice := [e for e in entries if entries.count(e) > 1]:
        raise UsageError("GT2110", f"two entry points are called {twice[0]!r}",
                         hint="give them names: prefill=a.graph.json decode=b.graph.json")


def build_entries(lowered: Mapping[str, Program], out_dir: Path, *, name: str, target: Target,
                  store: Mapping[str, Weight], cc: str | None = None, jobs: int | None = None,
                  static: bool = False, openmp: bool = True, weights: str = "file",
                  tokenizer: Tokenizer | None = None,
                  nodes: Mapping[str, str] | None = None) -> Path:
    """Compile the programs of one model's entry points, by their names, into one build directory.

    With a `tokenizer` the example is a program that writes text, and `generate` can do so. Options
    and errors are those of `build`; UsageError GT2110 also for an entry point's name, InputError
    GT3154 for an entry point that is no step of a language model, GT3155 for other tokens.
    """
    check_options(name, weights)
    check_entries(name, tuple(lowered))
    held = common(lowered.values(), store)
    programs = {entry: placed(replace(p, name=f"{name}_{entry}"), held)
                for entry, p in lowered.items()}
    parts = parts_of(name, held, weights)
    sources = _sources(name, programs, held, parts, nodes)
    language = {} if tokenizer is None else _language(name, programs, tokenizer, held, parts)
    sources |= language.pop("sources", {})
    compiler = linking(find(cc, target, openmp=openmp), sources)
    precision = next(iter(programs.values())).meta.get("precision", "default")
    compiler = compiler.of_class(precision, nodes is not None)
    told = [repr(s.choice) for p in programs.values() for s in runs(p.steps)]
    options = Options(False, static, weights)
    key = build_key(sources, [*(w.digest for w in held), *told], compiler, options)
    if unchanged(out_dir, key):
        return out_dir
    with replacing(out_dir) as work:
        for file, source in sources.items():
            (work / file).write_text(source)
        offset = write_weights(work, name, held, parts, weights)
        made = compile_all(work, name, (name,), compiler, jobs, options)
        write_manifest(work, made | _rows(name, programs, held, key)
                       | {"weights_offset": offset, "weights_mode": weights} | language)
    return out_dir


def _sources(name: str, programs: Mapping[str, Program], held: list[Weight],
             parts: tuple[Part, ...], nodes: Mapping[str, str] | None) -> dict[str, str]:
    """All files of C, by name."""
    size = 0 if parts else layout(held)[1]
    sources = entries_sources(name, programs, bool(size))
    sources[f"{name}_load.c"] = loader(name, size)
    sources[f"{name}_example.c"] = example_of_entries(
        name, list(programs.values()), f"{name}.safetensors" if size else "")
    sources |= used_headers(sources.values())
    for program in programs.values():
        sources |= emit(program, parts, owner=name, nodes=nodes)
    return sources


def _language(name: str, programs: Mapping[str, Program], tokenizer: Tokenizer,
              held: list[Weight], parts: tuple[Part, ...]) -> dict[str, Any]:
    """The files of a language model, and what build.json says of it."""
    found = {entry: roles(p) for entry, p in programs.items()}
    rooms, sizes = {r.room for r in found.values()}, {r.size for r in found.values()}
    texts = {r.texts for r in found.values()}
    if len(texts) > 1:
        raise InputError("GT3154", f"the entry points take {_joined(texts)} texts at once",
                         hint="give all of them the same batch")
    if len(rooms) > 1 or sizes != {tokenizer.size}:
        raise InputError("GT3155", f"the model has {_joined(sizes)} tokens and room for "
                                   f"{_joined(rooms)}, the tokenizer {tokenizer.size} tokens",
                         hint="all entry points must have the tokens of the tokenizer, and caches "
                              "of one size")
    source = writer_program(name, list(programs.values()), {p.name: found[e] for e, p in
                            programs.items()}, tokenizer.merges,
                            f"{name}.safetensors" if held and not parts else "")
    sources = {f"{name}_example.c": source, TOKENS: dumps(tokenizer)}
    if texts != {1}:  # the program writes one text; the example stays that of any build
        sources, source = {TOKENS: dumps(tokenizer)}, ""
    return {"sources": sources | used_headers([source]), "language": {
        "tokenizer": TOKENS, "roles": {entry: asdict(r) for entry, r in found.items()}}}


def _joined(numbers: set[int]) -> str:
    return " and ".join(map(str, sorted(numbers)))


def _rows(name: str, programs: Mapping[str, Program], held: list[Weight],
          key: str) -> dict[str, Any]:
    """What build.json says: of the first entry point as of a model, of the others in `entries`."""
    first, *others = programs
    rows = {entry: describe(p, held, key) for entry, p in programs.items()}
    return rows[first] | {
        "name": name, "header": f"{name}.h", "weights": f"{name}.safetensors", "entry": first,
        "entries": {entry: {k: rows[entry][k] for k in FIELDS} for entry in others}}
