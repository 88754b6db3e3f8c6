"""Drives the C compiler and writes a build directory: sources, library, header, weights, manifest.

The directory appears at once or not at all; an unchanged rebuild touches no compiler.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import graphtool.kernels  # noqa: F401  (fills the registry)
from graphtool.emit.c import emit
from graphtool.emit.driver import parallel_work
from graphtool.emit.embedded_weights import Part, array, divided, incbin, whole
from graphtool.emit.headers import used_headers
from graphtool.emit.main import main_program
from graphtool.emit.names import check_name
from graphtool.emit.ports import open_sizes
from graphtool.errors import InputError, UsageError
from graphtool.io import files
from graphtool.io import weights as side_files
from graphtool.io.atomic import atomic
from graphtool.io.directory import replacing
from graphtool.io.manifest import read_manifest
from graphtool.io.manifest_rows import Manifest, ThreadsRow
from graphtool.io.rows import decode
from graphtool.io.versions import BUILD
from graphtool.io.weights import Weight, layout
from graphtool.ir.facets import ASSUMPTIONS
from graphtool.ir.graph import Module
from graphtool.ir.serial import collect_all
from graphtool.kernels.assumptions import assumption
from graphtool.kernels.choice.choose import added_error
from graphtool.loops.dim_names import author_text, by_author
from graphtool.loops.liveness import most_live
from graphtool.loops.program import ENDLESS, Port, Program, binds, runs
from graphtool.loops.traffic import moved
from graphtool.loops.verify_data import verify_data
from graphtool.lower import lower
from graphtool.native import cache
from graphtool.native.blas import linking
from graphtool.native.compiler import Compiler, find
from graphtool.symbolic import known
from graphtool.target import Target, named

MODES = ("file", "embed", "c")


@dataclass(frozen=True, slots=True)
class Options:
    """What besides the program decides the contents of a build directory."""

    exe: bool = False
    static: bool = False
    weights: str = "file"


def build(module: Module | Program, out_dir: Path, *, name: str = "model",
          target: Target | None = None, cc: str | None = None, march: str = "native",
          jobs: int | None = None, exe: bool = False, static: bool = False, openmp: bool = True,
          weights: str = "file", store: Mapping[str, Weight] | None = None,
          index_checks: bool = True, also: Callable[[Path], None] | None = None,
          nodes: Mapping[str, str] | None = None) -> Path:
    """Compile a module (or a program, whose weights are in `store`) into `out_dir`.

    `also` adds files to the directory before it takes its place; `nodes` as `emit` takes it, and
    the library then has what a debugger needs.

    `index_checks`: a run finds indices out of range; a program says so itself.
    `weights`: "file" leaves them in a file beside the library; "embed" puts them into it by
    `.incbin`, "c" as C arrays. Raises UsageError GT2110 for a bad name, GT2113 for an unknown
    mode, GT2114 for a program made for another vector width, CompilerError GT212x when the
    compiler is missing or fails, InputError GT0330 when the directory cannot be written.
    """
    check_options(name, weights)
    if isinstance(module, Program):
        program, held = replace(module, name=name), dict(store or {})
        target = _made_for(program, target or named(march))
        program = replace(program, meta={"lanes": str(target.lanes), **program.meta})
    else:
        target = target or named(march)
        program = lower(module, target, name=name, index_checks=index_checks)
        held = {w.digest: w for w in collect_all(module.graph)}
    needed = weights_of(program, held)
    parts = parts_of(name, needed, weights)
    sources = emit(program, parts, nodes=nodes)
    compiler = linking(find(cc, target, openmp=openmp), sources)
    compiler = compiler.of_class(program.meta.get("precision", "default"), nodes is not None)
    return make(Job(program, sources, needed, parts, compiler, Options(exe, static, weights)),
                out_dir, jobs, also)


def check_options(name: str, weights: str) -> None:
    """Raises UsageError GT2110 for a bad name, GT2113 for an unknown mode: before the work."""
    check_name(name)
    if weights not in MODES:
        raise UsageError("GT2113", f"weights cannot be {weights!r}", hint=", ".join(MODES))


@dataclass(frozen=True, slots=True)
class Job:
    """What a build directory is made from; `program` is the one that its manifest describes.

    Files whose names start with a key of `own` are compiled by that compiler.
    """

    program: Program
    sources: Mapping[str, str]
    held: list[Weight]
    parts: tuple[Part, ...]
    compiler: Compiler
    options: Options
    own: Mapping[str, Compiler] = field(default_factory=dict)


def make(job: Job, out_dir: Path, jobs: int | None, also: Callable[[Path], None] | None = None,
         **rows: Any) -> Path:
    """Write and compile a model's directory; `rows` are further ones of its manifest, `also` adds
    files that the manifest does not list."""
    name, options, sources = job.program.name, job.options, dict(job.sources)
    if options.exe:
        beside = f"{name}.safetensors" if options.weights == "file" and job.held else ""
        sources[f"{name}_main.c"] = main_program(job.program, beside)
        del sources[f"{name}_example.c"]  # so that *.c is one program
        sources |= used_headers(sources.values())
    # in the manifest, if not in the C
    told = [job.program.meta.get("machine", ""),
            *(repr(s.choice) for s in runs(job.program.steps))]
    key = build_key(sources, [*(w.digest for w in job.held), *told], job.compiler, options, job.own)
    if also is None and unchanged(out_dir, key):
        return out_dir
    with replacing(out_dir) as work:
        for file, source in sources.items():
            (work / file).write_text(source)
        offset = write_weights(work, name, job.held, job.parts, options.weights)
        manifest = compile_all(work, name, (name,), job.compiler, jobs, options, job.own)
        manifest |= describe(job.program, job.held, key)
        manifest |= {"weights_offset": offset, "weights_mode": options.weights, **rows}
        write_manifest(work, manifest)
        if also:
            also(work)
    return out_dir


def write_weights(work: Path, name: str, held: list[Weight], parts: tuple[Part, ...],
                  mode: str) -> int:
    """NAME.safetensors, and what is to be compiled of it; returns where its data start."""
    with atomic(work / f"{name}.safetensors") as side:
        offset = side_files.save(held, side)
    _write_parts(work, name, parts, mode, offset)
    return offset


def write_manifest(work: Path, manifest: dict[str, Any]) -> None:
    """build.json, last: it lists the other files."""
    manifest["files"] = {p.name: _digest(p) for p in sorted(work.iterdir())}
    text_json = json.dumps(asdict(decode(manifest, Manifest)), indent=1) + "\n"
    files.write_bytes(work / "build.json", text_json.encode())


def _made_for(program: Program, target: Target) -> Target:
    """The target, if the program's packed weights have the width of its vectors."""
    lanes = int(program.meta.get("lanes", target.lanes))
    if lanes != target.lanes:
        raise UsageError("GT2114", f"the program was lowered for vectors of {lanes} floats, "
                                   f"{target.march} has {target.lanes}",
                         hint=f"it was made with --march {program.meta.get('target', 'native')}")
    return replace(target, threads=program.threads)


