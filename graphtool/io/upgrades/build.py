"""Upgrades of build.json, oldest first; the policy stands in io/versions.py."""

from __future__ import annotations

from graphtool.io.upgrades import Document, Upgrade, names, plans


def to_2(document: Document) -> Document:
    """Version 2 names in its head the release that it needs. The choice of a kernel is a record."""
    return plans.in_steps(document)


def to_3(document: Document) -> Document:
    """Version 3 calls plans by the op that stands for their kernel."""
    return plans.of_steps(document, names.of_times_3, dict)


UPGRADES: tuple[Upgrade, ...] = (to_2, to_3)
