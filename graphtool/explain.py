"""The table of error codes that `graphtool explain` reads; a test holds it against the source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What an error means, and what to do about it."""

    title: str
    text: str


CODES: dict[str, Code] = {}
