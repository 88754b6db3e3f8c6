"""`--plugin FILE`, before or after the verb: it is read before the verbs' own options are."""

from __future__ import annotations

from collections.abc import Sequence

from graphtool import plugins
from graphtool.errors import UsageError
from graphtool.verbs import families

_LIGHT = {"--help", "-h", "--version", "-V"}  # lines that need no installed plug-in


def load_plugins(argv: Sequence[str]) -> list[str]:
    """Load the installed plug-ins and the plug-ins that the line names; returns the line without
    these names.

    Raises UsageError GT3101 for `--plugin` without a file, and what `load_plugin` raises.
    """
    rest: list[str] = []
    files: list[str] = []
    words = iter(argv)
    for word in words:
        option, equals, file = word.partition("=")
        if word == "--":
            rest += [word, *words]
        elif option != "--plugin":
            rest.append(word)
        else:
            files.append(file if equals else next(words, ""))
    if "" in files:
        raise UsageError("GT3101", "--plugin names no file", hint="--plugin FILE.py")
    if rest and (not _LIGHT & set(rest) or not {rest[0]} & {*families(), *_LIGHT}):
        plugins.load_installed()
    for file in files:
        plugins.load_plugin(file)
    return rest
