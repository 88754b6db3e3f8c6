"""Upgrades of NAME.program.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

from graphtool.io.upgrades import Document, Upgrade, plans


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs. The choice of a kernel is a record."""
    return plans.in_steps(document)


UPGRADES: tuple[Upgrade, ...] = (to_2,)
