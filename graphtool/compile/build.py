"""A build directory: the C of a unit, compiled, with its weights and its manifest.

The directory appears at once or not at all; an unchanged rebuild touches no compiler.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from graphtool.compile.entries import entry_texts
from graphtool.compile.lowering import LoweredFunction, check_fits, functions, keep
from graphtool.compile.options import ENTRIES, LEVELS, MODEL, PROGRAM, TRAINING, Build
from graphtool.compile.profile import check as check_profile
from graphtool.compile.texts import Texts, level_texts, model_texts, nodes_of
from graphtool.compile.training import training_texts
from graphtool.compile.unit import LibraryUnit
from graphtool.compile.weights import digest
from graphtool.emit.cuda import images
from graphtool.emit.language import CALLER, C, named
from graphtool.emit.project import README, Project, config_files, readme
from graphtool.emit.shapes import shapes
from graphtool.emit.single import single
from graphtool.errors import InputError, UsageError
from graphtool.io import files
from graphtool.io.directory import replacing, write_files
from graphtool.io.manifest import read_manifest
from graphtool.io.manifest_rows import Manifest
from graphtool.io.rows import decode
from graphtool.kernels import headers
from graphtool.native import cuda
from graphtool.native.compiler import Compiler, find
from graphtool.native.objects import compile_all, library_of, linking
from graphtool.target import Target

TEXTS: dict[str, Callable[[LibraryUnit, Mapping[str, LoweredFunction], Build], Texts]] = {
    MODEL: model_texts, PROGRAM: model_texts, LEVELS: level_texts, ENTRIES: entry_texts,
    TRAINING: training_texts}


@dataclass(frozen=True, slots=True)
class Built:
    """A build directory, and the functions in it by the names of their programs."""

    path: Path
    unit: LibraryUnit
    functions: Mapping[str, LoweredFunction]


def build(unit: LibraryUnit, out: Path, how: Build) -> Built:
    """Compile a unit into the directory `out`.

    Raises UsageError GT2106 for a target whose kernels are compiled elsewhere, GT2107 for what is
    not built for a device, CompilerError GT212x, GT2131 when a compiler is missing or fails,
    InputError GT0330 when the directory cannot be written, and what the passes, `lower` and the
    texts of a kind raise.
    """
    how = how.fitted(unit.target)
    for target in unit.targets.values():
        language = named(target.language)
        if language.device:
            if target.devices:
                cuda.find()
            check_device(unit, how)
        elif language.ending != C.ending:
            raise UsageError("GT2106", f"kernels in {language.title} are not compiled here",
                             where=target.name, hint="`graphtool emit` writes them")
    check_pool(unit, how)
    with ThreadPoolExecutor(1) as beside:  # to ask a compiler what it can takes as long as a pass
        for target in unit.targets.values():
            beside.submit(_compiler, how, target)
        lowered = _functions(unit, how)
    for one in lowered.values():
        check_profile(how.profile, one.program)
        if one.read is None:  # a program from a file, lowered for a machine of its own
            check_fits(one, unit.target)
    texts = TEXTS[unit.kind](unit, lowered, how)
    common, special = _compilers(unit, texts, how, nodes_of(unit, lowered, how) is not None)
    texts = replace(texts, files={**texts.files, **_project_files(texts, common, how)})
    key = _key(texts, common, special, how)
    if how.keep or not unchanged(out, key):
        with replacing(out) as work:
            _write(work, texts, common, special, how, key)
            if how.keep:
                keep(next(iter(lowered.values())), work)
    return Built(out, unit, lowered)


def emit(unit: LibraryUnit, out: Path, how: Build) -> dict[str, str]:
    """Write the C of a unit into `out`, and compile nothing; returns the texts by file.

    The weights are written too where they are part of the C. Raises as `build` does.
    """
    how = how.fitted(unit.target)
    if named(unit.target.language).device:
        check_device(unit, how)
    check_pool(unit, how)
    lowered = _functions(unit, how)
    for one in lowered.values():
        check_profile(how.profile, one.program)
    texts = TEXTS[unit.kind](unit, lowered, how)
    with TemporaryDirectory(prefix="graphtool-emit-") as folder:
        work = Path(folder)
        for side in texts.sides:
            if side.mode != "file":
                side.write(work)
        data = {p.name: p.read_bytes() for p in sorted(work.iterdir())}
    if how.single:
        files = single(unit.name, {**texts.files, **{f: b.decode() for f, b in data.items()}})
        write_files(out, files)
    else:
        files = texts.files
        write_files(out, {**files, **data})
    _remove_older(out, unit.name, {*files, *data})
    return files


def _remove_older(out: Path, name: str, written: Collection[str]) -> None:
    """Remove the kernels that an earlier text of this name had and this one has not: a compiler
    that is given all files would find functions twice."""
    older = re.compile(re.escape(name) + r"_kernels\d+\.\w+")
    for path in out.iterdir():
        if older.fullmatch(path.name) and path.name not in written:
            path.unlink()


def check_device(unit: LibraryUnit, how: Build) -> None:
    """Raises UsageError GT2107 for what kernels on a device cannot be."""
    what = ("--mpi" if how.mpi else
            "a program that trains (--exe)" if how.exe and unit.kind == TRAINING else
            "--precision strict" if how.precision == "strict" else
            "--single" if how.single else "")
    if what:
        raise UsageError("GT2107", f"{what} is not built for {unit.target.name}",
                         hint="build it for a processor: --target native")


def check_pool(unit: LibraryUnit, how: Build) -> None:
    """Raises UsageError GT2118 for what the threads of a caller's pool cannot run."""
    if how.threads_by == CALLER and not named(unit.target.language).called:
        raise UsageError("GT2118", f"--threads-by caller cannot go with {unit.target.name}",
                         hint="build it for a processor: --target native")


