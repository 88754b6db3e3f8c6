"""Upgrades of what a checkpoint says of its training; the policy stands in io/versions.py.

The document is the text `progress` of the safetensors file. The arrays are in torch's format.
"""

from __future__ import annotations

from graphtool.io.upgrades import Upgrade, head_alone

UPGRADES: tuple[Upgrade, ...] = (head_alone,)
