"""What a test needs beside Python, read from its source: a C compiler, torch, another process.

A test needs what its names need: fixtures, helpers in tests and benchmarks with what they name in
turn, and at the end the modules, functions and verbs of the table. A file that imports torch needs
it whatever its tests do.
"""

from __future__ import annotations

import ast
import os
import pickle
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ROOT / ".pytest_cache" / "sources.pickle"
KINDS = ("compiled", "torch", "process")
NEEDS = {
    "torch": "torch", "jax": "torch", "onnxruntime": "torch", "transformers": "torch",
    "graphtool.importers.torch": "torch", "graphtool.integrations.torch_compile": "torch",
    "graphtool.integrations.torch_backend": "torch",
    "subprocess": "process", "multiprocessing": "process", "pty": "process", "os.fork": "process",
    "concurrent.futures.ProcessPoolExecutor": "process",
    "graphtool.native": "compiled", "graphtool.build": "compiled",
    "graphtool.compile.as_is": "compiled", "graphtool.compile.build": "compiled",
    "graphtool.train.model": "compiled", "graphtool.machines.tiles_allowed": "compiled",
    "graphtool.integrations.onnx_backend": "compiled", "graphtool.tune": "compiled",
    "graphtool.verify.check": "compiled", "graphtool.verify.reducer": "compiled",
    "graphtool.verify.imports": "torch",
}
VERBS = {**dict.fromkeys(("build", "run", "profile", "bench", "train", "generate", "tune", "doctor",
                         "machine", "debug", "demo"), "compiled"), "git": "process"}
COMMANDS = {"gt", "run", "gt_run"}  # fixtures and functions that take a command line


@dataclass
class Uses:
    """What a piece of source names: variables and parameters, dotted names, imports, and the first
    word of each text."""

    names: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    dotted: set[tuple[str, ...]] = field(default_factory=set)
    imported: dict[str, str] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)


@dataclass
class Source:
    """The top level of a module: what its definitions use, and what its imports call."""

    defined: dict[str, Uses] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)


@cache
def source(path: Path) -> Source:
    """What a file says, kept from run to run: to read 500 files takes some seconds."""
    stamp = (path.stat().st_mtime_ns, Path(__file__).stat().st_mtime_ns)
    if (kept := _kept().get(str(path))) and kept[0] == stamp:
        return kept[1]
    out = _read(path)
    _kept()[str(path)] = stamp, out
    return out


@cache
def _kept() -> dict[str, tuple[tuple[int, int], Source]]:
    try:
        kept: dict[str, tuple[tuple[int, int], Source]] = pickle.loads(KEPT.read_bytes())
    except Exception:  # there is none, or it is of another version
        return {}
    return kept


def keep() -> None:
    """Write what is known of the files of this repository, for the next run."""
    kept = {p: x for p, x in _kept().items() if ROOT in Path(p).parents}
    with suppress(OSError):
        KEPT.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=KEPT.parent, delete=False) as file:
            file.write(pickle.dumps(kept))
        os.replace(file.name, KEPT)


def _read(path: Path) -> Source:
    out = Source()
    for node in ast.parse(path.read_text()).body:
        uses = Uses()
        _collect(node, uses)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            out.defined[node.name] = uses
        else:
            out.imported |= uses.imported
            out.defined |= dict.fromkeys(uses.stored, uses)
    return out


def _collect(node: ast.AST, out: Uses) -> None:
    match node:
        case ast.Name(name, ctx):
            out.names.add(name)
            if isinstance(ctx, ast.Store):
                out.stored.add(name)
        case ast.arg(name):
            out.names.add(name)
        case ast.Attribute():
            parts: list[str] = []
            at: ast.AST = node
            while isinstance(at, ast.Attribute):
                parts.insert(0, at.attr)
                at = at.value
            if isinstance(at, ast.Name):
                out.dotted.add((at.id, *parts))
        case ast.Constant(str() as text):
            out.words.update(text.split(maxsplit=1)[:1])
        case ast.Call(ast.Attribute(attr="importorskip"), [ast.Constant(name), *_]):
            out.imported[name] = name
        case ast.ImportFrom():
            out.imported |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        case ast.Import():
            out.imported |= {a.asname: a.name for a in node.names if a.asname}
            out.imported |= {(top := a.name.partition(".")[0]): top
                             for a in node.names if not a.asname}
    for name in node._fields:
        inside = getattr(node, name, None)
        for child in inside if isinstance(inside, list) else (inside,):
            if isinstance(child, ast.AST):
                _collect(child, out)


@cache
def ours(module: str) -> Path | None:
    """The file of a module of tests or benchmarks."""
    at = ROOT / module.replace(".", "/")
    if module.partition(".")[0] in ("tests", "benchmarks"):
        return next((p for p in (at.with_suffix(".py"), at / "__init__.py") if p.exists()), None)
    return None


@cache
def known(name: str) -> set[str]:
    """The kinds of a full name, by the table."""
    return {kind for key, kind in NEEDS.items() if f"{name}.".startswith(f"{key}.")}


@cache
def needs(path: Path, test: str) -> frozenset[str]:
    """The kinds of a test function of a file."""
    return _of_name(path, test) | ({"torch"} if imports_torch(path) else set())


@cache
def imports_torch(path: Path) -> bool:
    """Whether the file cannot be imported without torch."""
    seen, todo = set[Path](), [path]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        for full in source(at).imported.values():
            if "torch" in known(full):
                return True
            todo += [p for name in (full, full.rpartition(".")[0]) if (p := ours(name))]
    return False


@cache
def _of_name(path: Path, name: str) -> frozenset[str]:
    out, seen, todo = set[str](), set[tuple[Path, str]](), [(path, name)]
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            kinds, more = _step(*at)
            out |= kinds
            todo += more
    return frozenset(out)


@cache
def _step(path: Path, name: str) -> tuple[set[str], list[tuple[Path, str]]]:
    """The kinds of one name of a module, and the names that it leads to."""
    here = source(path)
    if (uses := here.defined.get(name)) is not None:
        return _of_definition(path, uses)
    if (full := here.imported.get(name)) is not None:
        module, _, last = full.rpartition(".")
        file = None if ours(full) else ours(module)
        return known(full), [(file, last)] if file else []
    for conftest in (p / "conftest.py" for p in path.parents):  # a fixture
        if conftest != path and conftest.exists() and ROOT in conftest.parents:
            there = source(conftest)
            if name in there.defined or name in there.imported:
                return set(), [(conftest, name)]
    return set(), []


def _of_definition(path: Path, uses: Uses) -> tuple[set[str], list[tuple[Path, str]]]:
    out = {kind for full in uses.imported.values() for kind in known(full)}
    if uses.names & COMMANDS:
        out |= {kind for verb, kind in VERBS.items() if verb in uses.words}
    todo = [(path, name) for name in uses.names]
    called = source(path).imported | uses.imported
    for top, *parts in uses.dotted:
        if top in called:
            full = ".".join((called[top], *parts))
            out |= known(full)
            module, _, last = full.rpartition(".")
            if file := ours(module):
                todo.append((file, last))
    return out, todo
