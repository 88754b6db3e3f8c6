"""Text of the page stands out from what it is written on, in both themes: 4.5 to 1, as WCAG 2.2
has it, also on the canvas, where no checker of pages can see it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphtool.report.page

CSS = (Path(graphtool.report.page.__file__).parent / "page.css").read_text()
BEHIND = ["back", "panel"]
BOXES = ["compute", "shape", "memory", "control", "data", "arithmetic", "heat", "input", "output"]


def colours(theme: str) -> dict[str, str]:
    """The colours of the light theme, and those that the dark one has instead."""
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6});", block))
                   for block in re.findall(r":root[^{]*\{([^}]*)\}", CSS)[:2])
    return light if theme == "light" else light | dark


def brightness(colour: str) -> float:
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    low, high = sorted((brightness(a), brightness(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "behind"), [
    ("text", BEHIND + BOXES), ("faint", BEHIND + BOXES), ("accent", BEHIND), ("kin", BEHIND)])
def test_text_can_be_read(theme: str, text: str, behind: list[str]) -> None:
    found = colours(theme)
    low = {b: round(contrast(found[text], found[b]), 2) for b in behind
           if contrast(found[text], found[b]) < 4.5}
    assert not low
