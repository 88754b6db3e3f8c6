"""The verbs of the command line: one row each. A plug-in adds its own by `extend.add_verb`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

Words = Callable[[], Iterable[str]]
GROUPS = ("look", "change", "check", "build and run", "train", "language models", "CI", "help")


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb: its name, the function that typer reads, and its group, one of GROUPS.

    The name may begin with that of a family: `git check`. The function's docstring is the help,
    each parameter an option or argument, and a parameter whose type is a record of options stands
    for all of them. An int that it returns is the exit code. `examples` are command lines; `words`
    are what shells complete, by the name of an option, and "" for arguments.
    """

    name: str
    run: Callable[..., object]
    group: str
    examples: tuple[str, ...] = ()
    words: Mapping[str, Words] = field(default_factory=dict)


VERBS: dict[str, Verb] = {}
FAMILIES = {  # verbs whose first word is that of a family, and what the family is for
    "tokenizer": "Make a tokenizer from text, and apply it.",
    "cache": "Manage the cache of compiled objects.",
    "git": "Show and merge graph files in git by structure."}


def families() -> dict[str, dict[str, Verb]]:
    """The verbs by their first word, each then by the second, which is "" for most."""
    result: dict[str, dict[str, Verb]] = {}
    for verb in VERBS.values():
        first, _, second = verb.name.partition(" ")
        result.setdefault(first, {})[second] = verb
    return result
