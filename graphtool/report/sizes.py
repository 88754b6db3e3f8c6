"""Sizes in reports: numbers with units for people, and polynomials over the open dims as text."""

from __future__ import annotations

from graphtool.symbolic import Dim, text

Size = int | str
"""A number, or a polynomial over the open dims as text."""


def size(d: Dim) -> Size:
    """An int, or the text of a symbolic size."""
    return d if isinstance(d, int) else text(d)


def human(x: Size, unit: str = "") -> str:
    """A number with a unit, such as 1.23 M for 1,234,567; a symbolic size as its text."""
    if isinstance(x, str):
        return f"{x} {unit}".rstrip()
    step, prefixes = (1024.0, ("", "Ki", "Mi", "Gi", "Ti")) if unit == "B" else (
        1000.0, ("", "k", "M", "G", "T"))
    value, at = float(x), 0
    while abs(value) >= step and at < len(prefixes) - 1:
        value, at = value / step, at + 1
    number = f"{x}" if at == 0 else f"{value:.2f}"
    return f"{number} {prefixes[at]}{unit}".rstrip()
