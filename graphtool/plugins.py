"""Plug-ins: Python files that add ops, rules, passes, kernels, targets and importers.

A plug-in calls the functions of `graphtool.extend` while it is imported; this module records who
added what. Only a person can load a plug-in: by `--plugin FILE`, `graphtool.load_plugin`, or by
installing a package with the entry point group `graphtool.plugins`. A graph, program or build
cannot.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial, wraps
from importlib import import_module, util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any, TypeVar, cast

from graphtool.errors import (
    GraphtoolError,
    InputError,
    PluginError,
    Signal,
    Unsupported,
    UnsupportedError,
    UsageError,
)

GROUP = "graphtool.plugins"
Undo = Callable[[], object]
Function = TypeVar("Function", bound=Callable[..., Any])
Row = TypeVar("Row", bound=Any)


@dataclass(frozen=True)
class PlugIn:
    """One plug-in: its name, its `__version__`, its file or module, and what it added, by kind."""

    name: str
    version: str
    source: str
    added: dict[tuple[str, str], Undo] = field(default_factory=dict, repr=False)


LOADED: dict[str, PlugIn] = {}
_loading: list[PlugIn] = []  # the plug-in that is being imported


def added(kind: str, name: str, undo: Undo) -> None:
    """Record that the plug-in which is being loaded, if any, added `name`; `undo` removes it
    again. For `graphtool.extend`."""
    if _loading:
        _loading[-1].added[kind, name] = undo


def taken(kind: str, name: str) -> UsageError:
    """The error for a name that already exists."""
    owner = owner_of(kind, name)
    return UsageError("GT3103", f"the {kind} {name!r} already exists"
                      + (f", added by the plug-in {owner.name}" if owner else ""),
                      hint="give it another name")


def needed(kind: str, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The plug-ins that added any of `names`, with their versions and these names, all sorted."""
    by_plugin: dict[str, dict[str, Any]] = {}
    for name in sorted(set(names)) if LOADED else ():
        if (owner := owner_of(kind, name)) is not None:
            row = by_plugin.setdefault(owner.name, {"version": owner.version, kind + "s": []})
            row[kind + "s"].append(name)
    return dict(sorted(by_plugin.items()))


def missing(what: str, rows: Sequence[tuple[str, str, str, str]], where: str) -> UnsupportedError:
    """The error for a file that needs plug-ins which are not loaded; a row has kind, name,
    plug-in and its version."""
    files = dict.fromkeys(plugin for _, _, plugin, _ in rows)
    return UnsupportedError(
        "GT0358", f"the {what} needs the plug-in {', '.join(files)}",
        tuple(Unsupported(name, f"the {kind} is of the plug-in {plugin} {version}".rstrip())
              for kind, name, plugin, version in rows), where=where,
        hint="give the file of each: " + " ".join(f"--plugin {name}.py" for name in files))


def owner_of(kind: str, name: str) -> PlugIn | None:
    """The plug-in that added `name`; None if it is part of graphtool itself."""
    return next((p for p in LOADED.values() if (kind, name) in p.added), None)


# ---- loading -----------------------------------------------------------------------------------

def load_plugin(file: str | Path) -> PlugIn:
    """Import the plug-in in a Python file; importing the same file again changes nothing.

    Raises UsageError GT3101 if there is no such file, GT3103 for a name that already exists, GT3104
    for a second plug-in of the same name, InputError GT3102 if the file fails.
    """
    path = Path(file).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise UsageError("GT3101", f"there is no plug-in {str(file)!r}",
                         hint="--plugin takes a Python file: FILE.py")

    return _load(path.stem, str(path),
                 partial(module_of_file, f"graphtool_plugin_{path.stem}", path))


class _AsWritten(SourceFileLoader):
    """Compiles the file as it is now and leaves nothing beside it. Python's own loader takes the
    bytecode of an older text that has the same size and was written in the same second."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def module_of_file(name: str, path: Path) -> ModuleType:
    """The module that the file makes when it is run anew, known to Python as `name`."""
    loader = _AsWritten(name, str(path))
    spec = util.spec_from_loader(name, loader)
    assert spec is not None  # there is a loader
    module = sys.modules[name] = util.module_from_spec(spec)  # dataclasses look their module up
    loader.exec_module(module)
    return module


def load_installed() -> None:
    """Import the plug-ins that installed packages name in the entry point group."""
    if not _any_installed():
        return
    from importlib.metadata import entry_points
    for entry in entry_points(group=GROUP):
        _load(entry.name, _file_of(entry.module), partial(import_module, entry.module))


def _file_of(module: str) -> str:
    """The file from which a module would be imported, or the module's name if there is none."""
    with suppress(ImportError):
        if (spec := util.find_spec(module)) and spec.origin:
            return spec.origin
    return module


def _any_installed() -> bool:
    """Whether any package has the entry point group: reading all metadata takes longer than
    `show`."""
    folders = [Path(p) for p in sys.path if p]
    return any(f"[{GROUP}]" in text for folder in folders if folder.is_dir()
               for text in _entry_points(folder))


