"""Upgrades of NAME.program.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

from graphtool.io.upgrades import Document, Upgrade, head_alone


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs."""
    return head_alone(document)


UPGRADES: tuple[Upgrade, ...] = (to_2,)