def parts_of(name: str, held: list[Weight], mode: str) -> tuple[Part, ...]:
    """What is built into the library."""
    at, total = layout(held)
    if mode == "embed":
        return whole(name, total)
    spans = ((at[w.digest], at[w.digest] + w.nbytes) for w in held)
    return divided(name, spans) if mode == "c" else ()


def _write_parts(work: Path, name: str, parts: tuple[Part, ...], mode: str, offset: int) -> None:
    """NAME_weights*.c: the data of the weights file once more, as something to compile."""
    side = work / f"{name}.safetensors"
    for part in parts:
        path = work / f"{part.symbol}.c"
        if mode == "embed":
            path.write_text(incbin(part, side.name, offset, _digest(side)))
            continue
        with side.open("rb") as file:
            file.seek(offset + part.start)
            path.write_text(array(part, file.read(part.end - part.start)))


def weights_of(program: Program, held: Mapping[str, Weight]) -> list[Weight]:
    """The program's weights in its order. Raises InputError GT2111, GT2115 if they are not it."""
    missing = [d for _, d in program.weights if d not in held]
    if missing:
        raise InputError("GT2111", f"{len(missing)} weights of the program are not at hand",
                         hint="keep the program's .safetensors file beside it")
    found = [held[d] for _, d in program.weights]
    sizes = {b.name: b for b in program.buffers if b.space == "weight"}
    small = [b for (b, _), w in zip(program.weights, found, strict=True) if b in sizes and (
        known(sizes[b].bytes_of(sizes[b].size), "<=", w.nbytes) is not True)]
    if small:
        raise InputError("GT2115", f"the weight of {small[0]} has fewer bytes than the program "
                                   f"reads", hint="lower the graph again")
    verify_data(program, held)
    at, _ = layout(found)
    offsets = {b.name: b.offset for b in program.buffers}
    if any(offsets[b] != at[d] for b, d in program.weights):
        raise InputError("GT2115", "the weights do not lie where the program expects them",
                         hint="lower the graph again")
    return found


