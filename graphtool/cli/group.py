"""The program as a group of verbs, each of which reads its function's options when it is used.

Typer would read those of all verbs first, from their annotations: that takes longer than `show`.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from graphtool.cli.options import flat
from graphtool.cli.waiting import waiting
from graphtool.verbs import FAMILIES, GROUPS, Verb, families

SETTINGS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None,
                            "pretty_exceptions_enable": False}


class _Commands(Mapping[str, Any]):
    """The commands by name; each is made when it is first asked for."""

    def __init__(self) -> None:
        self.loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.loaded:
            self.loaded[name] = get_command(_app(name, families()[name]))
            self.loaded[name].name = name
            _finish(self.loaded[name])
        return self.loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(families())

    def __len__(self) -> int:
        return len(families())


_WORDS = {"int": "N", "float": "X", "path": "PATH", "str": "TEXT"}  # what a value is called


def _finish(command: Any) -> None:
    """Name the value of each option, and make each float option refuse NaN and infinity: no bound
    that it states excludes NaN."""
    for inner in getattr(command, "commands", {}).values():
        _finish(inner)
    for option in command.params:
        kind = option.type.name.removesuffix(" range")
        option.metavar = option.metavar or (
            None if getattr(option, "is_flag", True) else _WORDS.get(kind))
        if kind == "float":
            option.callback = _finite
        if option.name == "out" and option.callback is None:
            option.callback = _writable


def _finite(_context: Any, _option: Any, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not finite")
    return value


def _writable(context: Any, _option: Any, value: Any) -> Any:
    """Look at `-o` before the work begins."""
    if value is not None:
        from graphtool.cli.outputs import check
        family = context.parent.info_name if context.parent is not None else ""
        name = context.info_name or ""
        check(f"{family} {name}" if family in FAMILIES else name, Path(value))
    return value


def _app(name: str, rows: Mapping[str, Verb]) -> typer.Typer:
    """The app of one verb, or of a family of verbs."""
    app = typer.Typer(cls=_Family, **SETTINGS, help=FAMILIES.get(name))
    for second, verb in rows.items():
        app.command(second or name, epilog=_epilog(verb))(_waited(verb.name, flat(verb.run)))
    if name in FAMILIES:
        app.callback()(lambda: None)
    return app


def _waited(name: str, run: Callable[..., object]) -> Callable[..., object]:
    """The verb, which says on a terminal that it is at work."""
    @wraps(run)
    def call(**values: Any) -> object:
        with waiting(name):
            return run(**values)
    return call


def _epilog(verb: Verb) -> str:
    """What stands below the help of a verb."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in verb.examples))) if (
        verb.examples) else ""


class _Family(TyperGroup):
    """A family of verbs, whose help has the first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line(c.help)) for name, c in self.commands.items()])


class Verbs(TyperGroup):
    """The program's command. Its help has the verbs by group, with the first sentence of each."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the verbs, in the order that a model goes through them."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the verbs by group, without reading their options."""
        groups = families()
        for group in GROUPS:
            rows = [(name, said(name, verbs)) for name, verbs in groups.items()
                    if next(iter(verbs.values())).group == group]
            if rows:
                with formatter.section(group[0].upper() + group[1:]):
                    formatter.write_dl(rows)


def said(name: str, verbs: Mapping[str, Verb]) -> str:
    """The first sentence of the help of a verb, or what a family is for."""
    return FAMILIES.get(name) or line(inspect.getdoc(next(iter(verbs.values())).run))


def line(text: str | None) -> str:
    """The first sentence of a help text."""
    return re.split(r"(?<=[.])\s", " ".join((text or "").split()))[0]
