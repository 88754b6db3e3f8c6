"""Upgrades of a tuning file's lines; the policy stands in io/versions.py.

The document is one line, with the head of the file that it stands in.
"""

from __future__ import annotations

from graphtool.io.upgrades import Upgrade, names

UPGRADES: tuple[Upgrade, ...] = (names.of_times, names.of_times_3)
