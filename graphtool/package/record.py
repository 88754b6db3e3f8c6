"""What is packaged, and the table of forms in which it can be; a plug-in adds its own.

A form makes files from a build; they become a directory, or one archive of the ecosystem's own
kind. Equal builds give equal bytes: archives have no times.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path

from graphtool.dtypes import dtype
from graphtool.errors import InputError, Unsupported, UnsupportedError, UsageError, near
from graphtool.io.directory import replacing, write_files
from graphtool.io.manifest import entry_base, entry_names, one_entry, read_manifest
from graphtool.io.manifest_rows import EntryRow, Manifest, PortRow, ProgramRow
from graphtool.package.words import RESERVED, camel, identifiers
from graphtool.target import TABLE

Files = Mapping[str, bytes]
Archive = tuple[str, bytes]  # the name of the file, and what is in it
MARK = "graphtool-package.json"  # in a directory that a later package of the same may replace
VERSION = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){1,2}")
HANDED = 16  # bits: elements of narrow floats are given as their bits


@dataclass(frozen=True, slots=True)
class Subject:
    """A build: its directory, its manifest, and the version that the package gets."""

    folder: Path
    manifest: Manifest
    version: str

    @property
    def name(self) -> str:
        """The name of the library, an identifier of C."""
        return entry_base(self.manifest)

    @property
    def three(self) -> str:
        """The version as three numbers, as cargo and npm want it."""
        return ".".join((*self.version.split("."), "0")[:3])

    @property
    def weights(self) -> Path | None:
        """The file that NAME_load takes; None if the library has the weights."""
        m = self.manifest
        return self.folder / m.weights if m.weights_mode == "file" and m.weights_bytes else None

    @property
    def library(self) -> Path:
        """The compiled library."""
        return self.folder / self.manifest.library

    @property
    def header(self) -> Path:
        """The public header."""
        return self.folder / self.manifest.header

    @property
    def machine(self) -> tuple[str, ...]:
        """The compiler's flags that name the processor."""
        return tuple(f for f in self.manifest.flags if f.startswith("-m"))

    @property
    def processor(self) -> str:
        """The processor that these flags are for, as Python calls it; "" where that is not known.
        """
        target = self.manifest.target
        if target == "native":
            return platform.machine().lower()
        return next(iter(TABLE[target].machines), "") if target in TABLE else ""

    @property
    def headers(self) -> list[Path]:
        """The public headers: NAME.h, and those of entry points and of functions of training."""
        known = [self.header]
        for name in re.findall(r'#include "(\w+\.h)"', self.header.read_text("utf-8")):
            known += [self.folder / name] if (self.folder / name).is_file() else []
        return known


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a build, as languages see it: its `word`, run or that of its entry point, the
    start of its names in C, and its rows. `prefix` begins the names of its types, in CamelCase."""

    word: str
    symbol: str
    row: Manifest
    prefix: str = ""

    @property
    def values(self) -> int:
        """How many sizes go in and come out."""
        return len(self.row.dims) + len(self.row.sizes)


def functions(s: Subject, taken: Sequence[str] = ()) -> list[Function]:
    """The only function of a build, or one for each entry point, whose words are none of those
    `taken`."""
    names = entry_names(s.manifest)
    if not names:
        return [Function("run", s.name, s.manifest)]
    words = identifiers(names, taken)
    prefixes = identifiers(camel(w) for w in words)
    return [Function(word, row.name, row, prefix) for word, prefix, row in zip(
        words, prefixes, (one_entry(s.manifest, n) for n in names), strict=True)]


@dataclass(frozen=True, slots=True)
class PackageForm:
    """A form of package. `make` gives its files; `archive`, where it is not None, puts these into
    one file, else they are written to the directory `NAME-FORM`. `calls`: it has code that calls
    NAME_run, so the build must be of one function, with `several` it may be of entry points, with
    `trains` of a training graph."""

    name: str
    title: str
    make: Callable[[Subject], Files]
    archive: Callable[[Subject, Files], Archive] | None = None
    calls: bool = True
    several: bool = False
    trains: bool = False


FORMS: dict[str, PackageForm] = {}
ELSEWHERE = {  # languages and tools, and the form for each
    "rust": "cargo", "crate": "cargo", "golang": "go", "python": "wheel", "pip": "wheel",
    "c++": "cmake", "cpp": "cmake", "cxx": "cmake", "c": "single", "js": "npm", "node": "npm",
    "javascript": "npm", "typescript": "npm", "wasm": "npm", "debian": "deb", "ubuntu": "deb",
    "apt": "deb", "fortran": "single"}


def register(form: PackageForm) -> PackageForm:
    """Add a form to the table."""
    FORMS[form.name] = form
    return form


@dataclass(frozen=True, slots=True)
class Packaged:
    """What was written: the file or directory, its form and version, the bytes of its files before
    any compression by name."""

    path: str
    form: str
    name: str
    version: str
    files: Mapping[str, int]


USES = {  # what to type next, in the project that uses the package
    "cargo": "cargo add --path {path}", "wheel": "pip install {path}", "npm": "npm install {path}",
    "go": "go mod edit -require model/{name}@v1.0.0 -replace model/{name}={path}",
    "cmake": "unpack it, and cmake -D CMAKE_PREFIX_PATH=DIR; find_package({name})",
    "deb": "sudo apt install {path}",
    "single": "cc -O3 -c {path}/{name}.c, and #include \"{name}.h\""}


def used(package: Packaged) -> str:
    """What to type next; "" for the form of a plug-in."""
    path = Path(package.path)
    near_by = package.path if path.is_absolute() else f"./{path.as_posix()}"
    return USES.get(package.form, "").format(path=near_by, name=package.name)


def package(build: Path, form: str, out: Path, version: str = "1.0.0") -> Packaged:
    """Write the package of a build into the directory `out`.

    Raises UsageError GT2240 for an unknown form, GT2241 for a version, GT2242 for a build that the
    form cannot hold, UnsupportedError GT2243 for ports that it cannot, InputError GT0330, GT2112.
    """
    if form not in FORMS:
        word = ELSEWHERE.get(form.lower())
        known_as = f"--as {', '.join(FORMS)}"
        raise UsageError("GT2240", f"there is no form {form!r}", hint=f"--as {word} is for {form}\n"
                         f"{known_as}" if word else near(form, FORMS, known_as))
    if not VERSION.fullmatch(version):
        raise UsageError("GT2241", f"{version[:40]!r} is no version", hint="as in 1.0.0")
    known = FORMS[form]
    subject = subject_of(build, known, version)
    files = known.make(subject)
    sizes = {file: len(data) for file, data in sorted(files.items())}
    if known.archive is not None:
        name, data = known.archive(subject, files)
        write_files(out, {name: data})
        return Packaged(str(out / name), form, subject.name, version, sizes)
    target = out / f"{subject.name}-{form}"
    about = {"form": form, "name": subject.name, "version": version, "files": sizes}
    with replacing(target, lambda names: MARK in names) as work:
        for file, data in {**files, MARK: (dumps(about, indent=1) + "\n").encode()}.items():
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            (work / file).write_bytes(data)
    return Packaged(str(target), form, subject.name, version, sizes)


def subject_of(build: Path, form: PackageForm, version: str = "1.0.0") -> Subject:
    """A build that the form can hold. Raises as `package` does."""
    subject = Subject(build, read_manifest(build), version)
    _check(subject, form)
    return subject


def _check(subject: Subject, form: PackageForm) -> None:
    m = subject.manifest
    if form.calls and subject.name in RESERVED:
        raise UsageError("GT2242", f"a package cannot be called {subject.name}: a language or "
                                   "the code around the C uses this word",
                         hint="build with another --name")
    for path in (subject.library, subject.header, *([subject.weights] if subject.weights else [])):
        if not path.is_file():
            raise InputError("GT2206", f"{path.name} is missing", where=str(subject.folder),
                             hint="build again")
    if not form.calls:
        return
    what = ("a training graph" if m.training and not form.trains else
            "several entry points" if entry_names(m) and not form.several else
            f"kernels in {m.device}" if m.device else "")
    if what:
        raise UsageError("GT2242", f"--as {form.name} takes a model of one function, and this is "
                                   f"of {what}", where=str(subject.folder),
                         hint="--as cmake and --as deb take any build, the others entry points, "
                         "--as npm a training graph")
    parts = m.training.programs.values() if m.training else ()
    rows: list[Manifest | EntryRow | ProgramRow] = [m, *m.entries.values(), *parts]
    ports = [p for row in rows for p in (*row.inputs, *row.outputs)]
    odd = [p for p in ports if not is_plain(p)]
    if odd:
        raise UnsupportedError("GT2243", "ports have elements that no array of the language has",
                               tuple(Unsupported(p.type, "is packed, or a string") for p in odd))


def is_plain(port: PortRow) -> bool:
    """Whether elements of the port have bytes of their own."""
    known = dtype(port.type)
    return known.kind != "string" and not known.is_packed and known.bits >= 8


def elements(port: PortRow) -> str:
    """How elements of the port are handed over: f32 or another type that all languages have, u8
    and u16 for the bits of narrow floats, bool."""
    known = dtype(port.type)
    return f"u{known.bits}" if known.is_float and known.bits <= HANDED else known.short


