"""The table of error codes that `graphtool explain` reads; a test holds it against the source."""

from __future__ import annotations

from dataclasses import dataclass

from graphtool.explain import building, formats, graphs, internal, models, usage


@dataclass(frozen=True, slots=True)
class Code:
    """What an error means in a few words, and what to do about it in a sentence or two."""

    title: str
    text: str


CODES: dict[str, Code] = {
    code: Code(title, text)
    for table in (formats.TABLE, graphs.TABLE, models.TABLE, building.TABLE, usage.TABLE,
                  internal.TABLE)
    for code, (title, text) in table.items()}