def _entry_points(folder: Path) -> Iterator[str]:
    for kind in ("*.dist-info", "*.egg-info"):
        for file in folder.glob(f"{kind}/entry_points.txt"):
            yield file.read_text("utf-8", "replace")


def _load(name: str, source: str, run: Callable[[], object]) -> PlugIn:
    known = LOADED.get(name)
    if known is not None:
        if known.source == source:
            return known
        raise UsageError("GT3104", f"two plug-ins are called {name}", where=source,
                         hint=f"the other one is {known.source}")
    plugin = PlugIn(name, "", source)
    _loading.append(plugin)
    try:
        with redirect_stdout(sys.stderr):  # stdout is for the result of a verb
            version = str(getattr(run(), "__version__", ""))
    except (Exception, SystemExit) as error:
        _take_out(plugin)
        raise _failed(plugin, error) from error
    finally:
        _loading.pop()
    LOADED[name] = PlugIn(name, version, source, plugin.added)
    return LOADED[name]


def unload(name: str) -> None:
    """Remove a plug-in with everything that it added."""
    _take_out(LOADED.pop(name))


def _take_out(plugin: PlugIn) -> None:
    sys.modules.pop(f"graphtool_plugin_{plugin.name}", None)
    for undo in reversed(plugin.added.values()):
        undo()


# ---- errors ------------------------------------------------------------------------------------

def _failed(plugin: PlugIn, error: BaseException) -> GraphtoolError:
    """One clear error that says which line of the plug-in failed."""
    where = _line(error.__traceback__, plugin.source)
    if isinstance(error, GraphtoolError):
        message, hint, code = error.message, error.hint, error.code
    else:
        message, hint, code = f"{type(error).__name__}: {error}", "", "GT3102"
    kind = UsageError if code == "GT3103" else InputError
    return kind(code if code == "GT3103" else "GT3102",
                f"the plug-in {plugin.name} cannot be loaded: {message}", where=where, hint=hint)


def guarded(what: str, fn: Function, check: Callable[..., str] | None = None) -> Function:
    """`fn` of the plug-in that is being loaded, such that all it raises becomes a PluginError.

    What it says of wrong input (exit codes 1 to 5) and a Signal stay as they are.
    `check(result, *args)` says what is wrong with a result, or "". Outside a plug-in `fn` stays as
    it is. `what` is in the message.
    """
    if not _loading:
        return fn
    plugin = _loading[-1]

    @wraps(fn)
    def call(*args: Any, **attrs: Any) -> Any:
        try:
            result = fn(*args, **attrs)
        except (MemoryError, Signal):
            raise
        except (Exception, SystemExit) as error:
            if isinstance(error, GraphtoolError) and error.exit_code != 70:
                raise
            raise _broken(plugin, what, error) from error
        if check is not None and (fault := check(result, *args)):
            code = fn.__code__
            raise PluginError("GT3105", f"{what}, of the plug-in {plugin.name}, {fault}",
                              where=f"{code.co_filename}:{code.co_firstlineno} {code.co_name}")
        return result
    return cast(Function, call)


def guarded_fields(record: Row, what: str,
                   checks: Mapping[str, Callable[..., str]] | None = None) -> Row:
    """A record of the plug-in that is being loaded with all its functions guarded."""
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    titles = {name: what if name in ("fn", "function") else f"{name} of {what}" for name in values}
    return replace(record, **{name: guarded(titles[name], fn, (checks or {}).get(name))
                              for name, fn in values.items() if isinstance(fn, FunctionType)})


def blamed(error: BaseException) -> GraphtoolError | None:
    """The error to show if a function of a plug-in raised an exception while a verb ran."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        for plugin in LOADED.values():
            if frame.filename == plugin.source:
                return _broken(plugin, f"{frame.name}()", error)
    return None


def broke(kind: str, names: Iterable[str], error: GraphtoolError) -> GraphtoolError:
    """The error for a graph that a pass or its rules left broken; where a plug-in added one of
    them, an error that names it and its file."""
    for name in names:
        if (plugin := owner_of(kind, name)) is not None:
            return PluginError("GT3105", f"the {kind} {name}, of the plug-in {plugin.name}, left a "
                                         f"graph that is not valid: {error.message}",
                               where=(plugin.source, *error.where.split("\n")))
    return error


def _broken(plugin: PlugIn, what: str, error: BaseException) -> PluginError:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == plugin.source]
    said = error.message if isinstance(error, GraphtoolError) else (
        f"{type(error).__name__}: {error}".rstrip(": "))
    return PluginError("GT3105", f"{what}, of the plug-in {plugin.name}, failed: {said}",
                       where=f"{plugin.source}:{frames[-1].lineno} {frames[-1].name}" if frames
                       else plugin.source)


def _line(tb: TracebackType | None, source: str) -> str:
    at = [f for f in traceback.extract_tb(tb) if f.filename == source]
    return f"{source}:{at[-1].lineno}" if at else source
