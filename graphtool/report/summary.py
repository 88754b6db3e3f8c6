"""What a reviewer wants to know of a build: `graphtool report`. summary_text.py writes it."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from graphtool.io.elf import read_elf
from graphtool.io.manifest_rows import Manifest, StepRow
from graphtool.ir.graph import Module
from graphtool.ir.listing import required
from graphtool.native.sizes import dim_table, equations, symbol_of
from graphtool.report.artifacts import dim_text, interfaces, port_text
from graphtool.report.bench import Timing
from graphtool.report.table import Size, size
from graphtool.report.trace import Trace
from graphtool.symbolic import Dim, divides, symbol
from graphtool.symbolic.parse import parse

OWN = "Apache-2.0"  # the C that graphtool writes, and the headers that it copies
LIBRARIES = (  # how the name of a library begins, what it is, its licence
    ("libc.", "the C library", "LGPL-2.1-or-later (glibc)"),
    ("libm.", "the C library", "LGPL-2.1-or-later (glibc)"),
    ("libpthread.", "the C library", "LGPL-2.1-or-later (glibc)"),
    ("libdl.", "the C library", "LGPL-2.1-or-later (glibc)"),
    ("ld-linux", "the C library", "LGPL-2.1-or-later (glibc)"),
    ("libgomp.", "gcc's OpenMP", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ("libgcc_s.", "gcc's runtime", "GPL-3.0-or-later WITH GCC-exception-3.1"),
    ("libomp.", "LLVM's OpenMP", "Apache-2.0 WITH LLVM-exception"),
    ("libopenblas", "OpenBLAS", "BSD-3-Clause"), ("libscipy_openblas", "OpenBLAS", "BSD-3-Clause"),
    ("libmpi", "MPI", "BSD-3-Clause (Open MPI) or its own (MPICH)"))


class Accuracy(msgspec.Struct):
    """One measure of an output on `examples`; `by` says what it was compared with."""

    output: str
    measure: str
    value: float
    examples: int
    by: str


class Interface(msgspec.Struct):
    """A function of the build: its inputs, outputs and open dims as text; bytes of its arena, and
    `live` of them at once if that is known; its kernels and their FLOPs."""

    name: str
    inputs: list[str]
    outputs: list[str]
    dims: list[str]
    arena: Size
    live: int | None
    kernels: int
    flops: Size


class ByteSizes(msgspec.Struct):
    """Bytes: of the machine code (null: not known of such a library), of the library file, of the
    C and its headers, of the weights."""

    code: int | None
    library: int
    source: int
    weights: int
    weights_in: str


class Inexact(msgspec.Struct):
    """A reason why results may differ from the model's: its kind (the numerics class, or what is
    assumed), what it is, where, and the relative error it adds, if that is known."""

    kind: str
    what: str
    where: list[str]
    error: float | None = None


class Licence(msgspec.Struct):
    """A part of the build and its licence; `how`: written, copied, linked, loaded, or data."""

    part: str
    licence: str
    how: str
    files: list[str]


class FileRow(msgspec.Struct):
    """A file of the build with its sha256; `ok`: that is what was built."""

    name: str
    bytes: int
    sha256: str
    ok: bool


class CallTimes(msgspec.Struct):
    """Times of a call on this machine, with these sizes of the open dims."""

    machine: str
    threads: int
    dims: dict[str, int]
    timing: Timing


class Traceability(msgspec.Struct):
    """How far trace.csv joins model and C: nodes of the model, kernels of the C, and which of them
    have no counterpart. `became` counts the nodes by what they became."""

    nodes: int
    kernels: int
    became: dict[str, int]
    lost: list[str]
    orphans: list[str]


class Summary(msgspec.Struct):
    """`report --json` and report.json; schemas/report.schema.json is made from it.

    `reproduce` builds it again from the model; `key` is then the same with the same compiler.
    """

    name: str
    kind: str
    target: str
    compiler: str
    flags: list[str]
    precision: str
    key: str
    model: str
    model_sha256: str
    versions: dict[str, str]
    functions: list[Interface]
    sizes: ByteSizes
    times: CallTimes | None
    accuracy: list[Accuracy]
    inexact: list[Inexact]
    requires: list[str]
    licences: list[Licence]
    files: list[FileRow]
    reproduce: list[str]
    notes: list[str] = []
    traced: Traceability | None = None  # of a build with --keep


def traceability(t: Trace) -> Traceability:
    """The figures of a trace."""
    kernels = {p.kernel for n in t.nodes for p in n.kernels} | {p.kernel for p in t.orphans}
    became = Counter(n.became for n in t.nodes)
    return Traceability(len(t.nodes), len(kernels), dict(sorted(became.items())), t.lost,
                        [p.kernel for p in t.orphans])


def functions(m: Manifest) -> list[Interface]:
    """The functions of a build: several if it has entry points."""
    return [Interface(
        one.entry or one.name, [port_text(p) for p in one.inputs],
        [port_text(p) for p in one.outputs], [dim_text(d) for d in one.dims],
        one.arena, one.live, len(one.steps), summed(one, (s.flops for s in one.steps)))
        for one in interfaces(m)]


def summed(m: Manifest, rows: Iterable[Size]) -> Size:
    """The sum of sizes over the open dims of a build, and over the dims that its runs compute."""
    table = {**dim_table(m.dims), **{d.name: symbol(d.name, d.min, d.max) for d in m.sizes}}
    total: Dim = 0
    for x in rows:
        total = total + (x if isinstance(x, int) else parse(x, table))
    return size(total)


def sizes(m: Manifest, folder: Path) -> ByteSizes:
    """The sizes of a build's parts."""
    library = folder / m.library
    elf = read_elf(library) if library.is_file() else None
    source = sum(_size(folder / n) for n in m.files if n.endswith((".c", ".h")))
    return ByteSizes(elf.code if elf else None, _size(library), source, m.weights_bytes,
                     {"file": m.weights, "embed": "the library", "c": "the C"}[m.weights_mode])


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def files(m: Manifest, folder: Path) -> list[FileRow]:
    """The files that the manifest lists, each with the hash that it has now."""
    out = []
    for name, wanted in sorted(m.files.items()):
        path, digest = folder / name, ""
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        out.append(FileRow(name, _size(path), digest or wanted, digest == wanted))
    return out


