"""Outputs that say whether what a program expects is so: booleans of this prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXPECTED = "expect."


def unmet(results: Mapping[str, Any]) -> list[str]:
    """The names of the expectations among the outputs that do not hold."""
    return [n for n, x in results.items()
            if n.startswith(EXPECTED) and x.dtype == bool and not x.all()]
