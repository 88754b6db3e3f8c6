"""lower, emit, build, cache: from a graph to a program, to C, to a shared library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphtool.cli import options, saving, sources, terminal, waiting
from graphtool.compile.options import ENTRIES, MODEL, PROGRAM, Build, Importing, LoweringOptions

if TYPE_CHECKING:
    from graphtool.compile.build import Built
    from graphtool.compile.unit import LibraryUnit

Models = Annotated[list[str], typer.Argument(
    metavar="IN...", help="A graph, a program or a model. A model is imported first, and a graph "
                           "that the pass `fuse` has not seen is optimised. Several ones, each "
                           "perhaps as NAME=IN, become entry points of one library.")]


def lower(graph: options.Graph, how: LoweringOptions, importing: Importing, out: options.Out = None
          ) -> None:
    """Lower a graph to a program: loops, buffers and a plan of memory.

    A graph is taken as it is; a model, and a graph with --passes, is optimised first."""
    from graphtool.compile.lowering import lowered
    from graphtool.compile.source import source_of
    from graphtool.emit.names import c_name, check_name
    from graphtool.loops import serial
    name = how.name or c_name(graph)
    check_name(name)
    how = replace(sources.noted(how), as_is=True)
    result = lowered(sources.warned(source_of(graph, importing)), name, how.goal, how)
    path = saving.destination(out, graph, ".program.json")
    if path is None:
        saving.write(None, serial.dumps(result.program))
    else:
        serial.save(result.program, path, result.store)
    saving.told(path, out)


def emit(source: Models, out: Annotated[Path, typer.Option(
        "-o", "--out", help="The directory for the C files.")],
         how: Build, importing: Importing) -> None:
    """Write the C that `build` would compile, and compile nothing.

    It takes what `build` takes; options for the compiler change nothing in the C. Weights that are
    not left in a file are written too."""
    from graphtool.compile import build as compiling
    unit = _unit(source, how, importing)
    for file, text in compiling.emit(unit, out, _within(unit, how)).items():
        terminal.note(f"{out / file}: {len(text.splitlines())} lines")


def build(source: Models, out: options.OutDir, how: Build, importing: Importing,
          verbose: Annotated[bool, typer.Option(
              "--verbose", help="Name every file that was written.")] = False) -> None:
    """Compile a graph, program or model into a build directory.

    It contains the C, the library, its header, the weights and build.json. Several models become
    entry points of one library over one set of weights: `build prefill=p.graph.json
    decode=d.graph.json`."""
    from graphtool.compile import build as compiling
    unit = _unit(source, how, importing)
    waiting.stage("optimising, and compiling the C")
    result = compiling.build(unit, out, _within(unit, how))
    terminal.note(f"{result.path}: {', '.join(_facts(result))}")
    sources.told_left_out(how.proofs, [x for f in result.functions.values() for x in f.left_out])
    if verbose:
        terminal.note(*(f"  {p.name}" for p in sorted(result.path.iterdir())))
    terminal.lines([str(result.path)])


def _within(unit: LibraryUnit, how: Build) -> Build:
    """The options with which the unit keeps its limits of memory; it says so if they are others."""
    if how.max_ram is None and how.max_flash is None:
        return how
    from graphtool.report.size import within
    kept = within(unit, how)
    if kept.objective != how.objective:
        terminal.note(f"--objective {kept.objective}: with {how.objective} it would be over the "
                      "limits")
    return kept


def _unit(given: Sequence[str], how: Build, importing: Importing) -> LibraryUnit:
    """What the command line names: one source, or several as entry points."""
    from graphtool.compile.source import check_importing, source_of
    from graphtool.compile.unit import check, unit_of
    from graphtool.emit.names import c_name
    for one in given:
        check_importing(_split(one)[1], importing)
    if len(given) > 1 or _split(given[0])[0] or how.tokenizer:
        name = how.name or "model"
        check(how, name, several=True)
        return unit_of({entry: sources.warned(source_of(path, importing))
                        for entry, path in _named(given)}, how, name)
    name = how.name or c_name(given[0])
    check(how, name)
    source_ = sources.warned(source_of(given[0], importing))
    return unit_of(source_, how, how.name or (source_.program.name if source_.program else name))


def _split(given: str) -> tuple[str, str]:
    """The name and the source of `NAME=IN`; no name where a file is called so."""
    match = re.fullmatch(r"(\w+)=(.+)", given)
    return (match[1], match[2]) if match and not Path(given).exists() else ("", given)


def _named(given: Sequence[str]) -> list[tuple[str, str]]:
    """Each entry point and its source. One without a name has its file's, or its callable's.

    Raises UsageError GT2110 for two of the same name."""
    from graphtool.compile.unit import check_entries
    from graphtool.emit.names import c_name
    pairs = [(entry or c_name(path.rpartition(":")[2] if ".py:" in path else path), path)
             for entry, path in map(_split, given)]
    check_entries("model", tuple(entry for entry, _ in pairs))
    return pairs


def _facts(built: Built) -> Iterator[str]:
    """The library, the weights and what entry points share of them, and what a run needs beside
    them where all sizes are known."""
    from graphtool.compile.weights import common, shared_bytes
    from graphtool.io.manifest import read_manifest
    from graphtool.loops.liveness import most_live
    from graphtool.report.table import human
    known = read_manifest(built.path)
    yield f"{known.library} {human((built.path / known.library).stat().st_size, 'B')}"
    programs = [f.program for f in built.functions.values()]
    shared = ""
    if built.unit.kind == ENTRIES:
        held = common(programs, {d: w for f in built.functions.values()
                                 for d, w in f.store.items()})
        count = shared_bytes(programs, held)
        shared = f", of which {human(count, 'B')} serve several entry points" if count else ""
    if known.weights_bytes:
        place = "" if known.weights_mode == "file" else " in the library"
        yield f"weights{place} {human(known.weights_bytes, 'B')}{shared}"
    if built.unit.kind in (MODEL, PROGRAM) and isinstance(programs[0].arena, int) and (
            live := most_live(programs[0])) is not None:
        yield f"arena {programs[0].arena} bytes, of which {live} live at once"
    yield f"{len(known.files) + 1} files"


def cache_dir() -> None:
    """Print the directory of the cache."""
    from graphtool.native import cache
    terminal.lines([str(cache.directory())])
    sizes = [p.stat().st_size for p in cache.directory().rglob("*") if p.is_file()]
    terminal.note(f"{len(sizes)} files, {sum(sizes) / (1 << 20):.1f} MiB; `cache prune` leaves at "
                  f"most {cache.LIMIT >> 20} MiB")


def cache_prune(limit: Annotated[str | None, typer.Option(
        "--limit", metavar="BYTES", help="Leave at most this many bytes, as 100000000 or 100M; "
        "K, M and G count 1024.")] = None) -> None:
    """Delete what has not been used for long, and the oldest files beyond the limit."""
    from graphtool.native import cache
    from graphtool.report.size import byte_count
    most = byte_count("--limit", limit)
    freed = cache.prune() if most is None else cache.prune(most)
    terminal.lines([f"{freed} bytes freed"])


def cache_clear() -> None:
    """Delete everything in the cache."""
    from graphtool.native import cache
    terminal.lines([f"{cache.clear()} bytes freed"])
