"""Gives what the Python API returns its `_repr_html_` for notebooks, and its `repr`.

The data classes know nothing of pages. What shows them stands in report/notebook.py, which is
imported when something is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from graphtool.ir.graph import Module
from graphtool.loops.program import Program
from graphtool.native.runtime import Model
from graphtool.report.diff import Diff
from graphtool.report.profile import Profile


def head(module: Module) -> str:
    """The start of the listing."""
    from graphtool.report import notebook
    return notebook.head(module)


def told(x: Diff | Profile) -> str:
    """The text that the verb prints, its head."""
    from graphtool.report import notebook
    return notebook.told(x)


def shown(x: Module | Program | Model | Diff | Profile) -> str:
    """HTML for the output of a notebook's cell."""
    from graphtool.report import notebook
    match x:
        case Module():
            return notebook.of_module(x)
        case Program():
            return notebook.of_program(x)
        case Model():
            return notebook.of_build(Path(x.library._name).parent)
        case Diff():
            return notebook.of_diff(x, vars(x).get("graphs"))
        case Profile():
            return notebook.of_profile(x)


_METHODS: tuple[tuple[type, str, Callable[..., str]], ...] = (
    *((kind, "_repr_html_", shown) for kind in (Module, Program, Model, Diff, Profile)),
    (Module, "__repr__", head), *((kind, "__repr__", told) for kind in (Diff, Profile)))
for _kind, _name, _method in _METHODS:
    setattr(_kind, _name, _method)