def compile_all(work: Path, name: str, programs: Sequence[str], compiler: Compiler,
                jobs: int | None, options: Options,
                own: Mapping[str, Compiler] | None = None) -> dict[str, Any]:
    """Compile every C file (in parallel, the largest first, through the cache) and link; `own` as
    in Job."""
    data = tuple(f"{p}_weights" for p in programs)
    programs_of_their_own = {f"{name}_main.c", f"{name}_example.c"}
    units = sorted(p for p in work.glob("*.c") if p.name not in programs_of_their_own)
    headers = "".join(p.read_text() for p in sorted(work.glob("*.h")))

    def compiled(p: Path) -> Path:
        if p.name.startswith(data):
            return compiler.compile_data(p)
        with_ = next((c for start, c in (own or {}).items() if p.name.startswith(start)), compiler)
        return with_.of_file(p.name).compile(p, headers)
    order = sorted(units, reverse=True, key=lambda p: p.stat().st_size + (
        0 if p.name.startswith(data) else _included_bytes(p)))
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        pool.submit(lambda: compiler.implied)  # its answer is kept for the linking below
        pending = {p: pool.submit(compiled, p) for p in order}
    objects = [pending[p].result() for p in units]
    cache.prune_daily()
    library = f"lib{name}.a" if options.static else f"lib{name}.so"
    if options.static:
        compiler.archive(objects, work / library)
    else:
        compiler.link(objects, work / library)
    out: dict[str, Any] = {"library": library, "compiler": compiler.version,
                           "flags": list(compiler.flags)}
    if options.exe:
        main = compiled(work / f"{name}_main.c")
        compiler.link_program([*objects, main], work / name, static=options.static)
        out["executable"] = name
    for o in objects:
        o.unlink()
    for o in work.glob("*.o"):
        o.unlink()
    return out


def _included_bytes(source: Path) -> int:
    """The bytes of the headers that a C file includes by itself, each as often as it does: that of
    a template once for each kernel."""
    named = re.findall(r'^#include "(.+)"', source.read_text(), re.MULTILINE)
    return sum(h.stat().st_size for n in named if (h := source.parent / n).exists())


def describe(program: Program, held: list[Weight], key: str) -> dict[str, Any]:
    """What build.json says of a program."""
    def dim(d: Any) -> int | str:
        return d if isinstance(d, int) else author_text(d)

    room = {program.outputs[b.slot]: b.size for b in program.buffers if b.space == "output"}
    kernels = {k.name: k for k in program.kernels}
    buffers = {b.name: b for b in program.buffers}
    dims = frozenset(s.name for s in program.dims)

    def port(p: Port) -> dict[str, Any]:
        row = {"name": p.name, "type": p.dtype.short, "shape": [dim(d) for d in p.shape]}
        row |= {"below": [dim(d) for d in p.below]} if p.below else {}
        return row | {"room": dim(room[p])} if p in room and open_sizes(program, p) else row
    assumed = [assumption(s.choice, kernels[s.kernel]) for s in runs(program.steps)]
    return {
        **BUILD.head, "name": program.name, "key": key,
        "target": program.meta.get("target", ""), "machine": program.meta.get("machine", ""),
        "header": f"{program.name}.h",
        "weights": f"{program.name}.safetensors",
        "weights_bytes": layout(held)[1], "arena": dim(program.arena),
        "live": most_live(program), "threads": asdict(threads_of(program)),
        "inputs": [port(p) for p in program.inputs],
        "outputs": [port(p) for p in program.outputs],
        "dims": [{"name": by_author(s.name), "min": s.lo or 0, "max": s.hi}
                 | ({"step": s.step, "offset": s.offset} if s.step > 1 else {})
                 for s in program.dims],
        "requires": [[dim(e.left), dim(e.right)] for e in program.requires],
        "sizes": [{"name": by_author(b.size.name), "min": b.size.lo, "max": b.size.hi,
                   "most": None if b.most == ENDLESS else dim(b.most)}
                  for b in binds(program.steps)],
        "donations": list(program.donations),
        "steps": [{"kernel": s.kernel, "label": s.label, "where": s.where, "flops": dim(s.flops),
                   "barrier": s.barrier, "serial": kernels[s.kernel].serial,
                   "choice": s.choice and asdict(s.choice),
                   "error": added_error(s.choice), "assumes": assumes,
                   "bytes": dim(moved(s, kernels[s.kernel], buffers, dims))}
                  for s, assumes in zip(runs(program.steps), assumed, strict=True)],
        "precision": program.meta.get("precision", "default"),
        "assumes": "normal" if program.meta.get("assume") == "normal" else max(
            assumed, key=ASSUMPTIONS.__getitem__, default="nothing"),
        "index_checks": program.meta.get("index_checks", "off") == "on"}


def threads_of(program: Program) -> ThreadsRow:
    """By which figures the library decides how many threads a run gets."""
    work, least = parallel_work(program)
    most = 1 if all(k.serial for k in program.kernels) else program.threads
    return ThreadsRow(most, work if isinstance(work, int) else author_text(work), least)


def build_key(sources: Mapping[str, str], digests: list[str], compiler: Compiler,
              options: Options, own: Mapping[str, Compiler] | None = None) -> str:
    """Equal for builds that give the same directory."""
    h = hashlib.sha256()
    others = (x for c in (own or {}).values() for x in c.identity)
    for part in (*(x for kv in sorted(sources.items()) for x in kv), *sorted(digests),
                 *compiler.identity, *others, repr(options)):
        h.update(part.encode() + b"\0")
    return h.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unchanged(out_dir: Path, key: str) -> bool:
    """Whether the directory already holds this very build, whole: every file has its hash."""
    try:
        manifest = read_manifest(out_dir)
        return manifest.key == key and all(
            _digest(out_dir / f) == digest for f, digest in manifest.files.items())
    except (OSError, InputError):
        return False
