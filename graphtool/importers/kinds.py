"""What is this file? One answer for every verb: by its first bytes, then by its name."""

from __future__ import annotations

import re
from pathlib import Path

import graphtool.importers.table  # noqa: F401  (fills the table of importers)
from graphtool.errors import InputError, UsageError, listed
from graphtool.importers.record import IMPORTERS, FileKind, Importer

STDIN = FileKind("stdin", "a graph from stdin")
GRAPH = FileKind("graph", "a graph", (".graph.json", ".gt"))
PROGRAM = FileKind("program", "a program", (".program.json",),
                   use="`graphtool show {path}` reads it, `graphtool build {path} "
                   "-o DIR` compiles it")
BUILD = FileKind("build", "a build", use="`graphtool show {path}` reads it, `graphtool run {path} "
                 "--random` runs it")
FOLDER = FileKind("directory", "a directory")
MISSING = FileKind("missing", "no file")
JSON = FileKind("json", "a JSON file", (".json",))
LOG = FileKind("log", "a file of JSON lines", (".jsonl",),
               use="`graphtool view {path} -o page.html` shows a log of training")
OTHER = FileKind("other", "a file of an unknown kind")
EMPTY = FileKind("empty", "an empty file", use="write or copy it again")
ARCHIVE = FileKind("archive", "an archive", (".zip", ".gz", ".tar", ".tgz"),
                   re.compile(rb"PK\x03\x04|\x1f\x8b"), "unpack it, and name the model in it")
PICKLE = FileKind("pickle", "a pickle of Python objects", (".pkl", ".pickle"),
                  re.compile(rb"\x80[\x02-\x05]"), "it is never read, since that can run any code: "
                  "import FILE.py:NAME, which loads it")
ARRAYS = FileKind("arrays", "a file of arrays", (".npz", ".npy"), re.compile(rb"\x93NUMPY"),
                  "it can be the inputs of a run: --inputs {path}")
KINDS = (
    FileKind("pointer", "a Git LFS pointer", begins=re.compile(rb"version https://git-lfs"),
             use="`git lfs pull` fetches the file itself"),
    FileKind("weights", "a file of weights", (".safetensors",),
             re.compile(rb'.{5}\0\0\0\{"', re.DOTALL),
             "`graphtool weights GRAPH --from {path}` puts them into a graph"),
    FileKind("library", "machine code (a library, an object or a program)",
             (".so", ".a", ".o", ".dylib", ".dll"),
             re.compile(rb"\x7fELF|[\xce\xcf]\xfa\xed\xfe|\xca\xfe\xba\xbe|MZ|\0asm|!<arch>"),
             "name the build directory that it is in, or the model that it was made from"),
    FileKind("source", "Python source", (".py",),
             use="name what is in it: {path}:NAME, a module or a function that makes one"),
    FileKind("c", "source of C", (".c", ".h", ".cu", ".cpp"),
             use="name the build directory that it is in, or the model that it was made from"),
    FileKind("page", "a page or a picture", (".html", ".svg", ".png", ".md"),
             use="name the graph or the model that it shows"),
    ARRAYS, ARCHIVE, PICKLE)
_FORMAT = re.compile(rb'"format":\s*"graphtool/(\w+)"')
_HEAD = 4096


def what(source: str, capture: str = "export") -> FileKind:
    """The kind of a source; an Importer if it is a model, as `capture` says if that is Python."""
    if source == "-" or source.endswith("/-"):
        return STDIN
    path = Path(source)
    if path.is_dir():
        return BUILD if (path / "build.json").is_file() else _by_suffix(source) or FOLDER
    head = _head(path)
    if head is None:
        return _by_name(source, capture, b"") or MISSING
    return _by_bytes(source, head) or _by_name(source, capture, head) or next(
        (r for r in IMPORTERS.values() if r.begun(head)),
        _by_format(head) if head.lstrip()[:1] == b"{" else OTHER)


def _head(path: Path) -> bytes | None:
    """The first bytes of a file; None where there is none, and of a pipe, which would lose them."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_HEAD)
    except (OSError, ValueError):
        return None


def _by_bytes(source: str, head: bytes) -> FileKind | None:
    """The kind if the bytes tell it, whatever the name says."""
    if not head:
        return EMPTY
    kind = next((k for k in KINDS if k.begun(head)), None)
    if kind in (ARCHIVE, PICKLE):  # as torch's files are, or were
        return _by_suffix(source) or (ARRAYS if _has_arrays(source) else kind)
    return kind


def _by_suffix(source: str) -> Importer | None:
    return next((r for r in IMPORTERS.values() if r.suffixes and r.fits(source)), None)


def _has_arrays(path: str) -> bool:
    import zipfile
    try:
        with zipfile.ZipFile(path) as archive:
            return all(n.endswith(".npy") for n in archive.namelist())
    except (OSError, zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError):
        return path.endswith(ARRAYS.suffixes)


def _by_name(source: str, capture: str, head: bytes) -> FileKind | None:
    """The kind that the name says; of JSON of any name, the format that it states."""
    if (kind := next((k for k in (GRAPH, PROGRAM) if source.endswith(k.suffixes)), None)):
        return kind
    if source.endswith(JSON.suffixes):
        return _by_format(head)
    if source.endswith(LOG.suffixes):
        return LOG
    model = next((r for r in IMPORTERS.values() if r.fits(source) and (
        not r.captures or capture in r.captures)), None)
    return model or next((k for k in KINDS if k.suffixes and source.endswith(k.suffixes)), None)


def _by_format(head: bytes) -> FileKind:
    stated = _FORMAT.search(head)
    return {b"graph": GRAPH, b"program": PROGRAM}.get(stated[1] if stated else b"", JSON)


# ---- errors ------------------------------------------------------------------------------------

def not_a_graph(source: str, kind: FileKind) -> InputError | None:
    """The error for a file that no reader of graphs can say more of; None for others."""
    if kind in (STDIN, GRAPH, JSON, OTHER, MISSING, BUILD, FOLDER):
        return None
    return InputError("GT0340", f"this is {kind.title}, not a graph", where=source,
                      hint=kind.use.format(path=source))


def not_a_model(source: str, kind: FileKind) -> UsageError:
    """The error for what cannot be imported."""
    forms = listed([*(r.written for r in IMPORTERS.values()), "MODEL.graph.json"])
    if kind in (OTHER, MISSING):
        return UsageError("GT1110", f"cannot tell what {source!r} is", hint=f"expected {forms}")
    hint = kind.use.format(path=source)
    if kind is FOLDER:
        models = sorted(str(p) for p in Path(source).iterdir() if (p.is_file() and isinstance(
            what(str(p)), Importer)) or p.name.endswith(GRAPH.suffixes))
        hint = f"it contains {listed(models)}" if models else f"expected {forms}"
    return UsageError("GT1110", f"{source!r} is {kind.title}, not a model", hint=hint)
