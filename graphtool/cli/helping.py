"""help, version: what the verbs are, and which graphtool this is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from graphtool.cli import terminal
from graphtool.cli.versions import own_version
from graphtool.errors import UsageError, near

Words = Annotated[list[str] | None, typer.Argument(
    metavar="VERB", help="The verb, such as build, or git check. Without one, all are listed.")]


def help_(context: typer.Context, verb: Words = None) -> None:
    """Print the help of a verb, or the list of all verbs."""
    found: Any = context.find_root().command
    path = context.find_root()
    for word in verb or ():
        known = getattr(found, "commands", {})
        if word not in known:
            raise UsageError("GT3001", f"no such verb: {' '.join(verb or ())}",
                             hint=near(word, known, "`graphtool help` lists them"))
        found = known[word]
        path = type(context)(found, parent=path, info_name=word)
    terminal.document(found.get_help(path) + "\n")


def version() -> None:
    """Print the version."""
    terminal.lines([own_version()])