def _functions(unit: LibraryUnit, how: Build) -> dict[str, LoweredFunction]:
    """The functions of a unit, which know whose threads run them."""
    lowered = functions(unit, how, journal=how.keep)
    if how.threads_by == "pool":
        return lowered
    return {name: replace(f, program=replace(f.program, meta={
        **f.program.meta, "threads": how.threads_by})) for name, f in lowered.items()}


def _project_files(texts: Texts, common: Compiler, how: Build) -> dict[str, str]:
    """What other build systems read of the build, the README, and what a module of WebAssembly
    needs: a host cannot read a header."""
    weights = next((side.file for side in texts.sides if side.file), "")
    project = Project(texts.name, library_of(texts.name, common.system, static=how.static), weights,
                      links=("-pthread", *common.libraries, "-lm"))
    asked = {f"{texts.name}_shapes.c": shapes(texts.name, texts.files)} if project.module else {}
    return {**config_files(project), **asked,
            README: readme(project, texts.files, trains="training" in texts.rows)}


def _compiler(how: Build, target: Target) -> Compiler:
    return find(how.cc, target, threads=how.threads_by != "none", mpi=how.mpi)


def _compilers(unit: LibraryUnit, texts: Texts, how: Build, debug: bool
               ) -> tuple[Compiler, dict[str, Compiler]]:
    """The compiler of the files that all versions share, and that of each version's own files, by
    the start of their names."""
    common = linking(_compiler(how, unit.target), texts.files)
    special = {start: linking(_compiler(how, target), texts.files).of_class(texts.precision, debug)
           for start, target in texts.versions.items()}
    return common if special else common.of_class(texts.precision, debug), special


def _write(work: Path, texts: Texts, common: Compiler, special: Mapping[str, Compiler], how: Build,
           key: str) -> None:
    """All files of a build directory; the manifest, which lists the others, last."""
    for file, text in texts.files.items():
        (work / file).write_bytes(text.encode())
    offsets = {f"{side.name}.safetensors": side.write(work) for side in texts.sides}
    if how.single:
        _fold(work, texts.name)
    for program in texts.programs if texts.devices else ():
        cuda.compile_images(work / f"{program}_kernels0.cu", images(program, texts.devices),
                            headers.text("cuda_types.h") or "", how.jobs)
    rows: dict[str, Any] = {
        **texts.rows, **compile_all(work, texts.name, [s.name for s in texts.sides],
                                    texts.programs, common, special, how.jobs, static=how.static,
                                    exe=how.exe, single=how.single),
        "key": key, "weights_offset": offsets[texts.rows["weights"]],
        "weights_mode": texts.sides[0].mode}
    rows["files"] = {p.name: digest(p) for p in sorted(work.iterdir())}
    text = json.dumps(asdict(decode(rows, Manifest)), indent=1) + "\n"
    files.write_bytes(work / "build.json", text.encode())


def _fold(work: Path, name: str) -> None:
    """Put one NAME.c and one NAME.h in the place of the C files and headers in `work`."""
    texts = {p.name: p.read_text("utf-8") for p in sorted(work.iterdir())
             if p.suffix in (".c", ".h")}
    for file in texts:
        (work / file).unlink()
    for file, text in single(name, texts).items():
        (work / file).write_bytes(text.encode())


def _key(texts: Texts, common: Compiler, special: Mapping[str, Compiler], how: Build) -> str:
    """Equal for builds that give the same directory."""
    h = hashlib.sha256()
    held = sorted(w.digest for side in texts.sides for w in side.held)
    others = (x for c in special.values() for x in c.identity)
    device = (cuda.find().version,) if texts.devices else ()
    for part in (*(x for kv in sorted(texts.files.items()) for x in kv), *held, *texts.beyond_c,
                 *device, *common.identity, *others,
                 repr((how.exe, how.static, how.single, [s.mode for s in texts.sides]))):
        h.update(part.encode() + b"\0")
    return h.hexdigest()


def unchanged(out: Path, key: str) -> bool:
    """Whether the directory already holds this very build, whole: every file has its hash."""
    try:
        manifest = read_manifest(out)
        return manifest.key == key and all(
            digest(out / f) == known for f, known in manifest.files.items())
    except (OSError, InputError):
        return False
