"""Every operation of StableHLO and CHLO × element types × shapes, as text and inputs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from tests.lab.stablehlo_cases.case import Case

FAMILIES = ("elementwise", "movement", "reductions", "indexing", "products", "control", "quantised")


def all_cases() -> Iterator[Case]:
    """The cases of all families."""
    for family in FAMILIES:
        yield from import_module(f"tests.lab.stablehlo_cases.{family}").cases()
