"""The page's script where no browser is needed: how long chains become columns."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "graphtool" / "report" / "page"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(not NODE, reason="needs node")


def columns(rows: int, high: int = 34, items: int = 1, aspect: float = 1.5) -> list[int]:
    """How many rows each column has, of rows alike."""
    script = ('const document = {getElementById: () => ({textContent: "{}"})};'
              + (PAGE / "layout.js").read_text().replace('"use strict";', "") + f"""
        aspect = {aspect};
        const row = () => ({{items: Array({items}).fill({{}}), tall: {high}, room: ROW, low: 0,
                            high: 130 * {items}}});
        const made = columns(Array.from({{length: {rows}}}, row));
        console.log(JSON.stringify(made.map(c => c.length)));
        """)
    assert NODE is not None
    found = subprocess.run([NODE, "-e", script], capture_output=True, text=True, check=True)
    return list(json.loads(found.stdout))


def test_a_short_chain_is_one_column() -> None:
    assert columns(8) == [8]


def test_a_long_chain_is_several_of_equal_length() -> None:
    found = columns(100)
    assert sum(found) == 100 and len(found) > 5 and max(found) - min(found) <= 3


def test_a_narrow_pane_has_fewer_columns() -> None:
    assert len(columns(100, aspect=0.4)) < len(columns(100, aspect=2))


def test_wide_rows_have_fewer_columns() -> None:
    assert len(columns(60, items=8)) < len(columns(60))


def test_few_tall_rows_are_wrapped_too() -> None:
    assert sum(columns(6, high=500)) == 6 and len(columns(6, high=500)) == 3
