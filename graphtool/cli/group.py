"""The program as a group of verbs, each of which reads its function's options when it is used.

Typer would read those of all verbs first, from their annotations: that takes longer than `show`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

Verb = Callable[..., object] | typer.Typer
SETTINGS: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None,
                            "pretty_exceptions_enable": False}


class _Commands(Mapping[str, Any]):
    """The commands by name; each is made when it is first asked for."""

    def __init__(self, verbs: Mapping[str, Verb], epilog: Callable[[str], str]) -> None:
        self.verbs, self.epilog = verbs, epilog
        self.made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.made:
            verb = self.verbs[name]
            if isinstance(verb, typer.Typer):
                app = verb
            else:
                app = typer.Typer(**SETTINGS)
                app.command(name, epilog=self.epilog(name))(verb)
            self.made[name] = get_command(app)
            self.made[name].name = name
            _check_numbers(self.made[name])
        return self.made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.verbs)

    def __len__(self) -> int:
        return len(self.verbs)


def _check_numbers(command: Any) -> None:
    """Make each float option refuse NaN and infinity: no bound that it states excludes NaN."""
    for inner in getattr(command, "commands", {}).values():
        _check_numbers(inner)
    for option in command.params:
        if option.type.name.startswith("float"):
            option.callback = _finite


def _finite(_context: Any, _option: Any, value: float | None) -> float | None:
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not finite")
    return value


def group(verbs: Mapping[str, Verb], epilog: Callable[[str], str]) -> type[TyperGroup]:
    """The class of the program with these verbs: functions, or groups of further verbs."""
    class Verbs(TyperGroup):
        """The program's command, whose help takes a line of each verb's docstring."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self.commands: Any = _Commands(verbs, epilog)

        def list_commands(self, ctx: Any) -> list[str]:
            """The names of the verbs, in the order that a model goes through them."""
            return list(verbs)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the list of verbs, without reading their options."""
            told: dict[str, Any] = {
                name: TyperCommand(name, help=_help(verb), rich_markup_mode=None)
                for name, verb in verbs.items()}
            TyperGroup(commands=told).format_commands(ctx, formatter)
    return Verbs


def _help(verb: Verb) -> str:
    return str(verb.info.help) if isinstance(verb, typer.Typer) else inspect.getdoc(verb) or ""