def inexact(m: Manifest) -> list[Inexact]:
    """What of a build is not the exact arithmetic of its model, as far as it is recorded."""
    out = [Inexact("class", f"precision {m.precision}", [])]
    steps = [s for one in interfaces(m) for s in one.steps]
    finite = [s.kernel for s in steps if s.assumes == "finite"]
    if finite:
        out.append(Inexact("finite", "a NaN or an infinity may spread or move", finite))
    if m.assumes == "normal":
        out.append(Inexact("normal", "subnormal numbers count as 0", []))
    by_plan: dict[str, list[StepRow]] = {}
    for s in steps:
        if s.error and s.choice is not None:
            by_plan.setdefault(next(iter(s.choice.us)), []).append(s)
    out += [Inexact("approximate", plan, [s.kernel for s in rows], max(s.error for s in rows))
            for plan, rows in sorted(by_plan.items())]
    narrow = sorted({r.type for one in interfaces(m) for r in (*one.inputs, *one.outputs)
                     if r.type in ("f16", "bf16")})
    out += [Inexact("narrow", f"inputs or outputs of {kind}", []) for kind in narrow]
    if not m.index_checks:
        out.append(Inexact("unchecked", "an index out of range takes the nearest element, and "
                                        "nothing is reported", []))
    rewrites = [r for one in interfaces(m) for r in one.assumed]
    return out + [Inexact(r.needs, f"{r.by}: {r.why}", r.values) for r in rewrites]


def requires(m: Manifest, module: Module | None) -> list[str]:
    """What must hold of the sizes of a run: a run that breaks it fails with an error."""
    conditions = [str(e) for one in interfaces(m) for e in equations(one.dims, one.requires)]
    conditions += [divides(symbol_of(d)) for one in interfaces(m) for d in one.dims if d.step > 1]
    return list(dict.fromkeys([*conditions, *(required(module) if module else [])]))


def licences(m: Manifest, folder: Path, stated: str) -> list[Licence]:
    """The licences of the parts; `stated` is the model's licence, as its file says it."""
    copied = sorted(n for n in m.files if n.endswith(".h") and not n.startswith(m.name))
    written = sorted(n for n in m.files if n.endswith((".c", ".h")) and n not in copied)
    out = [Licence("weights and structure of the model", stated or "not stated by the model",
                   "data", [n for n in (m.weights,) if n in m.files]),
           Licence("C written by graphtool", OWN, "written", written),
           Licence("headers of graphtool", OWN, "copied", copied)]
    elf = read_elf(folder / m.library) if (folder / m.library).is_file() else None
    for name in elf.needed if elf else ():
        part, licence = next(((p, x) for begin, p, x in LIBRARIES if name.startswith(begin)),
                             (name, "unknown to graphtool"))
        out.append(Licence(part, licence, "loaded, not part of the build", [name]))
    return out


def stated_licence(meta: Mapping[str, object]) -> str:
    """The licence that a model's metadata name."""
    return str(meta.get("licence", ""))


def reproduce(m: Manifest, model: str) -> list[str]:
    """The commands that make the build and its report again."""
    options = ["-o", "build", "--name", m.name]
    options += ["--march", "fat" if m.levels else m.target or "native"]
    options += ["--precision", m.precision] if m.precision != "default" else []
    options += ["--weights", m.weights_mode] if m.weights_mode != "file" and not m.training else []
    options += [] if m.index_checks else ["--no-index-checks"]
    by = m.threads.by if m.threads else "pool"
    options += [] if by == "pool" else ["--threads-by", by]
    options += ["--static"] if m.library.endswith(".a") else []
    options += ["--exe"] if m.executable else []
    options += ["--debug-lines"] if "-g" in m.flags else []
    return [shlex.join(["graphtool", "build", model or "MODEL", *options])]
